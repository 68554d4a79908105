"""Oracles for refssm.hippo: nested lists A and B of mpmath numbers."""

from mpmath import mp


def _matrix(n, entry):
    return [[mp.mpf(entry(i, k)) for k in range(n)] for i in range(n)]


def hippo_legs(*, n):
    """A_ik = −√((2i+1)(2k+1)), −(i+1), 0 below, on and above the diagonal; B_i = √(2i+1)."""
    B = [mp.sqrt(2 * i + 1) for i in range(n)]
    return _matrix(n, lambda i, k: -B[i] * B[k] if i > k else -(i + 1) * (i == k)), B


def hippo_legt(*, n, window):
    """A_ik = −√((2i+1)(2k+1))/w (−1)^{i−k where k > i}; B_i = √(2i+1)/w."""
    w, r = mp.mpf(window), [mp.sqrt(2 * i + 1) for i in range(n)]
    A = _matrix(n, lambda i, k: -r[i] * r[k] * (-1) ** max(0, k - i) / w)
    return A, [r_i / w for r_i in r]


def hippo_lmu(*, n, window):
    """A_ik = (2i+1)/w {−1 where i < k, (−1)^{i−k+1} elsewhere}; B_i = (−1)^i (2i+1)/w."""
    w = mp.mpf(window)
    A = _matrix(n, lambda i, k: (2 * i + 1) * (-1 if i < k else (-1) ** (i - k + 1)) / w)
    return A, [(-1) ** i * (2 * i + 1) / w for i in range(n)]


def hippo_lagt(*, n, alpha, beta):
    """A = L⁻¹A₀L, B_i = binom(i+α, i) Γ(1−α)^{−½} β^{(1−α)/2} / L_i, L_i² = Γ(i+α+1)/i!."""
    a, b = mp.mpf(alpha), mp.mpf(beta)
    L = [mp.sqrt(mp.gamma(i + a + 1) / mp.factorial(i)) for i in range(n)]
    A = _matrix(n, lambda i, k: -(1 + b) / 2 if i == k else -L[k] / L[i] if i > k else 0)
    g = b ** ((1 - a) / 2) / mp.sqrt(mp.gamma(1 - a))
    return A, [mp.binomial(i + a, i) * g / L[i] for i in range(n)]


def _fourier(n, w, ends):
    """S − ends·b bᵀ and b."""
    b = [0 if i % 2 else mp.sqrt(2) if i else mp.mpf(1) for i in range(n)]

    def entry(i, k):
        turn = {(0, 1): -1, (1, 0): 1}.get((i % 2, k % 2), 0) if i // 2 == k // 2 else 0
        return turn * 2 * mp.pi * (i // 2) / w - ends * b[i] * b[k]

    return _matrix(n, entry), b


def hippo_fourier(*, n, window):
    """A = S − 2 b bᵀ/w; B = 2 b/w."""
    w = mp.mpf(window)
    A, b = _fourier(n, w, 2 / w)
    return A, [2 * b_i / w for b_i in b]


def hippo_fourier_naive(*, n, window):
    """A = S − b bᵀ/w; B = b/w."""
    w = mp.mpf(window)
    A, b = _fourier(n, w, 1 / w)
    return A, [b_i / w for b_i in b]


def hippo_fourier_diagonal(*, n):
    """A = S − ½I for w = 1; B = b."""
    S, b = _fourier(n, mp.mpf(1), 0)
    return _matrix(n, lambda i, k: S[i][k] - mp.mpf(i == k) / 2), b


def hippo_chebt(*, n, window):
    """A_ik = −(4i/w) {1/√2 where k = 0} for k < i, i − k odd; B = (2√2/(πw)) (1, √2, √2, …)."""
    w, halved = mp.mpf(window), [mp.sqrt(mp.mpf(1) / 2)] + [mp.mpf(1)] * (n - 1)
    A = _matrix(n, lambda i, k: -4 * i * halved[k] / w if k < i and (i - k) % 2 else 0)
    return A, [2 * mp.sqrt(2) / (mp.pi * w) * (mp.sqrt(2) if i else 1) for i in range(n)]
