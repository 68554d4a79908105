"""Enclosures for refssm.hippo: the same entries from other closed forms."""

from itertools import pairwise

from flint import acb, arb, fmpq

from refssm.enclosure.algebra import dot, identity, matrix, product
from refssm.enclosure.discretize import discretize_zoh


def _grid(n, entry):
    return [[entry(i, k) for k in range(n)] for i in range(n)]


def hippo_legs(*, n):
    """−√((2i+1)(2k+1)) below the diagonal, with one root of the product."""
    A = _grid(n, lambda i, k: -_root((2 * i + 1) * (2 * k + 1)) if k < i else -(i + 1) * (i == k))
    return A, [_root(2 * i + 1) for i in range(n)]


def hippo_legt(*, n, window):
    """−√((2i+1)(2k+1))/w, times (−1)^{i+k} above the diagonal."""
    w = arb(window)
    signs = _grid(n, lambda i, k: -1 if k <= i or not (i + k) % 2 else 1)
    A = _grid(n, lambda i, k: signs[i][k] * _root((2 * i + 1) * (2 * k + 1)) / w)
    return A, [_root(2 * i + 1) / w for i in range(n)]


def hippo_lmu(*, n, window):
    """−(2i+1)/w, but + on odd diagonals below the main one; B_i = (−1)^i (2i+1)/w."""
    w = arb(window)
    A = _grid(n, lambda i, k: arb((2 * i + 1) * (1 if k < i and (i - k) % 2 else -1)) / w)
    return A, [arb((2 * i + 1) * (1 - 2 * (i % 2))) / w for i in range(n)]


def hippo_lagt(*, n, alpha, beta):
    """L_k/L_i = √(Π_{k<j≤i} j/(j + α)); B_i = binom(i+α, i) √(β^{1−α}/Γ(1−α))/L_i."""
    a, b = arb(alpha), arb(beta)
    L = [((a + 1).gamma()).sqrt()]  # starts at Γ(α+1)/0!; each j multiplies by (j + α)/j
    for j in range(1, n):
        L.append(L[-1] * ((a + j) / j).sqrt())
    A = _grid(n, lambda i, k: -(1 + b) / 2 if i == k else -L[k] / L[i] if k < i else 0)
    g, binomial, B = (b ** (1 - a) / (1 - a).gamma()).sqrt(), arb(1), []
    for i in range(n):
        binomial = binomial * (a + i) / i if i else binomial
        B.append(binomial * g / L[i])
    return A, B


def _fourier(n, window, ends):
    """2πk/w in the 2 × 2 blocks, minus ends · b_i b_k."""
    squares = [0 if i % 2 else 2 if i else 1 for i in range(n)]
    A = _grid(n, lambda i, k: -ends * _root(squares[i] * squares[k]))
    for k in range(n // 2):
        turn = arb.pi() * (2 * k) / window
        A[2 * k][2 * k + 1] -= turn
        A[2 * k + 1][2 * k] += turn
    return A, [_root(s) for s in squares]


def hippo_fourier(*, n, window):
    """The blocks minus 2 b bᵀ/w; B = 2 b/w."""
    w = arb(window)
    A, b = _fourier(n, w, 2 / w)
    return A, [2 * b_i / w for b_i in b]


def hippo_fourier_naive(*, n, window):
    """The blocks minus b bᵀ/w; B = b/w."""
    w = arb(window)
    A, b = _fourier(n, w, 1 / w)
    return A, [b_i / w for b_i in b]


def hippo_fourier_diagonal(*, n):
    """The blocks minus ½ on the diagonal, instead of b bᵀ; B = b."""
    A, b = _fourier(n, arb(1), arb(0))
    return _grid(n, lambda i, k: A[i][k] - arb(i == k) / 2), b


def hippo_chebt(*, n, window):
    """−4i/w if i − k is odd and positive, divided by √2 in column 0; B = (√8, 4, 4, …)/(π w)."""
    w = arb(window)

    def entry(i, k):
        if i < k or (i - k) % 2 == 0:
            return arb(0)
        return -4 * i / w if k else -_root(8) * i / w

    return _grid(n, entry), [(4 if i else _root(8)) / (arb.pi() * w) for i in range(n)]


def _root(x):
    return arb(x).sqrt()


def hippo_rescale(A, B, s):
    """diag(s) A diag(s)⁻¹ and diag(s) B."""
    columns = [[row[k] / s_k for row in A] for k, s_k in enumerate(s)]
    scaled = [[column[i] * s_i for column in columns] for i, s_i in enumerate(s)]
    return scaled, [b * s_i for s_i, b in zip(s, B, strict=True)]


def hippo_project(A, B, u, dt):
    """x_k = Σ_{j≤k} Ā^{k−j} B̄ u_j, Ā = e^{dt A}, B̄ = φ_1(dt A) dt B."""
    if not A:
        return [[] for _ in u]
    A_bar, B_bar = map(matrix, discretize_zoh(A, [[b] for b in B], dt))
    responses = [B_bar]
    for _ in u[1:]:
        responses.append(A_bar * responses[-1])
    kernels = [[x.entries()[i] for x in responses[: len(u)]] for i in range(len(A))]
    states = [product(u, kernel, len(u)) for kernel in kernels]
    return [[state[k] for state in states] for k in range(len(u))]


def hippo_project_legs(u, *, n):
    """√(2i+1)/T Σ_k u_k ∫ P_i(2t/T − 1) dt, by ∫P_i = (P_{i+1} − P_{i−1})/(2i + 1).

    Rational numbers except for the root, because a mean may be a tie between two floating-point
    numbers.
    """
    parts = [[_rational((u_k + 0).real) for u_k in u], [_rational((u_k + 0).imag) for u_k in u]]
    states = []
    for T in range(1, len(u) + 1):
        nodes = [_legendre_rational(fmpq(2 * t, T) - 1, n) for t in range(T + 1)]
        state = []
        for i in range(n):
            below = [(P[i + 1] - (P[i - 1] if i else -1)) / (4 * i + 2) for P in nodes]
            held = [ahead - here for here, ahead in pairwise(below)]
            re, im = (sum((x * y for x, y in zip(part, held, strict=False)), fmpq(0))
                      for part in parts)  # fmt: skip
            state.append(acb(arb(re), arb(im)) * _root(2 * i + 1))
        states.append(state)
    return states


def _rational(x):
    """An exact ball as a fraction."""
    m, e = x.man_exp()
    return fmpq(m) * fmpq(2) ** int(e)


def _legendre_rational(x, n):
    """P_0 … P_n at x, (i+1) P_{i+1} = (2i+1) x P_i − i P_{i−1}."""
    P = [fmpq(1), x]
    for i in range(1, n):
        P.append(((2 * i + 1) * x * P[i] - i * P[i - 1]) / (i + 1))
    return P


def _legendre(x, n):
    """P_0 … P_{n−1} at x."""
    return [acb(x).legendre_p(i) for i in range(n)]


def hippo_reconstruct_legs(c, s):
    """Σ_i c_i √(2i+1) (−1)^i P_i(2s − 1)."""
    roots = [(-1) ** i * _root(2 * i + 1) * c_i for i, c_i in enumerate(c)]
    return [dot(roots, _legendre(2 * s_l - 1, len(c))) for s_l in s]


def hippo_reconstruct_legt(c, s, *, window=1):
    """The same sum at s/w."""
    return hippo_reconstruct_legs(c, [s_l / arb(window) for s_l in s])


def hippo_reconstruct_lmu(c, s, *, window=1):
    """Σ_i c_i (−1)^i P_i(1 − 2s/w)."""
    signed = [(-1) ** i * c_i for i, c_i in enumerate(c)]
    return [dot(signed, _legendre(1 - 2 * s_l / arb(window), len(c))) for s_l in s]


def hippo_reconstruct_lagt(c, s, *, alpha=0, beta=1):
    """√(Γ(1−α) β^(α−1)) s^α e^{(β−1)s/2} Σ_i c_i √(Γ(i+α+1)/i!)/Γ(α+1) ₁F₁(−i; α+1; s)."""
    a, b = arb(alpha), arb(beta)
    size = ((1 - a).gamma() * b ** (a - 1)).sqrt()
    # L_i = (Γ(i+α+1)/(Γ(α+1) i!)) ₁F₁(−i; α+1; s): with the root, √(Γ(i+α+1)/i!)/Γ(α+1)
    roots = [((a + i + 1).gamma() / arb(i + 1).gamma()).sqrt() for i in range(len(c))]
    scaled = [c_i * root / (a + 1).gamma() for c_i, root in zip(c, roots, strict=True)]
    return [
        size * _power(s_l, a) * ((b - 1) * s_l / 2).exp()
        * dot(scaled, [acb(s_l).hypgeom_1f1(-i, a + 1) for i in range(len(c))])
        for s_l in s
    ]  # fmt: skip


def _power(s, a):
    """s^α, 0^0 = 1."""
    return arb(1) if a.is_zero() else arb(0) if s.is_zero() else s**a


def hippo_reconstruct_fourier(c, s, *, window=1):
    """c_0 + Re and Im of √2 Σ_{k>0} e^{2πik s/w}, as powers of e^{2πi s/w}."""
    found = []
    for s_l in s:
        sine, cosine = (2 * s_l / arb(window)).sin_cos_pi()
        turn = acb(cosine, sine)
        waves = [(turn ** (i // 2)) for i in range(len(c))]
        parts = [w.imag if i % 2 else w.real for i, w in enumerate(waves)]
        found.append(dot(c, [(_root(2) if i > 1 else 1) * p for i, p in enumerate(parts)]))
    return found


def hippo_scaled_euler(A, B, x, u, time, *, p):
    """((p t I + A) x + B uᵀ)/(p t)."""
    return _scaled(A, B, x, u, arb(p) * time, 0)


def hippo_scaled_bilinear(A, B, x, u, time, *, p):
    """(2 p t I − A) x_k = (2 p t I + A) x + 2 B uᵀ."""
    return _scaled(A, B, x, u, arb(p) * time, arb(1) / 2)


def hippo_scaled_backward(A, B, x, u, time, *, p):
    """(p t I − A) x_k = p t x + B uᵀ."""
    return _scaled(A, B, x, u, arb(p) * time, 1)


def _scaled(A, B, x, u, s, alpha):
    """(s I − α A) x_k = (s I + (1 − α) A) x + B uᵀ for s = p t."""
    if not (A and u):
        return x
    I, M, driven = identity(len(A)), matrix(A), matrix([[b * v for v in u] for b in B])
    return (I * s - M * alpha).solve((I * s + M * (1 - alpha)) * matrix(x) + driven).tolist()
