"""Oracles for refssm.nplr: Hermitian eigenvectors of the normal part; B fixes the phases."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def nplr_legs(*, n):
    """A_ik = −√((2i+1)(2k+1)) below the diagonal, −(i+1) on it; p_i = √(i+½), b_i = √(2i+1)."""
    q = _legendre_norms(n)
    A = _matrix(n, lambda i, k: -(i + 1) if i == k else -q[i] * q[k] if i > k else 0)
    return _decomposed(A, [[x / mp.sqrt(2)] for x in q], q)


def nplr_legt(*, n, window=1.0):
    """A_ik = −√((2i+1)(2k+1))/w, times (−1)^{i−k} above the diagonal; p from √(2i+1)/√w."""
    window, q = mp.mpf(window), _legendre_norms(n)
    A = _matrix(n, lambda i, k: -q[i] * q[k] * (-1 if i < k and (k - i) % 2 else 1) / window)
    halves = [
        [x / mp.sqrt(window) * (i % 2 == parity) for parity in (1, 0)] for i, x in enumerate(q)
    ]
    return _decomposed(A, halves, [x / window for x in q])


def nplr_lagt(*, n, beta=1.0):
    """A is −(1 + β)/2 on the diagonal and −1 below it; p = √½·1, b = √β·1."""
    beta = mp.mpf(beta)
    A = _matrix(n, lambda i, k: -(1 + beta) / 2 if i == k else -1 if i > k else 0)
    return _decomposed(A, [[mp.sqrt(0.5)]] * n, [mp.sqrt(beta)] * n)


def nplr_fourier(*, n, window=1.0):
    """A = S − 2 c cᵀ/w, p = √(2/w) c, b = 2 c/w, c = (1, 0, √2, 0, √2, …)."""
    return _fourier(n, 2, mp.mpf(window))


def nplr_fourier_naive(*, n, window=1.0):
    """A = S − c cᵀ/w, p = √(1/w) c, b = c/w."""
    return _fourier(n, 1, mp.mpf(window))


def normal_legs(*, n):
    """−½ on the diagonal, ∓½√((2i+1)(2k+1)) below and above it."""
    q, half = _legendre_norms(n), mp.mpf(0.5)
    N = _matrix(n, lambda i, k: -half if i == k else mp.sign(k - i) * half * q[i] * q[k])
    return N.tolist()


def block_diagonal(*, n, blocks):
    """The modes of the normal part of LegS of size n/blocks, once per block."""
    size = n // blocks
    w, _, _, V = nplr_legs(n=size)
    inside = [[i // size == k // size for k in range(n)] for i in range(n)]
    return w * blocks, [[V[i % size][k % size] * inside[i][k] for k in range(n)] for i in range(n)]


def _legendre_norms(n):
    return [mp.sqrt(2 * i + 1) for i in range(n)]


def _fourier(n, factor, window):
    """S has ±2πk/w between the cosine and the sine of frequency k."""
    c = [0 if i % 2 else mp.sqrt(2) if i else mp.one for i in range(n)]
    A = _matrix(n, lambda i, k: -factor * c[i] * c[k] / window)
    for k in range(n // 2):
        A[2 * k, 2 * k + 1] -= 2 * mp.pi * k / window
        A[2 * k + 1, 2 * k] += 2 * mp.pi * k / window
    p = [[mp.sqrt(factor / window) * x] for x in c]
    return _decomposed(A, p, [factor * x / window for x in c])


def _matrix(n, entry):
    return mp.matrix([[mp.mpf(entry(i, k)) for k in range(n)] for i in range(n)])


def _decomposed(A, p, b):
    """w, Vᴴp, Vᴴb and V: the eigenvectors of the normal matrix A + p pᵀ."""
    n, p, b = len(b), mp.matrix(p), mp.matrix(b)
    N = A + p * p.T
    real_part = N[0, 0]  # N is skew, up to a multiple of I
    frequencies, Q = mp.eighe((N - real_part * mp.eye(n)) * mp.mpc(0, -1))
    vectors = [Q[:, j] for j in range(n)]
    for j in range(n - 1):
        if abs(frequencies[j + 1] - frequencies[j]) < mp.mpf(10) ** (-mp.dps // 2):
            vectors[j : j + 2] = _first_along(b, *vectors[j : j + 2])
    V = mp.matrix(n)
    for j, v in enumerate(vectors):
        V[:, j] = v * _phase(v, b)
    w = [mp.mpc(real_part, frequency) for frequency in frequencies]
    return w, (V.H * p).tolist(), [x for (x,) in (V.H * b).tolist()], V.tolist()


def _first_along(b, v, u):
    """The vectors of a double eigenvalue: one along b, and one orthogonal to it."""
    c, d = (v.H * b)[0], (u.H * b)[0]
    size = mp.sqrt(abs(c) ** 2 + abs(d) ** 2)
    return (v * c + u * d) / size, (v * mp.conj(d) - u * mp.conj(c)) / size


def _phase(v, b):
    """The phase that makes vᴴb positive; if vᴴb is 0, the largest entry of v."""
    c = (v.H * b)[0]
    if abs(c) < mp.mpf(10) ** (-mp.dps // 2):
        c = mp.conj(max(v, key=abs))
    return c / abs(c)
