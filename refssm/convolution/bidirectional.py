"""Convolution with the past and with the future; each has its own kernel.

    y_i = Σ_{j≤i} k_{i−j} u_j + Σ_{j≥i} k'_{j−i} u_j

Both kernels include the present input, as in Mega, H3 and S5. In S4 and DSS the backward kernel
starts one step later; that is the `_shifted` form.
"""

import numpy as np

from refssm._declaration.contract import FFT
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.convolution.causal import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT
from refssm.domains import impulse_responses, waveforms

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
