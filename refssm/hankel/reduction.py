"""Smaller systems: from Markov parameters [ho1966, kung1978], by balanced truncation [moore1981].

    H_ij = h_{i+j} = U Σ Vᴴ,  H'_ij = h_{i+j+1}:
    A = Σ^{−½} UᴴH'V Σ^{−½},  B = Σ^½ Vᴴe_0,  C = e_0ᴴU Σ^½

    A_r = S_rᴴ A T_r,  B_r = S_rᴴ B,  C_r = C T_r,  SᴴT = I,  SᴴP S = TᴴQ T = Σ

with the columns of the `order` largest σ. The rank of a Hankel matrix is the number of states
of the smallest system with that response (Kronecker); σ_{r+1} is the distance, in the Hankel norm,
to the nearest system of r states (Adamyan, Arov, Krein), and no system of r states is nearer in the
H-infinity norm [glover1984].
"""

import numpy as np

from refssm._numerics.balance import balanced
from refssm.hankel.gramians import GRAMIANS, HANKEL_SINGULAR_VALUES, stable_system


def numerical_rank(sigma, eps):
    """#{σ_i > ε σ_1}: how many singular values matter relative to the largest.

    `sigma` (…, n) in any order, `eps` (…) at least 0; the result is an array of integers. The
    result is 0 if there are no values, or if all are 0. Raises ValueError for a negative `eps`.

    >>> from refssm import numerical_rank
    >>> int(numerical_rank([4.0, 2.0, 1.0], 0.25))
    2
    """
    sigma, eps = np.asarray(sigma), np.asarray(eps)
    if (eps < 0).any():
        raise ValueError(f"numerical_rank: `eps` must be at least 0, got {eps.min()}")
    largest = sigma.max(-1, keepdims=True, initial=0)
    return (sigma > eps[..., None] * largest).sum(-1)


def ho_kalman(h, order):
    """A, B and C with C A^k B ≈ h_k, `order` states: the eigensystem realization.

    `h` (…, l) are Markov parameters from k = 0 on; the result has shapes (…, r, r), (…, r), (…, r).
    H has ⌊l/2⌋ rows and ⌈l/2⌉ columns, so H' ends with the last of them. For a response of `order`
    states it is exact up to rounding errors, which grow like σ_1/σ_r; a response of fewer states
    has no such realization of full rank.

    Raises ValueError if `order` is not an integer from 1 to ⌊l/2⌋, or H has a smaller rank.
    Source: [ho1966], [kung1978].

    >>> from refssm import ho_kalman
    >>> A, B, C = ho_kalman([3.0, 1.5, 0.75, 0.375], 1)
    >>> A.round(12).tolist(), round(float(B[0] * C[0]), 12)
    ([[0.5]], 3.0)
    """
    h = np.asarray(h)
    h = h if h.dtype.kind in "fc" else h.astype(float)
    rows, columns = h.shape[-1] // 2, h.shape[-1] - h.shape[-1] // 2
    check_order(order, rows, "ho_kalman", f", half of the {h.shape[-1]} values of `h`")
    if not np.isfinite(h).all():
        raise ValueError("ho_kalman: `h` must be finite")
    place = np.add.outer(np.arange(rows), np.arange(columns))
    H, shifted = h[..., place], h[..., np.minimum(place + 1, h.shape[-1] - 1)]
    U, sigma, Vh = np.linalg.svd(H, full_matrices=False)
    if not (sigma[..., order - 1] > 0).all():
        raise ValueError(f"ho_kalman: `h` has a Hankel matrix of a rank below order={order}")
    root = np.sqrt(sigma[..., :order])
    U, V = U[..., :order], Vh[..., :order, :].conj().swapaxes(-1, -2)
    A = U.conj().swapaxes(-1, -2) @ shifted @ V / root[..., :, None] / root[..., None, :]
    return A, root * V[..., 0, :].conj(), root * U[..., 0, :]


def balanced_truncation(A, B, C, order):
    """A_r, B_r and C_r: the `order` states with the largest Hankel singular values.

    Signature ``(n,n),(n),(n)->(r,r),(r),(r)`` of a continuous system, all Re λ(A) < 0. The smaller
    system is stable if σ_r > σ_{r+1}, and ‖G − G_r‖∞ is at most `balanced_truncation_bound`. Types
    and errors are those of `hankel_singular_values`: states whose σ is below √(u ‖P‖ ‖Q‖) are
    rounding errors.

    Raises ValueError if `order` is not an integer from 1 to n, sizes disagree, or an eigenvalue is
    not left of the imaginary axis. Source: [moore1981].

    >>> from refssm import balanced_truncation
    >>> A, B, C = balanced_truncation([[-1.0, 0.0], [0.0, -2.0]], [1.0, 0.0], [3.0, 1.0], 1)
    >>> A.round(12).tolist(), round(float(B[0] * C[0]), 12)
    ([[-1.0]], 3.0)
    """
    A, B, C = stable_system("balanced_truncation", A, B, C)
    check_order(order, A.shape[-1], "balanced_truncation")
    _, S, T = balanced(*GRAMIANS.reference(A, B, C))
    left, T = S[..., :order].conj().swapaxes(-1, -2), T[..., :order]
    return left @ A @ T, (left @ B[..., None])[..., 0], (C[..., None, :] @ T)[..., 0, :]


def balanced_truncation_bound(A, B, C, order):
    """2 Σ_{i>r} σ_i ≥ ‖G − G_r‖∞, r = `order` [enns1984, glover1984].

    The sharper form of the theorem counts equal values once; this bound counts all of them.
    Arguments and errors are those of `balanced_truncation`; the result has the leading axes, (…).
    """
    A, B, C = stable_system("balanced_truncation_bound", A, B, C)
    sigma = HANKEL_SINGULAR_VALUES.reference(A, B, C)
    check_order(order, sigma.shape[-1], "balanced_truncation_bound")
    return 2 * sigma[..., order:].sum(-1)


def check_order(order, most, name, why=""):
    """ValueError unless `order` is an integer from 1 to `most`."""
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not (whole and 1 <= order <= most):
        raise ValueError(f"{name}: `order` must be an integer from 1 to {most}{why}, got {order!r}")
