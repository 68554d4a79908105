"""Causal convolution: the output of a time-invariant system with impulse response k.

    y_i = Σ_{j≤i} k_{i−j} u_j

First the sum, then the same by the fast Fourier transform, which S4 uses for training [gu2022s4,
§2.3]. A product of transforms is a circular convolution; zero padding to twice the length prevents
the wrap-around.
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
