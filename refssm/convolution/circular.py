"""Circular convolution: the product of transforms without padding.

    y_i = Σ_j k_{(i−j) mod l} u_j

The end of the signal wraps around to its beginning. HOPE's published code convolves this way; so
does a causal convolution whose author forgot the padding.
"""

import numpy as np
from numpy.fft import fft, ifft, irfft, rfft

from refssm._declaration.contract import FFT
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import impulse_responses, waveforms


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
