"""Diagonal state-space systems with several inputs and outputs: the form S5 computes.

    x_k = a x_{k-1} + B u_k,    y_k = C x_k + D u_k

`a` are the discrete decays e^(dt w), one per mode; `B` is discrete too (B̄). All inputs share one
state, unlike S4's bank of single-input systems: if `B` has the columns of m S4 systems with a
common `a`, the state of the S5 layer is the sum of their states [smith2023s5, Prop. 2].

For a real system stored as one mode of each conjugate pair, use `diagonal_ssm_real`.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm.domains import decays, fixed_decays, input_matrices, signals
from refssm.scan.blocks import backwards, joined, no_resets
from refssm.scan.linear import LINEAR_SCAN


def driven(B, u):
    """B u_k."""
    return einsum("...nm,...lm->...ln", B, u)


def read(C, x):
    """C x_k."""
    return einsum("...pn,...ln->...lp", C, x)


def states(a, B, u):
    """x_k = a_k x_{k-1} + B u_k from rest; `a` (l, n), or (1, n) if constant in time."""
    b = driven(B, u)
    return LINEAR_SCAN.reference(np.broadcast_to(a, common(a, b)), b)


def common(a, b):
    """(…, l, n): the batch axes of both, the time and state of b."""
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])


def pulled_back(dy, dx_last, a, B, C, u, x0):
    """Gradients of y_k = C x_k and of the last state: (da, dB, dC, du, dx0); da is as long as `a`.

    No array of l·n numbers is stored, except da if `a` varies: inputs, states and cotangents are
    computed block by block (`refssm.scan.blocks`).
    """
    l, n = u.shape[-2], a.shape[-1]
    leading = (a.shape[:-2], B.shape[:-2], C.shape[:-2], u.shape[:-2], x0.shape[:-1])
    batch = np.broadcast_shapes(*leading, dy.shape[:-2], dx_last.shape[:-1])
    kind = np.result_type(dy, dx_last, a, B, C, u, x0)
    constant = a.shape[-2] == 1
    CH = C.conj().swapaxes(-1, -2)

    def filled(x, w):
        return np.broadcast_to(x, (*batch, w.stop - w.start, n))

    steps = (
        lambda w: filled(a if constant else a[..., w, :], w),
        lambda w: filled(driven(B, u[..., w, :]), w),
        lambda w: filled(driven(CH, dy[..., w, :]), w),
    )
    start, carried = (np.broadcast_to(x, (*batch, n)).copy() for x in (x0, dx_last))
    da, du = [], []
    dB, dC = np.zeros_like(B, dtype=kind), np.zeros_like(C, dtype=kind)
    for block in backwards(*steps, no_resets(l), start, carried, l):
        w, carried = block.window, block.carried
        decayed = block.before.conj() * block.g
        da.append(np.sum(decayed, axis=-2, keepdims=True) if constant else decayed)
        dB = dB + einsum("...ln,...lm->...nm", block.g, u[..., w, :].conj())
        dC = dC + einsum("...lp,...ln->...pn", dy[..., w, :], block.x.conj())
        du.append(einsum("...nm,...ln->...lm", B.conj(), block.g))
    da = joined(da, (*batch, 0, n), kind)
    du = joined(du, (*batch, 0, u.shape[-1]), kind)
    return np.sum(da, axis=-2, keepdims=True) if constant else da, dB, dC, du, carried


def at_rest(a, B, u):
    """A state of zeros."""
    batch = np.broadcast_shapes(a.shape[:-2], B.shape[:-2], u.shape[:-2])
    return np.zeros_like(a, shape=(*batch, a.shape[-1]))


def skipped_back(dy, D, u):
    """Gradients of y_k = D u_k: (dD, du)."""
    dD = einsum("...lp,...lm->...pm", dy, u.conj())
    return dD, einsum("...pm,...lp->...lm", D.conj(), dy)


def diagonal_ssm(a, B, C, D, u):
    """y_k = C x_k + D u_k,  x_k = a x_{k-1} + B u_k from rest.

    Signature ``(n),(n,m),(p,n),(p,m),(l,m)->(l,p)``: `a` the discrete decays, `B` the discrete
    input matrix, `C` and `D` the output matrices, `u` the inputs; `l` time, `n` state, `m` input
    and `p` output channels; leading axes broadcast. Any of float32, float64, longdouble and their
    complex types; the result has their ``np.result_type``; no real part is used. Units: `a` none,
    `y` those of C B u and D u.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [smith2023s5, §3.1].

    >>> import refssm
    >>> refssm.diagonal_ssm([0.5], [[1.0]], [[2.0]], [[0.0]], [[1.0], [0.0], [2.0]]).ravel()
    array([2. , 1. , 4.5])
    """
    return read(C, states(a[..., None, :], B, u)) + read(D, u)


def diagonal_ssm_vjp(dy, a, B, C, D, u):
    """g_k = Cᴴ dy_k + a* g_{k+1};  da = Σ x_{k-1}* g_k,  dB = Σ g_k u_kᴴ,  dC = Σ dy_k x_kᴴ,
    dD = Σ dy_k u_kᴴ,  du_k = Bᴴ g_k + Dᴴ dy_k.

    Returns `(da, dB, dC, dD, du)`, shaped like the arguments.
    """
    da, *others = DIAGONAL_SSM_VARYING.bare_vjp(dy, a[..., None, :], B, C, D, u)
    return unbroadcast(da[..., 0, :], a), *others


DIAGONAL_SSM = Operator(
    reference=diagonal_ssm,
    signature="(n),(n,m),(p,n),(p,m),(l,m)->(l,p)",
    inputs={
        "a": fixed_decays,
        "B": input_matrices,
        "C": input_matrices,
        "D": input_matrices,
        "u": signals,
    },
    batch=", , , , b",
    traits=frozenset({"causal", "time-invariant", "state", "linear:u", "linear:B,D", "linear:C,D"}),
    citation="smith2023s5, §3.1",
    tags=("apply_ssm", "S5 SSM", "LRU recurrence with B C D", "MIMO diagonal system"),
)


def diagonal_ssm_varying(a, B, C, D, u):
    """y_k = C x_k + D u_k,  x_k = a_k x_{k-1} + B u_k from rest, one decay per step.

    Signature ``(l,n),(n,m),(p,n),(p,m),(l,m)->(l,p)``: as `diagonal_ssm`, for irregular sampling:
    ``a_k = e^(dt_k w)``. Types, units and errors are those of `diagonal_ssm`. Source: [smith2023s5,
    §6.3].

    >>> import refssm
    >>> refssm.diagonal_ssm_varying([[0.5], [2.0]], [[1.0]], [[1.0]], [[0.0]], [[1.0], [3.0]])
    array([[1.],
           [5.]])
    """
    return read(C, states(a, B, u)) + read(D, u)


def diagonal_ssm_varying_vjp(dy, a, B, C, D, u):
    """As in `diagonal_ssm_vjp` with a_k for a:  da_k = x_{k-1}* g_k,  da_0 = 0.

    Returns `(da, dB, dC, dD, du)`, shaped like the arguments.
    """
    rest = at_rest(a, B, u)
    da, dB, dC, du, _ = pulled_back(dy, np.zeros_like(rest), a, B, C, u, rest)
    dD, du_skipped = skipped_back(dy, D, u)
    du = du + du_skipped
    return unbroadcast_each((da, dB, dC, dD, du), (a, B, C, D, u))


DIAGONAL_SSM_VARYING = Operator(
    reference=diagonal_ssm_varying,
    signature="(l,n),(n,m),(p,n),(p,m),(l,m)->(l,p)",
    inputs={**DIAGONAL_SSM.inputs, "a": decays},
    batch="b, , , , b",
    traits=frozenset({"causal", "state", "linear:u", "linear:B,D", "linear:C,D"}),
    citation="smith2023s5, §6.3",
    tags=("S5 irregular time steps", "variable timestep"),
)
diagonal_ssm = DIAGONAL_SSM.checked(diagonal_ssm)
diagonal_ssm_vjp = DIAGONAL_SSM.checked_vjp(diagonal_ssm_vjp)
diagonal_ssm_varying = DIAGONAL_SSM_VARYING.checked(diagonal_ssm_varying)
diagonal_ssm_varying_vjp = DIAGONAL_SSM_VARYING.checked_vjp(diagonal_ssm_varying_vjp)
