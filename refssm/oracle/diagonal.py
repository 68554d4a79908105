"""Oracles for refssm.diagonal."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def diagonal_kernel_zoh(w, B, C, dt, *, l):
    """Σ_n C_n e^{dt w_n k} ∫₀^dt e^{s w_n} ds B_n."""
    return _powers([mp.exp(dt * x) for x in w], _products(C, [_held(x, dt) for x in w], B), l)


def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Σ_n C_n Ā_n^k B̄_n, Ā = (2 + dt w)/(2 − dt w), B̄ = 2 dt B/(2 − dt w)."""
    A_bar = [(2 + dt * x) / (2 - dt * x) for x in w]
    return _powers(A_bar, _products(C, [2 * dt / (2 - dt * x) for x in w], B), l)


def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """2 Re Σ_n C_n e^{dt w_n k} ∫₀^dt e^{s w_n} ds B_n."""
    return [2 * mp.re(k) for k in diagonal_kernel_zoh(w, B, C, dt, l=l)]


def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """2 Re Σ_n C_n Ā_n^k B̄_n, Ā = (2 + dt w)/(2 − dt w), B̄ = 2 dt B/(2 − dt w)."""
    return [2 * mp.re(k) for k in diagonal_kernel_bilinear(w, B, C, dt, l=l)]


def dss_exp_kernel(w, C, dt, *, l):
    """Σ_n C_n (e^{dt w_n} − 1)/w_n e^{dt w_n k}."""
    return diagonal_kernel_zoh(w, [mp.one for _ in w], C, dt, l=l)


def dss_softmax_kernel(w, C, dt, *, l):
    """Σ_n (C_n/w_n) times entry k of the softmax of dt w_n (0, 1, …, l − 1)."""
    if not l:
        return []  # avoids the division by an empty sum
    rows = [[mp.exp(dt * x * k) for k in range(l)] for x in w]
    factors = [c / x / mp.fsum(row) for c, x, row in zip(C, w, rows, strict=True)]
    return [mp.fsum(f * row[k] for f, row in zip(factors, rows, strict=True)) for k in range(l)]


def ema_kernel(delta, alpha, beta, gamma, *, l):
    """Σ_n p β γ q^k / √n, p = σ(δ), q = 1 − σ(δ)σ(α)."""
    p, s = ([1 / (1 + mp.exp(-x)) for x in xs] for xs in (delta, alpha))
    q = [1 - a * b for a, b in zip(p, s, strict=True)]
    scale = 1 / mp.sqrt(len(p)) if p else mp.one
    return [scale * k for k in _powers(q, _products(p, beta, gamma), l)]


def liquid_kernel(a, B, C, *, l, degree=2):
    """Σ_n C_n B_n^d a_n^m."""
    return _powers(a, _products(C, [b**degree for b in B]), l)


def shift_kernel(B, C, *, l):
    """Σ_i B_i C_{i+k}, with C_j = 0 beyond the end."""
    n = len(C)
    return [mp.fsum(B[i] * C[i + k] for i in range(n - k)) for k in range(l)]


def _held(w, dt):
    """∫₀^dt e^{s w} ds."""
    return mp.expm1(dt * w) / w if w else dt


def _products(*factors):
    return [mp.fprod(row) for row in zip(*factors, strict=True)]


def _powers(roots, factors, l):
    """Σ_n f_n r_n^k, 0⁰ = 1."""
    pairs = [*zip(factors, roots, strict=True)]
    return [mp.fsum(f * r**k for f, r in pairs) for k in range(l)]
