"""Oracles of memories: what they hold, and what comes back from them."""

# pyright: reportAttributeAccessIssue=false
# (mpmath attaches its functions to the context at import)

from mpmath import mp


def hippo_rescale(A, B, s):
    """A_ik s_i/s_k and s_i B_i."""
    scaled = [
        [a * s_i / s_k for a, s_k in zip(row, s, strict=True)]
        for row, s_i in zip(A, s, strict=True)
    ]
    return scaled, [s_i * b for s_i, b in zip(s, B, strict=True)]


def hippo_project(A, B, u, dt):
    """x_k = Ā x_{k−1} + B̄ u_k, [[Ā, B̄], [0, 1]] = e^{dt [[A, B], [0, 0]]}."""
    n = len(A)
    if not n:
        return [[] for _ in u]
    rows = [[*row, b] for row, b in zip(A, B, strict=True)] + [[mp.zero] * (n + 1)]
    E = mp.expm(dt * mp.matrix(rows))
    x, states = [mp.zero] * n, []
    for u_k in u:
        x = [mp.fsum(E[i, k] * (x[k] if k < n else u_k) for k in range(n + 1)) for i in range(n)]
        states.append(x)
    return states


def hippo_project_legs(u, *, n):
    """√(2i+1)/T Σ_m p_im ∫₀ᵀ u(t) (t/T)^m dt,  P_i(2x − 1) = Σ_m p_im x^m."""
    with mp.extradps(2 * n + 10):  # the terms reach (3 + √8)^n and cancel
        moments, states = [mp.zero] * n, []
        polynomials = [[_shifted(i, m) for m in range(i + 1)] for i in range(n)]
        for k, u_k in enumerate(u):
            T = mp.mpf(k + 1)
            moments = [
                moment + u_k * (T ** (m + 1) - (T - 1) ** (m + 1)) / (m + 1)
                for m, moment in enumerate(moments)
            ]
            of_unit = [moment / T ** (m + 1) for m, moment in enumerate(moments)]
            states.append(
                [
                    mp.sqrt(2 * i + 1) * mp.fdot(p, of_unit[: i + 1])
                    for i, p in enumerate(polynomials)
                ]
            )
        return states


def _shifted(i, m):
    """The coefficient of x^m in P_i(2x − 1)."""
    return (-1) ** (i + m) * mp.binomial(i, m) * mp.binomial(i + m, m)


def hippo_reconstruct_legs(c, s):
    """Σ_i c_i √(2i+1) P_i(1 − 2s)."""
    roots = [mp.sqrt(2 * i + 1) * c_i for i, c_i in enumerate(c)]
    return [mp.fdot(roots, _legendre(1 - 2 * s_l, len(c))) for s_l in s]


def hippo_reconstruct_legt(c, s, *, window=1):
    """Σ_i c_i √(2i+1) P_i(1 − 2s/w)."""
    return hippo_reconstruct_legs(c, [s_l / mp.mpf(window) for s_l in s])


def hippo_reconstruct_lmu(c, s, *, window=1):
    """Σ_i c_i P_i(2s/w − 1)."""
    return [mp.fdot(c, _legendre(2 * s_l / mp.mpf(window) - 1, len(c))) for s_l in s]


def _legendre(x, n):
    """P_0 … P_{n−1} at x."""
    P = [mp.one, x]
    for i in range(1, n):
        P.append(((2 * i + 1) * x * P[i] - i * P[i - 1]) / (i + 1))
    return P[:n]


def hippo_reconstruct_lagt(c, s, *, alpha=0, beta=1):
    """√(Γ(1−α) β^(α−1)) s^α e^{−(1−β)s/2} Σ_i c_i L_i^(α)(s) √(i!/Γ(i+α+1))."""
    alpha, beta = mp.mpf(alpha), mp.mpf(beta)
    size = mp.sqrt(mp.gamma(1 - alpha) * beta ** (alpha - 1))
    scaled = [c_i * mp.sqrt(mp.factorial(i) / mp.gamma(i + alpha + 1)) for i, c_i in enumerate(c)]
    return [
        size
        * s_l**alpha
        * mp.exp((beta - 1) / 2 * s_l)
        * mp.fdot(scaled, _laguerre(s_l, len(c), alpha))
        for s_l in s
    ]


def _laguerre(s, n, alpha):
    """L_0^(α) … L_{n−1}^(α) at s."""
    L = [mp.one, 1 + alpha - s]
    for i in range(1, n):
        L.append(((2 * i + 1 + alpha - s) * L[i] - (i + alpha) * L[i - 1]) / (i + 1))
    return L[:n]


def hippo_reconstruct_fourier(c, s, *, window=1):
    """c_0 + √2 Σ_{k>0} (c_2k cos 2πk s/w + c_2k+1 sin 2πk s/w)."""
    waves = [[_wave(i, s_l / mp.mpf(window)) for i in range(len(c))] for s_l in s]
    return [mp.fdot(c, row) for row in waves]


def _wave(i, turns):
    """Entry i of the basis, s in windows."""
    function = mp.sin if i % 2 else mp.cos
    return (mp.sqrt(2) if i > 1 else 1) * function(2 * mp.pi * (i // 2) * turns)
