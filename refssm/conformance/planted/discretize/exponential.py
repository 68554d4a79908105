"""The wrong term of SciPy 1.17's exponential of real matrices, see docs/findings.md."""

from math import ceil, factorial, log2

import numpy as np

from refssm.discretize.hold import zoh_exponent

DEGREE, WITHOUT_SCALING = 13, 4.25  # [almohy2009, Table 3.1]
WEIGHTS = [
    factorial(2 * DEGREE - k) // (factorial(k) * factorial(DEGREE - k)) for k in range(DEGREE + 1)
]


def sixth_power_added(right, A, B, dt):
    """e^G with G⁶ in the odd half of the approximant of degree 13, unless G is complex."""
    G, n = zoh_exponent(A, B, dt), A.shape[-1]
    E = np.empty_like(G)
    for i in np.ndindex(*G.shape[:-2]):
        E[i] = _approximant(G[i])
    return E[..., :n, :n], E[..., :n, n:]


def _approximant(G):
    s = _scalings(G) if np.isfinite(G).all() else 0
    real = np.finfo(G.dtype).dtype.type
    powers = [np.eye(len(G), dtype=G.dtype), G * real(2.0**-s)]
    while len(powers) <= DEGREE:
        powers.append(powers[-1] @ powers[1])
    terms = [real(w / WEIGHTS[0]) * P for w, P in zip(WEIGHTS, powers, strict=True)]
    odd, even = sum(terms[1::2]), sum(terms[::2])
    if not np.iscomplexobj(G):
        odd = odd + powers[6] * real(1 / WEIGHTS[0])
    E = powers[0] + 2 * np.linalg.solve(even - odd, odd)
    for _ in range(s):
        E = E @ E
    return E


def _scalings(G):
    """How often G is halved: by norms of its powers and of those of |G| [almohy2009, §4, §5]."""
    G = G.astype(np.result_type(G, np.float64))
    sixth, eighth, tenth = (_norm(np.linalg.matrix_power(G, k)) ** (1 / k) for k in (6, 8, 10))
    size = min(max(sixth, eighth), max(eighth, tenth))
    s = max(0, ceil(log2(size / WITHOUT_SCALING))) if size else 0
    halved = np.abs(G) / 2.0**s
    last = _norm(np.linalg.matrix_power(halved, 2 * DEGREE + 1)) * factorial(DEGREE) ** 2
    if not last or not np.isfinite(last):
        return s
    first = _norm(halved) * factorial(2 * DEGREE) * factorial(2 * DEGREE + 1)
    return s + max(0, ceil(log2(last / first * 2.0**53) / (2 * DEGREE)))


def _norm(G):
    return float(np.abs(G).sum(0).max(initial=0))
