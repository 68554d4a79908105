"""Enclosures for refssm.diagonal: sums of powers, with φ_1 for the input."""

from flint import acb, arb

from refssm.enclosure.algebra import phi, product


def diagonal_kernel_zoh(w, B, C, dt, *, l):
    """Σ_n (e^{dt w_n})^k C_n dt φ_1(dt w_n) B_n."""
    terms = zip(w, B, C, strict=True)
    return _sums([((x * dt).exp(), dt * phi(1, x * dt) * b * c) for x, b, c in terms], l)


def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Σ_n ((1 + z_n)/(1 − z_n))^k C_n B_n dt/(1 − z_n), z = dt w/2."""
    terms = [(x * dt / 2, b * c) for x, b, c in zip(w, B, C, strict=True)]
    return _sums([((1 + z) / (1 - z), f * dt / (1 - z)) for z, f in terms], l)


def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """Σ over the modes and their conjugates."""
    return _with_conjugates(diagonal_kernel_zoh, w, B, C, dt, l)


def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """Σ over the modes and their conjugates."""
    return _with_conjugates(diagonal_kernel_bilinear, w, B, C, dt, l)


def _with_conjugates(kernel, w, B, C, dt, l):
    """The kernel of the modes (w, w̄) with (B, B̄) and (C, C̄): real, but for its radius."""
    both = ([*x, *(acb(y).conjugate() for y in x)] for x in (w, B, C))
    return [acb(k).real for k in kernel(*both, dt, l=l)]


def dss_exp_kernel(w, C, dt, *, l):
    """Σ_n (e^{dt w_n})^k C_n dt φ_1(dt w_n)."""
    return _sums([((x * dt).exp(), c * dt * phi(1, x * dt)) for x, c in zip(w, C, strict=True)], l)


def dss_softmax_kernel(w, C, dt, *, l):
    """Σ_n q_n^k C_n/(w_n (1 + q_n (1 + q_n (1 + …)))), q = e^{dt w}."""
    terms = []
    for x, c in zip(w, C, strict=True):
        q, row = (x * dt).exp(), acb(0)
        for _ in range(l):
            row = 1 + q * row
        terms.append((q, c / (x * row)))
    return _sums(terms, l)


def ema_kernel(delta, alpha, beta, gamma, *, l):
    """Σ_n p β γ q^k/√n, p = (1 + tanh δ/2)/2, q = 1 − p (1 + tanh α/2)/2."""
    p, s = ([(1 + (x / 2).tanh()) / 2 for x in xs] for xs in (delta, alpha))
    scale = arb(len(p)).rsqrt() if p else arb(1)
    rows = zip(p, s, beta, gamma, strict=True)
    return _sums([(1 - p_n * s_n, scale * b * c * p_n) for p_n, s_n, b, c in rows], l)


def liquid_kernel(a, B, C, *, l, degree=2):
    """The same, each power from the one before."""
    rows = zip(a, B, C, strict=True)
    return _sums([(q, c * b**degree) for q, b, c in rows], l)


def shift_kernel(B, C, *, l):
    """The coefficients of x^{n−1} B(1/x) C(x), from x^{n−1} on."""
    n = len(C)
    found = product(B[::-1], C, 2 * n)[max(n - 1, 0) :]
    return [found[k] if k < n else 0 for k in range(l)]


def _sums(terms, l):
    """Σ_n f_n q_n^k for pairs (q, f); each power from the one before."""
    K = []
    for _ in range(l):
        K.append(sum((f for _, f in terms), acb(0)))
        terms = [(q, f * q) for q, f in terms]
    return K
