"""Convolutions along a whole sequence.

    y_i = Σ_{j≤i} k_{i−j} u_j

Causal: the output of a time-invariant system with impulse response k. First the sum, then the same
by the fast Fourier transform, which S4 uses for training [gu2022s4, §2.3]. A product of transforms
is a circular convolution; zero padding to twice the length prevents the wrap-around.

Circular: the product of transforms without padding.

    y_i = Σ_j k_{(i−j) mod l} u_j

The end of the signal wraps around to its beginning. HOPE's published code convolves this way; so
does a causal convolution whose author forgot the padding.

Bidirectional: with the past and with the future; each has its own kernel.

    y_i = Σ_{j≤i} k_{i−j} u_j + Σ_{j≥i} k'_{j−i} u_j

Both kernels include the present input, as in Mega, H3 and S5. In S4 and DSS the backward kernel
starts one step later; that is the `_shifted` form.
"""

import numpy as np
from numpy.fft import fft, ifft, irfft, rfft

from refssm._declaration.contract import FFT
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import impulse_responses, signals, waveforms


def causal_convolution_direct(u, k):
    """y_i = Σ_{j≤i} k_{i−j} u_j, by direct summation.

    Signature ``(l),(l)->(l)``: `u` the signal, `k` the kernel, `l` time; leading axes broadcast.
    Any of float32, float64, longdouble and their complex types; the result has ``np.result_type(u,
    k)``. Units: those of `u` times those of `k`. O(l²) operations; every entry is accurate by
    itself, even if it is much smaller than the others.

    Raises ValueError if sizes disagree, TypeError for other types. NaN at time j reaches only the
    outputs from j on. Source: [gu2022s4, §2.3].

    >>> import refssm
    >>> refssm.causal_convolution_direct([1.0, 0.0, 2.0], [1.0, 0.5, 0.25])
    array([1.  , 0.5 , 2.25])
    """
    u, k = np.broadcast_arrays(u, k)
    y = np.empty_like(u, dtype=np.result_type(u, k))
    for i in range(y.shape[-1]):
        y[..., i] = (k[..., i::-1] * u[..., : i + 1]).sum(-1)
    return y


def causal_convolution_direct_vjp(dy, u, k):
    """du_j = Σ_{i≥j} k_{i−j}* dy_i,  dk_j = Σ_{i≥j} u_{i−j}* dy_i: the same sum, time reversed.

    Returns `(du, dk)`, shaped like `u` and `k`.
    """
    return _time_reversed(CAUSAL_CONVOLUTION_DIRECT.reference, dy, u, k)


def _time_reversed(convolution, dy, u, k):
    """The adjoint of a causal convolution runs backwards in time, with the conjugate kernel."""
    backwards = dy[..., ::-1]
    du = convolution(backwards, k.conj())[..., ::-1]
    dk = convolution(backwards, u.conj())[..., ::-1]
    return unbroadcast(du, u), unbroadcast(dk, k)


CAUSAL_CONVOLUTION_DIRECT = Operator(
    reference=causal_convolution_direct,
    signature="(l),(l)->(l)",
    inputs={"u": signals, "k": impulse_responses},
    batch="b d, d",
    traits=frozenset({"causal", "time-invariant", "linear:u", "linear:k"}),
    citation="gu2022s4, §2.3",
    tags=("direct sum convolution", "numpy.convolve"),
)


def causal_convolution(u, k):
    """y_i = Σ_{j≤i} k_{i−j} u_j, by FFT.

    Signature ``(l),(l)->(l)``: as `causal_convolution_direct`, in O(l log l) operations. Rounding
    errors are measured against ‖k‖₂‖u‖₂, not entry by entry: a much smaller entry has no correct
    digits, and NaN or infinity anywhere spreads over the whole sequence. Types and exceptions are
    those of `causal_convolution_direct`. Source: [gu2022s4, §2.3].

    >>> import refssm
    >>> refssm.causal_convolution([1.0, 0.0, 2.0], [1.0, 0.5, 0.25])
    array([1.  , 0.5 , 2.25])
    """
    l, common = u.shape[-1], np.result_type(u, k)
    u, k = u.astype(common, copy=False), k.astype(common, copy=False)
    padded = max(2 * l, 1)  # 2l − 1 would suffice; a transform needs at least one point
    if np.iscomplexobj(u):
        return ifft(fft(u, padded) * fft(k, padded))[..., :l]
    return irfft(rfft(u, padded) * rfft(k, padded), padded)[..., :l]


def causal_convolution_vjp(dy, u, k):
    """du_j = Σ_{i≥j} k_{i−j}* dy_i,  dk_j = Σ_{i≥j} u_{i−j}* dy_i, by FFT, time reversed.

    Returns `(du, dk)`, shaped like `u` and `k`.
    """
    return _time_reversed(CAUSAL_CONVOLUTION.reference, dy, u, k)


CAUSAL_CONVOLUTION = Operator(
    reference=causal_convolution,
    signature="(l),(l)->(l)",
    inputs={"u": waveforms, "k": impulse_responses},
    batch="b d, d",
    traits=frozenset({"causal", "time-invariant", "transform", "linear:u", "linear:k"}),
    definition=causal_convolution_direct,
    contract=FFT,  # normwise [higham2002accuracy, §24.1]
    citation="gu2022s4, §2.3",
    tags=(
        "fftconv",
        "fftconv_ref",
        "FlashFFTConv",
        "Hyena long convolution",
        "scipy.signal.fftconvolve",
    ),
)
causal_convolution_direct = CAUSAL_CONVOLUTION_DIRECT.checked(causal_convolution_direct)
causal_convolution_direct_vjp = CAUSAL_CONVOLUTION_DIRECT.checked_vjp(causal_convolution_direct_vjp)
causal_convolution = CAUSAL_CONVOLUTION.checked(causal_convolution)
causal_convolution_vjp = CAUSAL_CONVOLUTION.checked_vjp(causal_convolution_vjp)


def circular_convolution(u, k):
    """y_i = Σ_j k_{(i−j) mod l} u_j, by FFT.

    Signature ``(l),(l)->(l)``: `u` the signal, `k` the kernel, both with period `l`; leading axes
    broadcast. Any of float32, float64, longdouble and their complex types; the result has
    ``np.result_type(u, k)``. Units: those of `u` times those of `k`. Errors are measured against
    ‖k‖₂‖u‖₂, and NaN or infinity anywhere spreads over the whole sequence.

    Raises ValueError if sizes disagree, TypeError for other types. Source: [oppenheim2010discrete,
    §8.6.5].

    >>> import refssm
    >>> refssm.circular_convolution([1.0, 0.0, 2.0], [1.0, 0.5, 0.25])
    array([2.  , 1.  , 2.25])
    """
    l, common = u.shape[-1], np.result_type(u, k)
    u, k = u.astype(common, copy=False), k.astype(common, copy=False)
    if l == 0:  # a transform needs at least one point
        return np.broadcast_arrays(u, k)[0].copy()
    if np.iscomplexobj(u):
        return ifft(fft(u) * fft(k))
    return irfft(rfft(u) * rfft(k), l)


def circular_convolution_vjp(dy, u, k):
    """du_j = Σ_i k*_{(i−j) mod l} dy_i,  dk_j = Σ_i u*_{(i−j) mod l} dy_i, by FFT.

    Returns `(du, dk)`, shaped like `u` and `k`.
    """
    du, dk = (CIRCULAR_CONVOLUTION.reference(dy, _backwards(x.conj())) for x in (k, u))
    return unbroadcast(du, u), unbroadcast(dk, k)


def _backwards(k):
    """k_{−i mod l}."""
    return np.roll(k[..., ::-1], 1, axis=-1)


def circular_sum(u, k):
    """The sum of the definition, without FFT."""
    u, k = np.broadcast_arrays(u, k)
    y = np.empty_like(u, dtype=np.result_type(u, k))
    for i in range(y.shape[-1]):
        y[..., i] = (np.roll(k[..., ::-1], i + 1, axis=-1) * u).sum(-1)
    return y


CIRCULAR_CONVOLUTION = Operator(
    reference=circular_convolution,
    signature="(l),(l)->(l)",
    inputs={"u": waveforms, "k": impulse_responses},
    batch="b d, d",
    traits=frozenset({"transform", "linear:u", "linear:k"}),
    definition=circular_sum,
    contract=FFT,
    citation="oppenheim2010discrete, §8.6.5",
    lacks=frozenset({"jit"}),  # a transform: FFTW does it already
    tags=("cyclic convolution", "periodic convolution"),
)
circular_convolution = CIRCULAR_CONVOLUTION.checked(circular_convolution)
circular_convolution_vjp = CIRCULAR_CONVOLUTION.checked_vjp(circular_convolution_vjp)


LINEAR = frozenset({"transform", "linear:u", "linear:k,kr"})


def bidirectional_convolution(u, k, kr):
    """y_i = Σ_{j≤i} k_{i−j} u_j + Σ_{j≥i} k'_{j−i} u_j, by FFT; k' is `kr`.

    Signature ``(l),(l),(l)->(l)``: `u` the signal, `k` the kernel of the past, `kr` that of the
    future, both from lag 0; leading axes broadcast. Any of float32, float64, longdouble and their
    complex types; the result has their ``np.result_type``. Units: those of `u` times those of `k`.
    Errors are measured against (‖k‖₂ + ‖k'‖₂)‖u‖₂, and NaN or infinity anywhere spreads over the
    whole sequence.

    Raises ValueError if sizes disagree, TypeError for other types. Source: [ma2023mega].

    >>> import refssm
    >>> refssm.bidirectional_convolution([0.0, 1.0, 0.0], [1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    array([20., 11.,  2.])
    """
    return _past(u, k) + _reversed(_past(_reversed(u), kr))


def bidirectional_convolution_vjp(dy, u, k, kr):
    """du_j = Σ_{i≥j} k_{i−j}* dy_i + Σ_{i≤j} k'_{j−i}* dy_i; dk and dk' as in two convolutions.

    Returns `(du, dk, dkr)`, shaped like `u`, `k` and `kr`.
    """
    return _gradients(dy, dy, u, k, kr)


def bidirectional_sum(u, k, kr):
    """The sums of the definition, without FFT."""
    past = CAUSAL_CONVOLUTION_DIRECT.reference
    return past(u, k) + _reversed(past(_reversed(u), kr))


BIDIRECTIONAL_CONVOLUTION = Operator(
    reference=bidirectional_convolution,
    signature="(l),(l),(l)->(l)",
    inputs={"u": waveforms, "k": impulse_responses, "kr": impulse_responses},
    batch="b d, d, d",
    traits=LINEAR,
    definition=bidirectional_sum,
    contract=FFT,
    citation="ma2023mega",
    lacks=frozenset({"jit"}),  # transforms: FFTW does them already
    tags=("Mega bidirectional EMA convolution", "two-sided convolution"),
)


def bidirectional_convolution_shifted(u, k, kr):
    """y_i = Σ_{j≤i} k_{i−j} u_j + Σ_{j>i} k'_{j−i−1} u_j, by FFT; k' is `kr`.

    Signature ``(l),(l),(l)->(l)``: as `bidirectional_convolution`, but the backward kernel starts
    at lag −1, so the present input counts once. The last tap of `kr` has no effect. S4 and DSS
    store their kernels in this form. Source: [goel2022sashimi].

    >>> import refssm
    >>> k, kr = [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]
    >>> refssm.bidirectional_convolution_shifted([0.0, 1.0, 0.0], k, kr)
    array([10.,  1.,  2.])
    """
    return _past(u, k) + _earlier(_reversed(_past(_reversed(u), kr)))


def bidirectional_convolution_shifted_vjp(dy, u, k, kr):
    """As in `bidirectional_convolution`; the backward kernel's cotangent is one step later.

    Returns `(du, dk, dkr)`, shaped like `u`, `k` and `kr`.
    """
    return _gradients(dy, _later(dy), u, k, kr)


def shifted_sum(u, k, kr):
    """The sums of the definition, without FFT."""
    past = CAUSAL_CONVOLUTION_DIRECT.reference
    return past(u, k) + _earlier(_reversed(past(_reversed(u), kr)))


def _past(u, k):
    """Σ_{j≤i} k_{i−j} u_j by FFT, in the arguments' precision."""
    return CAUSAL_CONVOLUTION.reference(u, k)


def _reversed(u):
    """Reverse time."""
    return u[..., ::-1]


def _earlier(y):
    """y_{i+1}; 0 after the end."""
    return np.concatenate([y[..., 1:], np.zeros_like(y[..., :1])], axis=-1)


def _later(y):
    """y_{i−1}; 0 before the start."""
    return np.concatenate([np.zeros_like(y[..., :1]), y[..., :-1]], axis=-1)


def _gradients(dy, dy_back, u, k, kr):
    """The gradients of both convolutions, each from its own cotangent."""
    forward, backward = _reversed(dy), dy_back
    du = _reversed(_past(forward, k.conj())) + _past(backward, kr.conj())
    dk = _reversed(_past(forward, u.conj()))
    dkr = _reversed(_past(backward, _reversed(u.conj())))
    return unbroadcast(du, u), unbroadcast(dk, k), unbroadcast(dkr, kr)


BIDIRECTIONAL_CONVOLUTION_SHIFTED = Operator(
    reference=bidirectional_convolution_shifted,
    signature="(l),(l),(l)->(l)",
    inputs={"u": waveforms, "k": impulse_responses, "kr": impulse_responses},
    batch="b d, d, d",
    traits=LINEAR,
    definition=shifted_sum,
    contract=FFT,
    citation="goel2022sashimi",
    lacks=frozenset({"jit"}),  # transforms: FFTW does them already
    tags=("SaShiMi bidirectional S4", "S4 bidirectional kernel"),
)
bidirectional_convolution = BIDIRECTIONAL_CONVOLUTION.checked(bidirectional_convolution)
bidirectional_convolution_vjp = BIDIRECTIONAL_CONVOLUTION.checked_vjp(bidirectional_convolution_vjp)
bidirectional_convolution_shifted = BIDIRECTIONAL_CONVOLUTION_SHIFTED.checked(
    bidirectional_convolution_shifted
)
bidirectional_convolution_shifted_vjp = BIDIRECTIONAL_CONVOLUTION_SHIFTED.checked_vjp(
    bidirectional_convolution_shifted_vjp
)
