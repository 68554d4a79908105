"""Honest DPLR kernels of conjugate pairs: both halves, S4's own steps, real and imaginary parts."""

import numpy as np

from honest import Honest
from honest.dplr.kernel import (
    DAMPED,
    PLAIN,
    by_lapack,
    dense_at_nodes_aliased,
    doubled,
    fast,
    from_all_starts,
    gentle,
    in_double,
    moderate,
    recurrent,
    solve,
    steps_of_low_rank,
)
from honest.dplr.vjp import dense_at_nodes_vjp, recurrent_vjp
from refssm._numerics.roots import roots_of_unity
from refssm.dplr import (
    DPLR_KERNEL,
    DPLR_KERNEL_ALIASED,
    DPLR_KERNEL_ALIASED_REAL,
    DPLR_KERNEL_REAL,
)
from refssm.dplr.pairs import both_halves, of_stored
from refssm.dplr.system import matrix


def _of_both(form):
    """A kernel of all modes, for both halves."""

    def kernel(w, P, Q, B, C, dt, *, l):
        return form(*both_halves(w, P, Q, B, C), dt, l=l).real.copy()

    return kernel


def _vjp_of_both(vjp):
    """A gradient of the kernel of all modes, folded onto the stored half."""
    return lambda dk, *arrays, l: of_stored(*vjp(dk, *both_halves(*arrays[:-1]), arrays[-1], l=l))


def _precision(*arrays):
    return np.finfo(np.result_type(*arrays)).dtype


def halves_in_time(w, P, Q, B, C, dt, *, l):
    """S4's recurrent mode with halves: (2/dt + A) x, then Woodbury's identity; Re Qᴴ x couples."""
    h, rank = 2 / dt[..., None], np.eye(P.shape[-1], dtype=P.real.dtype)
    D, Q_adjoint = 1 / (h - w), Q.conj().swapaxes(-1, -2)
    DP = D[..., None] * P
    kept = solve(rank + 2 * (Q_adjoint @ DP).real, rank)

    def met(x):
        return 2 * (Q_adjoint @ x[..., None]).real

    def solved(y):
        y = D * y
        return y - (DP @ (kept @ met(y)))[..., 0]

    x = 2 * solved(B)
    batch = np.broadcast_shapes(x.shape[:-1], C.shape[:-1])
    K = np.zeros((*batch, l), _precision(w, P, Q, B, C, dt))
    for k in range(l):
        K[..., k] = 2 * (C * x).sum(-1).real
        x = solved((h + w) * x - (P @ met(x))[..., 0])
    return K


def parts(w, P, Q, B, C, dt, *, l):
    """The real system of real and imaginary parts, one product of a dense matrix a step."""
    P_2, Q_2 = (np.concatenate([F.real, F.imag], axis=-2) for F in (P, Q))
    B_2, C_2 = (np.concatenate([x.real, x.imag], axis=-1) for x in (B, C.conj()))
    re, im = (x[..., None] * np.eye(w.shape[-1], dtype=w.real.dtype) for x in (w.real, w.imag))
    turning = np.concatenate([np.concatenate([re, -im], -1), np.concatenate([im, re], -1)], -2)
    A, h = turning - 2 * P_2 @ Q_2.swapaxes(-1, -2), dt[..., None, None]
    I = np.eye(A.shape[-1], dtype=A.dtype)
    M = I - h * A / 2
    A_bar, x = solve(M, I + h * A / 2), solve(M, h * B_2[..., None])
    batch = np.broadcast_shapes(x.shape[:-2], C_2.shape[:-1])
    K = np.zeros((*batch, l), _precision(w, P, Q, B, C, dt))
    for k in range(l):
        K[..., k] = 2 * (C_2 * x[..., 0]).sum(-1)
        x = A_bar @ x
    return K


def _of_half_circle(C, w, P, Q, B, dt, l):
    """S4's way: sums over pairs at l/2 + 1 nodes, and an inverse transform to real numbers."""
    precision = _precision(C, w, P, Q, B, dt)
    if l == 0:
        return np.zeros((*np.broadcast_shapes(C.shape[:-1], dt.shape), 0), precision)
    z = roots_of_unity(l, precision.type)[: l // 2 + 1, None]
    g, s = 2 * (1 - z) / dt[..., None, None], 1 + z
    left = np.concatenate([_row(C), Q.conj().swapaxes(-1, -2)], axis=-2)[..., None, :]
    right = np.concatenate([_row(B), P.swapaxes(-1, -2)], axis=-2)[..., None, :, :]
    v = (left * right)[..., None, :]  # (…, 1 + r, 1 + r, 1, n)
    D, D_of_partner = ((g - s * x[..., None, :])[..., None, None, :, :] for x in (w, w.conj()))
    S = (v / D).sum(-1) + (v.conj() / D_of_partner).sum(-1)
    S = np.moveaxis(S, -1, -3)  # (…, l, 1 + r, 1 + r)
    I = np.eye(P.shape[-1], dtype=precision)
    met = solve(I + s[..., None] * S[..., 1:, 1:], S[..., 1:, :1])
    spectrum = 2 * (S[..., 0, 0] - s[:, 0] * (S[..., :1, 1:] @ met)[..., 0, 0])
    return np.fft.irfft(spectrum, l).astype(precision)


def _row(x):
    return x[..., None, :]


def half_circle(w, P, Q, B, C, dt, *, l):
    """S4's way with the half of C₂ (I − Ā₂^l)."""
    w_2, P_2, Q_2, _, C_2 = both_halves(w, P, Q, B, C)
    A, h = matrix(w_2, P_2, Q_2), dt[..., None, None]
    I = np.eye(A.shape[-1], dtype=A.real.dtype)
    A_bar = solve(I - h * A / 2, I + h * A / 2)
    C_tilde = (C_2[..., None, :] @ (I - np.linalg.matrix_power(A_bar, l)))[..., 0, :]
    return _of_half_circle(C_tilde[..., : w.shape[-1]], w, P, Q, B, dt, l)


def half_circle_aliased(w, P, Q, B, C, dt, *, l):
    """S4's way with C as it is."""
    return _of_half_circle(C, w, P, Q, B, dt, l)


WHOLE, ALIASED = DPLR_KERNEL_REAL, DPLR_KERNEL_ALIASED_REAL
OPS = ((WHOLE, DPLR_KERNEL), (ALIASED, DPLR_KERNEL_ALIASED))

IMPLEMENTATIONS = [
    *(
        Honest(op.name, "in_double", _of_both(in_double(all_modes.reference)))
        for op, all_modes in OPS
    ),
    Honest(
        WHOLE.name,
        "recurrent",
        _of_both(recurrent),
        _vjp_of_both(recurrent_vjp),
        # LAPACK's Ā errs by κ(I − ½dt A) u, and slow modes by as much in each step
        only=moderate(dict),
    ),
    Honest(WHOLE.name, "doubled", _of_both(doubled), only=by_lapack),
    Honest(WHOLE.name, "parts", parts, only=by_lapack),
    Honest(WHOLE.name, "steps_of_low_rank", _of_both(steps_of_low_rank)),
    Honest(WHOLE.name, "halves_in_time", halves_in_time),
    *(Honest(WHOLE.name, form.__name__, _of_both(form), only=moderate(fast)) for form in DAMPED),
    Honest(WHOLE.name, "half_circle", half_circle, only=moderate(fast)),
    *(Honest(ALIASED.name, form.__name__, _of_both(form)) for form in PLAIN),
    Honest(ALIASED.name, "half_circle", half_circle_aliased),
    Honest(ALIASED.name, "from_all_starts", _of_both(from_all_starts), only=moderate(gentle)),
    Honest(
        ALIASED.name,
        "dense_at_nodes",
        _of_both(dense_at_nodes_aliased),
        _vjp_of_both(dense_at_nodes_vjp),
        # of wide modes LAPACK's elimination loses digits in norm that Woodbury's identity keeps
        only=moderate(gentle),
    ),
]
