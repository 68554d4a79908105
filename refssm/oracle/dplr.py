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


def dplr_kernel_real(w, P, Q, B, C, dt, *, l):
    """`dplr_kernel` of the modes, rows and coefficients with their conjugates behind them."""
    return [mp.re(K) for K in dplr_kernel(*_both(w, P, Q, B, C), dt, l=l)]


def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """`dplr_kernel_aliased` of the same."""
    return [mp.re(K) for K in dplr_kernel_aliased(*_both(w, P, Q, B, C), dt, l=l)]


def _both(w, P, Q, B, C):
    """Each list with the conjugates of its entries behind them."""
    P, Q = ([*F, *([mp.conj(x) for x in row] for row in F)] for F in (P, Q))
    w, B, C = ([*x, *map(mp.conj, x)] for x in (w, B, C))
    return w, P, Q, B, C


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
