"""Oracles for refssm.discretize."""

# pyright: reportAttributeAccessIssue=false
# (mpmath attaches its functions to the context at import)

from mpmath import mp


def discretize_zoh(A, B, dt):
    """[[Ā, B̄], [0, I]] = e^{dt [[A, B], [0, 0]]}."""
    n, m = len(A), len(B[0]) if B else 0
    G = mp.zeros(n + m)
    for i in range(n):
        for k, entry in enumerate([*A[i], *B[i]]):
            G[i, k] = dt * entry
    E = mp.expm(G).tolist() if n else []
    return [row[:n] for row in E[:n]], [row[n:] for row in E[:n]]


def discretize_bilinear(A, B, dt):
    """(I − ½dt A)⁻¹ (I + ½dt A) and (I − ½dt A)⁻¹ dt B."""
    n, m = len(A), len(B[0]) if B else 0
    if n == 0:
        return [], []
    H, I = dt * mp.matrix(A) / 2, mp.eye(n)
    R = mp.inverse(I - H)
    return (R * (I + H)).tolist(), ((R * (dt * mp.matrix(B))).tolist() if m else B)


def discretize_diagonal_zoh(w, B, dt):
    """e^{dt w_n} and ∫₀^dt e^{s w_n} ds B_nm."""
    held = [(mp.expm1(h * w_n) / w_n if w_n else h) for w_n, h in zip(w, dt, strict=True)]
    A_bar = [mp.exp(h * w_n) for w_n, h in zip(w, dt, strict=True)]
    return A_bar, [[g * b for b in row] for g, row in zip(held, B, strict=True)]


def discretize_diagonal_bilinear(w, B, dt):
    """(1 + ½dt w_n) / (1 − ½dt w_n) and dt / (1 − ½dt w_n) B_nm."""
    A_bar = [(2 + h * w_n) / (2 - h * w_n) for w_n, h in zip(w, dt, strict=True)]
    held = [2 * h / (2 - h * w_n) for w_n, h in zip(w, dt, strict=True)]
    return A_bar, [[g * b for b in row] for g, row in zip(held, B, strict=True)]
