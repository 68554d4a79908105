"""Enclosures for refssm.discretize by φ_0 = e^z, φ_{k+1} = (φ_k − 1/k!)/z."""

from flint import arb

from refssm.enclosure.algebra import identity, matrix, phi


def discretize_zoh(A, B, dt):
    """φ_0(dt A) and φ_1(dt A) dt B."""
    A_bar, one = _phis(A, dt, 1)
    return A_bar, _times(one, B, dt)


def discretize_foh(A, B, dt):
    """φ_0(dt A), φ_2(dt A) dt B and (φ_1 − φ_2)(dt A) dt B."""
    A_bar, one, two = _phis(A, dt, 2)
    rest = [[s - t for s, t in zip(*rows, strict=True)] for rows in zip(one, two, strict=True)]
    return A_bar, _times(two, B, dt), _times(rest, B, dt)


def discretize_impulse(A, B, dt):
    """φ_0(dt A) and B."""
    return _phis(A, dt, 0)[0], B


def discretize_mamba(A, B, dt):
    """φ_0(dt A) and dt B."""
    return _phis(A, dt, 0)[0], [[b * dt for b in row] for row in B]


def _phis(A, dt, last):
    """φ_0 … φ_last of dt A: the first rows of e^[[dt A, I, 0], [0, 0, I], [0, 0, 0]]."""
    n = len(A)
    if not n:
        return [[] for _ in range(last + 1)]
    rows = [[0] * (n * (last + 1)) for _ in range(n * (last + 1))]
    for i in range(n):
        for k in range(n):
            rows[i][k] = A[i][k] * dt
        for j in range(last):
            rows[j * n + i][(j + 1) * n + i] = 1
    E = matrix(rows).exp().tolist()
    return [[row[j * n : (j + 1) * n] for row in E[:n]] for j in range(last + 1)]


def _times(M, B, dt=1):
    """M B dt."""
    if not (B and B[0]):
        return B
    return (matrix(M) * matrix([[b * dt for b in row] for row in B])).tolist()


def discretize_gbt(A, B, dt, *, alpha):
    """Solve (I − α dt A) X = [I + (1 − α) dt A, dt B]."""
    n, alpha = len(A), arb(alpha)
    if not n:
        return [], []
    F = matrix([[a * dt for a in row] for row in A])
    M, N = identity(n) - F * alpha, identity(n) + F * (1 - alpha)
    A_bar = M.solve(N).tolist()
    return A_bar, M.solve(matrix([[b * dt for b in row] for row in B])).tolist() if B[0] else B


def discretize_euler(A, B, dt):
    """I + dt A and dt B, entry by entry."""
    A_bar = [[int(i == k) + a * dt for k, a in enumerate(row)] for i, row in enumerate(A)]
    return A_bar, [[b * dt for b in row] for row in B]


def discretize_bilinear(A, B, dt):
    """Solve (2I − dt A) X = [2I + dt A, 2 dt B]: α = ½."""
    return discretize_gbt(A, B, dt, alpha=arb(1) / 2)


def discretize_backward(A, B, dt):
    """Solve (I − dt A) X = [I, dt B]: α = 1."""
    return discretize_gbt(A, B, dt, alpha=1)


def discretize_diagonal_zoh(w, B, dt):
    """φ_0(dt w_n) and φ_1(dt w_n) dt B_nm."""
    return _exponentials(w, dt), _rows([_held(1, *pair) for pair in _pairs(w, dt)], B)


def discretize_diagonal_foh(w, B, dt):
    """φ_0, φ_2 dt B and (φ_1 − φ_2) dt B, of dt w."""
    ends = [_held(2, *pair) for pair in _pairs(w, dt)]
    starts = [_held(1, *pair) - end for pair, end in zip(_pairs(w, dt), ends, strict=True)]
    return _exponentials(w, dt), _rows(ends, B), _rows(starts, B)


def discretize_diagonal_impulse(w, B, dt):
    """φ_0(dt w_n) and B."""
    return _exponentials(w, dt), B


def discretize_diagonal_mamba(w, B, dt):
    """φ_0(dt w_n) and dt_n B_nm."""
    return _exponentials(w, dt), _rows(dt, B)


def discretize_diagonal_gbt(w, B, dt, *, alpha):
    """1 + dt w_n/(1 − α dt w_n), and dt B/(1 − α dt w_n)."""
    steps = [h / (1 - alpha * (h * x)) for x, h in _pairs(w, dt)]
    return [1 + step * x for x, step in zip(w, steps, strict=True)], _rows(steps, B)


def discretize_diagonal_euler(w, B, dt):
    """1 + dt w_n and dt_n B_nm."""
    return discretize_diagonal_gbt(w, B, dt, alpha=arb(0))


def discretize_diagonal_bilinear(w, B, dt):
    """α = ½."""
    return discretize_diagonal_gbt(w, B, dt, alpha=arb(1) / 2)


def discretize_diagonal_backward(w, B, dt):
    """α = 1."""
    return discretize_diagonal_gbt(w, B, dt, alpha=arb(1))


def _pairs(w, dt):
    return list(zip(w, dt, strict=True))


def _exponentials(w, dt):
    return [phi(0, x * h) for x, h in _pairs(w, dt)]


def _held(k, w, dt):
    """dt φ_k(dt w)."""
    return dt * phi(k, dt * w)


def _rows(factors, B):
    return [[b * factor for b in row] for factor, row in zip(factors, B, strict=True)]
