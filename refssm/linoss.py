"""Linear oscillatory state-space models: forced oscillators, one for each state [rusch2024linoss].

    y'' = −A y + B u:    z_k = z_{k-1} + dt (−A y_j + B u_k),    y_k = y_{k-1} + dt z_k

with j = k (implicit, IM) or j = k − 1 (implicit and explicit, IMEX); the output is Re(C y_k). `A`
is diagonal, at least 0: the squares of frequencies. Both are x_k = M x_{k-1} + F_k for x = (z, y),
with four numbers M and two weights of B u for each oscillator. Of IM, with S = 1/(1 + dt² A),

    M = [[S, −dt A S], [dt S, S]],    F = (dt S, dt² S) B u,    det M = S: it damps,

and of IMEX, which damps nothing, det M = 1, and is stable only for dt² A ≤ 4,

    M = [[1, −dt A], [dt, 1 − dt² A]],    F = (dt, dt²) B u.

First one step of each; the other forms follow.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm._numerics.overridable import overridable
from refssm.domains import (
    input_matrices,
    oscillator_states,
    oscillator_steps,
    real_signals,
    soft_springs,
    springs,
)
from refssm.scan.linear import MARKS


def implicit(A, dt):
    """Rows M₁₁, M₁₂, M₂₁, M₂₂ and the weights of B u of IM, (…, 6, n)."""
    S = 1 / (1 + dt * dt * A)
    return rows_of_each(S, -dt * A * S, dt * S, S, dt * S, dt * dt * S)


def implicit_slopes(A, dt):
    """Their derivatives by A and by dt."""
    S = 1 / (1 + dt * dt * A)
    S2, rest = S * S, (1 - dt * dt * A) * S * S
    of_M11, of_weight = -dt * dt * S2, -dt * dt * dt * S2
    by_A = rows_of_each(of_M11, -dt * S2, of_weight, of_M11, of_weight, dt * of_weight)
    turned = -2 * dt * A * S2
    return by_A, rows_of_each(turned, -A * rest, rest, turned, rest, 2 * dt * S2)


def explicit(A, dt):
    """The same six rows of IMEX."""
    one = 1 + 0 * (dt * A)
    return rows_of_each(one, -dt * A, dt, 1 - dt * dt * A, dt, dt * dt)


def explicit_slopes(A, dt):
    """Their derivatives by A and by dt."""
    none, one = 0 * (dt * A), 1 + 0 * (dt * A)
    by_A = rows_of_each(none, -dt, none, -dt * dt, none, none)
    return by_A, rows_of_each(none, -A, one, -2 * dt * A, one, 2 * dt)


def rows_of_each(*rows):
    """One array of rows for each oscillator."""
    return np.stack(np.broadcast_arrays(*rows), axis=-2)


def _turned(M, x):
    """M x for each oscillator: M the rows of a matrix, (…, 4 or more, n), x (…, 2, n)."""
    return M[..., 0:3:2, :] * x[..., :1, :] + M[..., 1:4:2, :] * x[..., 1:, :]


@overridable
def swung(M, F, x0, resets):
    """x_k = M x_{k-1} + F_k from x0, and F_k where `resets` has a sequence begin: (…, l, 2, n).

    `M` (…, 4, n) has the rows of a matrix for each oscillator, `F` is (…, l, 2, n), `x0` (…, 2, n).
    """
    batch = np.broadcast_shapes(M.shape[:-2], F.shape[:-3], x0.shape[:-2], resets.shape[:-1])
    x = with_batch(F, 3, batch).astype(np.result_type(M, F, x0), copy=False)
    begins = resets.any(axis=tuple(range(resets.ndim - 1)))  # somewhere in the batch
    state = x0
    for k in range(x.shape[-3]):
        carried = _turned(M, state)
        x[..., k, :, :] += (
            np.where(resets[..., k, None, None], 0, carried) if begins[k] else carried
        )
        state = x[..., k, :, :]
    return x


def _transposed(M):
    return np.stack([M[..., 0, :], M[..., 2, :], M[..., 1, :], M[..., 3, :]], axis=-2)


def _driven(B, u):
    """B u_k."""
    return einsum("...nm,...lm->...ln", B, u)


def _started(A, B, C, dt, u, x0, resets):
    """The state before, zeros at rest, and no resets if there are none."""
    if x0 is None:
        x0 = np.zeros_like(B, shape=(2, A.shape[-1]))
    return x0, np.zeros(u.shape[-2], bool) if resets is None else resets != 0


def _states(rows, B, u, x0, resets, scan):
    """B u_k, and all states."""
    v = _driven(B, u)
    F = rows[..., None, 4:, :] * v[..., :, None, :]
    return v, scan(rows[..., :4, :], F, x0, resets)


def runner(rows_of, scan=swung):
    """`run` of a recurrence from the six rows that `rows_of(A, dt)` gives."""

    def run(arguments, x0, resets):
        """The outputs, and the last state if there is a first one."""
        A, B, C, dt, u = arguments
        start, begins = _started(A, B, C, dt, u, x0, resets)
        _, x = _states(rows_of(A, dt), B, u, start, begins, scan)
        y = einsum("...pn,...ln->...lp", C, x[..., 1, :]).real
        if x0 is None:
            return (y.copy(),)
        first = np.broadcast_to(start[..., None, :, :], (*x.shape[:-3], 1, *x.shape[-2:]))
        last = np.concatenate([first, x], axis=-3)[..., -1, :, :]
        return y.copy(), with_batch(last, 2, y.shape[:-2])

    return run


def puller(rows_of, slopes_of, scan=swung):
    """`back` of a recurrence from its six rows and their derivatives by A and dt."""

    def back(cotangents, arguments, x0, resets):
        """Gradients for the arguments and x0."""
        A, B, C, dt, u = arguments
        start, begins = _started(A, B, C, dt, u, x0, resets)
        dy, dlast = (*cotangents, np.zeros_like(start))[:2]
        rows = rows_of(A, dt)
        v, x = _states(rows, B, u, start, begins, scan)
        d = einsum("...pn,...lp->...ln", C.conj(), dy)
        g, dx0 = _back_through(rows, d, dlast, begins, scan)
        by_rows, dv = _of_rows(g, x, v, start, begins, rows)
        by_A, by_dt = slopes_of(A, dt)
        gradients = (
            (by_A * by_rows).sum(-2),
            einsum("...ln,...lm->...nm", dv, u),
            einsum("...lp,...ln->...pn", dy, x[..., 1, :].conj()),
            (by_dt * by_rows).sum(-2),
            einsum("...nm,...ln->...lm", B.conj(), dv),
            dx0,
        )
        return unbroadcast_each(gradients, (*arguments, start))

    return back


def _back_through(rows, dy, dlast, begins, scan):
    """The cotangents of all states, from those of the positions and of the last state; and of x0.

    g_k = d_k + Mᵀ g_{k+1}, nothing from a step where a sequence begins.
    """
    MT, l = _transposed(rows), dy.shape[-2]
    d = np.stack(np.broadcast_arrays(np.zeros_like(dy), dy), axis=-2)
    ends = np.concatenate([np.zeros_like(begins[..., :1]), begins[..., :0:-1]], axis=-1)[..., :l]
    # in reversed time the last state's cotangent is what the first step adds
    batch = np.broadcast_shapes(d.shape[:-3], dlast.shape[:-2])
    d = np.broadcast_to(d, (*batch, *d.shape[-3:]))[..., ::-1, :, :]
    if not l:
        return d, dlast
    d = np.concatenate([d[..., :1, :, :] + dlast[..., None, :, :], d[..., 1:, :, :]], axis=-3)
    g = scan(MT, d, np.zeros_like(dlast), ends)[..., ::-1, :, :]
    return g, np.where(begins[..., 0, None, None], 0, _turned(MT, g[..., 0, :, :]))


def _of_rows(g, x, v, start, begins, rows):
    """The cotangents of the six rows, summed over time, and of B u."""
    first = np.broadcast_to(start[..., None, :, :], x[..., :1, :, :].shape)
    before = np.concatenate([first, x[..., :-1, :, :]], axis=-3)[..., : x.shape[-3], :, :]
    before = np.where(begins[..., :, None, None], 0, before)
    of_z, of_y = g[..., 0, :], g[..., 1, :]
    pairs = (
        (of_z, before[..., 0, :]),
        (of_z, before[..., 1, :]),
        (of_y, before[..., 0, :]),
        (of_y, before[..., 1, :]),
        (of_z, v),
        (of_y, v),
    )
    products = [(one * other.conj()).real.sum(-2) for one, other in pairs]
    dv = rows[..., 4, None, :] * of_z + rows[..., 5, None, :] * of_y
    return rows_of_each(*products), dv


RUN_IM, RUN_IMEX = runner(implicit), runner(explicit)
BACK_IM = puller(implicit, implicit_slopes)
BACK_IMEX = puller(explicit, explicit_slopes)


def _one_step(run, arguments, x):
    """A scan of one step."""
    *others, u = arguments
    y, x_next = run((*others, u[..., None, :]), x, None)
    return y[..., 0, :].copy(), x_next


def _one_step_back(back, cotangents, arguments, x):
    """The gradients of a scan of one step."""
    (dy, dx_next), (*others, u) = cotangents, arguments
    given = (dy[..., None, :], dx_next), (*others, u[..., None, :])
    *gradients, du, dx = back(*given, x, None)
    return *gradients, du[..., 0, :].copy(), dx


def linoss_im_step(A, B, C, dt, u, x):
    """z ← z + dt (−A y' + B u),  y' = y + dt z: one implicit step; Re(C y'), and the next state.

    Signature ``(n),(n,m),(p,n),(n),(m),(2,n)->(p),(2,n)``: as one step of `linoss_im_stateful`;
    types, units and errors are the same. Source: [rusch2024linoss, §2.2].

    >>> import refssm
    >>> y, x = refssm.linoss_im_step([1.0], [[1.0]], [[1.0]], [1.0], [2.0], [[0.0], [4.0]])
    >>> y, x.ravel()  # S = 1/2: z = (0 − 4 + 2)/2
    (array([3.]), array([-1.,  3.]))
    """
    return _one_step(RUN_IM, (A, B, C, dt, u), x)


def linoss_im_step_vjp(dy, dx_next, A, B, C, dt, u, x):
    """As in `linoss_im_stateful_vjp`, for one step.

    Returns `(dA, dB, dC, ddt, du, dx)`, shaped like the arguments.
    """
    return _one_step_back(BACK_IM, (dy, dx_next), (A, B, C, dt, u), x)


def linoss_imex_step(A, B, C, dt, u, x):
    """z ← z + dt (−A y + B u),  y ← y + dt z: one step; Re(C y) of the new y, and the next state.

    Signature ``(n),(n,m),(p,n),(n),(m),(2,n)->(p),(2,n)``: as one step of `linoss_imex_stateful`;
    types, units and errors are the same. Source: [rusch2024linoss, §2.2].

    >>> import refssm
    >>> y, x = refssm.linoss_imex_step([1.0], [[1.0]], [[1.0]], [1.0], [2.0], [[0.0], [4.0]])
    >>> y, x.ravel()
    (array([2.]), array([-2.,  2.]))
    """
    return _one_step(RUN_IMEX, (A, B, C, dt, u), x)


def linoss_imex_step_vjp(dy, dx_next, A, B, C, dt, u, x):
    """As in `linoss_imex_stateful_vjp`, for one step.

    Returns `(dA, dB, dC, ddt, du, dx)`, shaped like the arguments.
    """
    return _one_step_back(BACK_IMEX, (dy, dx_next), (A, B, C, dt, u), x)


SIGNATURE = "(n),(n,m),(p,n),(n),(l,m)->(l,p)"
DOC = """
    Signature ``(n),(n,m),(p,n),(n),(l,m)->(l,p)``: `A` the squares of the frequencies, {A}, `B` and
    `C` the matrices of input and output, `dt` the step of each oscillator, `u` the input; `l` time,
    `n` oscillators, `m` input and `p` output channels; leading axes broadcast. A state is (z, y):
    velocities, then positions. `A`, `dt` and `u` are real, `B`, `C` and states real or complex, of
    single, double or long double precision; the outputs are real, states complex if `B` or the
    first one is. Units: `dt` that of A^-½, `y` those of dt² C B u.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [rusch2024linoss, §2.2].
    """
VJP_DOC = """g_k = (0, Cᴴ dy_k) + Mᵀ g_{k+1};  dM = Re Σ_k g_k x_{k-1}ᴴ,  d(B u_k) = Fᵀ g_k,
    dB = Σ_k d(B u_k) u_kᵀ,  dC = Σ_k dy_k y_kᴴ,  du_k = Re Bᴴ d(B u_k); dA and ddt by the chain
    rule from M and the weights F."""


def _examples(name):
    """One oscillator that only the input moves: A = 0, dt = 1."""
    free = "[0.0], [[1.0]], [[1.0]], [1.0]"
    return {
        "plain": f"""
        >>> refssm.{name}({free}, [[1.0], [0.0], [0.0]]).ravel()  # a free particle
        array([1., 2., 3.])
        """,
        "stateful": f"""
        >>> y, x = refssm.{name}_stateful({free}, [[0.0], [0.0]], [[1.0], [4.0]])
        >>> y.ravel(), x.ravel()
        (array([5., 6.]), array([1., 6.]))
        """,
        "packed": f"""
        >>> refssm.{name}_packed({free}, [[1.0], [0.0], [0.0]], [False, False, True]).ravel()
        array([1., 2., 0.])
        """,
    }


IM = Recurrence(
    name="linoss_im",
    step=Pair(linoss_im_step, linoss_im_step_vjp),
    run=RUN_IM,
    back=BACK_IM,
    signature=SIGNATURE,
    inputs={
        "A": springs,
        "B": input_matrices,
        "C": input_matrices,
        "dt": oscillator_steps,
        "u": real_signals,
    },
    batch=", , , , b",
    state=State("x", "2,n", "b", oscillator_states),
    marks=MARKS,
    linear=("u", "C->y"),
    linear_from_rest=("B",),
    doc="""Re(C y_k),  z_k = z_{k-1} + dt (−A y_k + B u_k),  y_k = y_{k-1} + dt z_k, from rest.
    """
    + DOC.format(A="0 or more"),
    vjp_doc=VJP_DOC,
    examples=_examples("linoss_im"),
    citation="rusch2024linoss, §2.2",
    citation_of_packed="rusch2024linoss, §2.2",
    tags={
        "plain": ("apply_linoss_im", "LinOSS-IM", "LinOSS", "oscillatory state-space model"),
        "stateful": ("LinOSS-IM with the last state",),
        "packed": ("LinOSS-IM packed",),
        "step": ("LinOSS-IM one step",),
    },
)
IMEX = Recurrence(
    name="linoss_imex",
    step=Pair(linoss_imex_step, linoss_imex_step_vjp),
    run=RUN_IMEX,
    back=BACK_IMEX,
    signature=SIGNATURE,
    inputs={**IM.inputs, "A": soft_springs},
    batch=IM.batch,
    state=IM.state,
    marks=MARKS,
    linear=IM.linear,
    linear_from_rest=IM.linear_from_rest,
    doc="""Re(C y_k),  z_k = z_{k-1} + dt (−A y_{k-1} + B u_k),  y_k = y_{k-1} + dt z_k, from rest.
    """
    + DOC.format(A="from 0 to 4/dt²"),
    vjp_doc=VJP_DOC,
    examples=_examples("linoss_imex"),
    citation="rusch2024linoss, §2.2",
    citation_of_packed="rusch2024linoss, §2.2",
    tags={
        "plain": ("apply_linoss_imex", "LinOSS-IMEX", "symplectic Euler oscillators"),
        "stateful": ("LinOSS-IMEX with the last state",),
        "packed": ("LinOSS-IMEX packed",),
        "step": ("LinOSS-IMEX one step",),
    },
)
LINOSS_IM, LINOSS_IM_STATEFUL, LINOSS_IM_PACKED, LINOSS_IM_STEP = IM.operators
LINOSS_IMEX, LINOSS_IMEX_STATEFUL, LINOSS_IMEX_PACKED, LINOSS_IMEX_STEP = IMEX.operators
(
    (linoss_im, linoss_im_vjp),
    (linoss_im_stateful, linoss_im_stateful_vjp),
    (linoss_im_packed, linoss_im_packed_vjp),
    (linoss_im_step, linoss_im_step_vjp),
) = IM.public()
(
    (linoss_imex, linoss_imex_vjp),
    (linoss_imex_stateful, linoss_imex_stateful_vjp),
    (linoss_imex_packed, linoss_imex_packed_vjp),
    (linoss_imex_step, linoss_imex_step_vjp),
) = IMEX.public()
