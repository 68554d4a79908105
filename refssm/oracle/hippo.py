"""Oracles for refssm.hippo: (A, B) of measures, states of a memory, and reconstructed signals."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def _matrix(n, entry):
    return [[mp.mpf(entry(i, k)) for k in range(n)] for i in range(n)]


def hippo_legs(*, n):
    """A_ik = −√((2i+1)(2k+1)), −(i+1), 0 below, on and above the diagonal; B_i = √(2i+1)."""
    B = [mp.sqrt(2 * i + 1) for i in range(n)]
    return _matrix(n, lambda i, k: -B[i] * B[k] if i > k else -(i + 1) * (i == k)), B


def hippo_legt(*, n, window):
    """A_ik = −√((2i+1)(2k+1))/w and times (−1)^{i−k} if k > i; B_i = √(2i+1)/w."""
    w, r = mp.mpf(window), [mp.sqrt(2 * i + 1) for i in range(n)]
    A = _matrix(n, lambda i, k: -r[i] * r[k] * (-1) ** max(0, k - i) / w)
    return A, [r_i / w for r_i in r]


def hippo_lmu(*, n, window):
    """A_ik = (2i+1)/w times −1 if i < k, else (−1)^{i−k+1}; B_i = (−1)^i (2i+1)/w."""
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
    """A_ik = −(4i/w) (times 1/√2 if k = 0) for k < i, i − k odd; B = (2√2/(πw)) (1, √2, √2, …)."""
    w, halved = mp.mpf(window), [mp.sqrt(mp.mpf(1) / 2)] + [mp.mpf(1)] * (n - 1)
    A = _matrix(n, lambda i, k: -4 * i * halved[k] / w if k < i and (i - k) % 2 else 0)
    return A, [2 * mp.sqrt(2) / (mp.pi * w) * (mp.sqrt(2) if i else 1) for i in range(n)]


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
    with mp.extradps(2 * n + 10):  # the terms grow to (3 + √8)^n and cancel
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
    """Entry i of the basis; `turns` is s in units of the window."""
    function = mp.sin if i % 2 else mp.cos
    return (mp.sqrt(2) if i > 1 else 1) * function(2 * mp.pi * (i // 2) * turns)


def hippo_scaled_euler(A, B, x, u, time, *, p):
    """x + (A x + B uᵀ)/(p t)."""
    return _scaled_side(A, B, x, u, time, p, 1)


def hippo_scaled_bilinear(A, B, x, u, time, *, p):
    """(I − ½h A)⁻¹ (x + ½h A x + h B uᵀ)."""
    return _scaled_step(A, B, x, u, time, p, mp.mpf(1) / 2)


def hippo_scaled_backward(A, B, x, u, time, *, p):
    """(I − h A)⁻¹ (x + h B uᵀ)."""
    return _scaled_step(A, B, x, u, time, p, mp.one)


def _scaled_step(A, B, x, u, time, p, alpha):
    if not (A and u):
        return x
    h = 1 / (mp.mpf(p) * time)
    side = _scaled_side(A, B, x, u, time, p, 1 - alpha)
    return (mp.inverse(mp.eye(len(A)) - alpha * h * mp.matrix(A)) * mp.matrix(side)).tolist()


def _scaled_side(A, B, x, u, time, p, share):
    """x + h (share · A x + B uᵀ),  h = 1/(p t)."""
    h, columns = 1 / (mp.mpf(p) * time), list(zip(*x, strict=True))
    return [
        [
            x_ij + h * (share * mp.fdot(row, column) + b * u_j)
            for x_ij, column, u_j in zip(x_i, columns, u, strict=True)
        ]
        for x_i, row, b in zip(x, A, B, strict=True)
    ]
