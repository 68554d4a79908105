"""Oracles for refssm.dplr."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """C Ā^k B̄, with A as a full matrix and the bilinear map."""
    if not w:
        return [mp.zero] * l
    A_bar, x = _bilinear(w, P, Q, B, dt)
    return _responses(A_bar, x, C, l)


def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Σ_m C Ā^{k + ml} B̄ = C Ā^k (I − Ā^l)⁻¹ B̄."""
    if not (w and l):
        return [mp.zero] * l
    A_bar, x = _bilinear(w, P, Q, B, dt)
    x = mp.lu_solve(mp.eye(len(w)) - A_bar**l, x)
    return _responses(A_bar, x, C, l)


def _bilinear(w, P, Q, B, dt):
    """Ā = (I − ½dt A)⁻¹ (I + ½dt A) and B̄ = (I − ½dt A)⁻¹ dt B."""
    n, I = len(w), mp.eye(len(w))
    A = mp.diag(w)
    for i in range(n):
        for k in range(n):
            A[i, k] -= mp.fsum(p * mp.conj(q) for p, q in zip(P[i], Q[k], strict=True))
    M = mp.inverse(I - dt * A / 2)
    return M * (I + dt * A / 2), M * (dt * mp.matrix(B))


def _responses(A_bar, x, C, l):
    """C x, C Ā x, …"""
    K = []
    for _ in range(l):
        K.append(mp.fsum(c * x_n for c, x_n in zip(C, x, strict=True)))
        x = A_bar * x
    return K
