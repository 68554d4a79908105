"""Selective scans of packed sequences, and one step at a time for decoding."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.domains import resets, states
from refssm.scan.linear import LINEAR_SCAN_PACKED
from refssm.selective_scan.selective import SELECTIVE_SCAN, at_rest, discretized, pulled_back

STEP_DOMAINS = {**SELECTIVE_SCAN.inputs, "x": states}


def selective_scan_packed(u, dt, A, B, C, resets):
    """y_k = C_k · x_k,  x_k = dt_k u_k B_k where a sequence begins, else as `selective_scan`.

    Signature ``(l),(l),(n),(l,n),(l,n),(l)->(l)``: `resets` is true, or an integer that is not 0,
    at the first step of each packed sequence; the state before is dropped, not multiplied by 0, so
    nothing leaks, not even NaN. Types, units and errors are those of `selective_scan`. Source:
    [gu2023mamba, §3.5.2], sequence boundaries as in [lu2023structured].

    >>> import refssm
    >>> B = C = [[1.0], [1.0], [1.0]]
    >>> refssm.selective_scan_packed([1.0] * 3, [1.0] * 3, [0.0], B, C, [False, False, True])
    array([1., 2., 1.])
    """
    x = LINEAR_SCAN_PACKED.reference(*discretized(u, dt, A, B), resets)
    return (C * x).sum(-1)


def selective_scan_packed_vjp(dy, u, dt, A, B, C, resets):
    """As in `selective_scan_vjp`; nothing flows back from the first step of a sequence.

    Returns `(du, ddt, dA, dB, dC, None)`, shaped like the arguments.
    """
    rest = at_rest(u, dt, A, B, C)
    gradients = pulled_back(dy, rest, u, dt, A, B, C, rest, resets)
    return *unbroadcast_each(gradients[:-1], (u, dt, A, B, C)), None


SELECTIVE_SCAN_PACKED = Operator(
    reference=selective_scan_packed,
    signature="(l),(l),(n),(l,n),(l,n),(l)->(l)",
    inputs={**SELECTIVE_SCAN.inputs, "resets": resets},
    batch="b d, b d, d, b, b, b",
    traits=frozenset({"causal", "linear:u", "linear:B", "linear:C"}),
    citation="lu2023structured",
    tags=("selective scan varlen", "selective scan cu_seqlens"),
)
selective_scan_packed = SELECTIVE_SCAN_PACKED.checked(selective_scan_packed)
selective_scan_packed_vjp = SELECTIVE_SCAN_PACKED.checked_vjp(selective_scan_packed_vjp)


def selective_step(u, dt, A, B, C, x):
    """x ← e^{dt A} x + dt u B,  y = C · x: one step, and the next state.

    Signature ``(),(),(n),(n),(n),(n)->(),(n)``: as one step of `selective_scan_stateful`. Types,
    units and errors are also the same. Source: [gu2023mamba, Alg. 2].

    >>> import refssm
    >>> refssm.selective_step(1.0, 2.0, [0.0], [1.0], [3.0], [4.0])
    (array(18.), array([6.]))
    """
    x = np.exp(dt[..., None] * A) * x + (dt * u)[..., None] * B
    y = (C * x).sum(-1)
    return y, with_batch(x, 1, y.shape)


def selective_step_vjp(dy, dx_next, u, dt, A, B, C, x):
    """g = C* dy + dx',  e = a* x* g;  du = Σ dt B* g,  ddt = Re Σ (u B)* g + A* e,  dA = dt e,
    dB = (dt u)* g,  dC = x'* dy,  dx = a* g.

    Returns `(du, ddt, dA, dB, dC, dx)`, shaped like the arguments.
    """
    a, step = np.exp(dt[..., None] * A), dt[..., None]
    drive = (dt * u)[..., None]
    g = C.conj() * dy[..., None] + dx_next
    e = (a * x).conj() * g
    ddt = ((u[..., None] * B).conj() * g + A.conj() * e).sum(-1)
    dC = (a * x + drive * B).conj() * dy[..., None]
    gradients = ((step * B).conj() * g).sum(-1), ddt, step * e, drive.conj() * g, dC, a.conj() * g
    return unbroadcast_each(gradients, (u, dt, A, B, C, x))


SELECTIVE_STEP = Operator(
    reference=selective_step,
    signature="(),(),(n),(n),(n),(n)->(),(n)",
    form="step",
    inputs=STEP_DOMAINS,
    outputs=("y", "x_next"),
    batch="b d, b d, d, b, b, b d",
    traits=frozenset({"linear:u,x", "linear:B,x", "linear:C->y"}),
    citation="gu2023mamba, Alg. 2",
    tags=("S6 one step",),
)
selective_step = SELECTIVE_STEP.checked(selective_step)
selective_step_vjp = SELECTIVE_STEP.checked_vjp(selective_step_vjp)
