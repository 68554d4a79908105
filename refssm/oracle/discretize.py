"""Oracles for refssm.discretize."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def discretize_zoh(A, B, dt):
    """[[Ā, B̄], [0, I]] = e^{dt [[A, B], [0, 0]]}."""
    return tuple(_exponential(A, [B], dt))


def discretize_foh(A, B, dt):
    """e^[[dt A, dt B, 0], [0, 0, I], [0, 0, 0]] = [[Ā, B̄₀ + B̄₁, B̄₀], …]."""
    A_bar, both, B0_bar = _exponential(A, [B, _zeros(B)], dt, ahead=True)
    pairs = zip(both, B0_bar, strict=True)
    return A_bar, B0_bar, [[s - e for s, e in zip(*rows, strict=True)] for rows in pairs]


def discretize_impulse(A, B, dt):
    """e^{dt A} and B."""
    return *_exponential(A, [], dt), B


def discretize_mamba(A, B, dt):
    """e^{dt A} and dt B."""
    return discretize_impulse(A, B, dt)[0], [[dt * b for b in row] for row in B]


def _exponential(A, columns, dt, ahead=False):
    """The blocks of the first n rows of e^G; the first n rows of G are dt A and dt · columns.

    With `ahead`, an I block makes the first block of columns the derivative of the second; else 0.
    """
    n, widths = len(A), [len(block[0]) if block else 0 for block in columns]
    G, start = mp.zeros(n + sum(widths)), 0
    for block, width in zip([A, *columns], [n, *widths], strict=True):
        for i, row in enumerate(block):
            for k, entry in enumerate(row):
                G[i, start + k] = dt * entry
        start += width
    for j in range(widths[0] if ahead else 0):
        G[n + j, n + widths[0] + j] = 1
    E, blocks, start = (mp.expm(G).tolist() if n else []), [], 0
    for width in (n, *widths):
        blocks.append([row[start : start + width] for row in E[:n]])
        start += width
    return blocks


def _zeros(B):
    return [[mp.zero for _ in row] for row in B]


def discretize_gbt(A, B, dt, *, alpha):
    """(I − α dt A)⁻¹ (I + (1 − α) dt A) and (I − α dt A)⁻¹ dt B."""
    n, m = len(A), len(B[0]) if B else 0
    if n == 0:
        return [], []
    alpha, F, I = mp.mpf(alpha), dt * mp.matrix(A), mp.eye(n)
    R = mp.inverse(I - alpha * F)
    A_bar = R * (I + (1 - alpha) * F)
    return A_bar.tolist(), ((R * (dt * mp.matrix(B))).tolist() if m else B)


def discretize_euler(A, B, dt):
    """I + dt A and dt B."""
    A_bar = [[int(i == k) + dt * a for k, a in enumerate(row)] for i, row in enumerate(A)]
    return A_bar, [[dt * b for b in row] for row in B]


def discretize_bilinear(A, B, dt):
    """(I − ½dt A)⁻¹ (I + ½dt A) and (I − ½dt A)⁻¹ dt B."""
    return discretize_gbt(A, B, dt, alpha=0.5)


def discretize_backward(A, B, dt):
    """(I − dt A)⁻¹ and (I − dt A)⁻¹ dt B."""
    return discretize_gbt(A, B, dt, alpha=1)


def discretize_diagonal_zoh(w, B, dt):
    """e^{dt w_n} and ∫₀^dt e^{s w_n} ds B_nm."""
    return _exponentials(w, dt), _times(map(_held, w, dt), B)


def discretize_diagonal_foh(w, B, dt):
    """e^{dt w_n}, and ∫₀^dt e^{(dt − s) w_n} s/dt ds B_nm, and the same with 1 − s/dt."""
    ends = [_joined(w_n, h) for w_n, h in zip(w, dt, strict=True)]
    starts = [_held(w_n, h) - end for w_n, h, end in zip(w, dt, ends, strict=True)]
    return _exponentials(w, dt), _times(ends, B), _times(starts, B)


def discretize_diagonal_impulse(w, B, dt):
    """e^{dt w_n} and B."""
    return _exponentials(w, dt), B


def discretize_diagonal_mamba(w, B, dt):
    """e^{dt w_n} and dt_n B_nm."""
    return _exponentials(w, dt), _times(dt, B)


def discretize_diagonal_gbt(w, B, dt, *, alpha):
    """(1 + (1 − α) dt w_n) / (1 − α dt w_n) and dt / (1 − α dt w_n) B_nm."""
    alpha, z = mp.mpf(alpha), [h * w_n for w_n, h in zip(w, dt, strict=True)]
    A_bar = [(1 + (1 - alpha) * x) / (1 - alpha * x) for x in z]
    return A_bar, _times([h / (1 - alpha * x) for x, h in zip(z, dt, strict=True)], B)


def discretize_diagonal_euler(w, B, dt):
    """1 + dt w_n and dt_n B_nm."""
    return discretize_diagonal_gbt(w, B, dt, alpha=0)


def discretize_diagonal_bilinear(w, B, dt):
    """(1 + ½dt w_n) / (1 − ½dt w_n) and dt / (1 − ½dt w_n) B_nm."""
    return discretize_diagonal_gbt(w, B, dt, alpha=0.5)


def discretize_diagonal_backward(w, B, dt):
    """1 / (1 − dt w_n) and dt / (1 − dt w_n) B_nm."""
    return discretize_diagonal_gbt(w, B, dt, alpha=1)


def _exponentials(w, dt):
    return [mp.exp(h * w_n) for w_n, h in zip(w, dt, strict=True)]


def _held(w, dt):
    """∫₀^dt e^{s w} ds."""
    return mp.expm1(dt * w) / w if w else dt


def _joined(w, dt):
    """∫₀^dt e^{(dt − s) w} s/dt ds; uses extra digits, because of cancellation near w = 0."""
    z = dt * w
    if not z:
        return dt / 2
    with mp.extradps(max(0, -2 * int(mp.log10(abs(z)))) + 5):
        return dt * (mp.expm1(z) - z) / z**2


def _times(factors, B):
    return [[g * b for b in row] for g, row in zip(factors, B, strict=True)]
