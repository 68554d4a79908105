"""Honest (A, B) of polynomials: loops, triangles, similarities, derivatives, other recurrences."""

from fractions import Fraction
from math import gamma, sqrt

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy import special

from honest import Honest
from refssm.hippo import HIPPO_CHEBT, HIPPO_LAGT, HIPPO_LEGS, HIPPO_LEGT, HIPPO_LMU


def entry_by_entry(n, entry, B):
    """A loop over rows and columns."""
    A = np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            A[i, k] = entry(i, k)
    return A, np.array([float(B(i)) for i in range(n)])


def legs_loops(*, n):
    """Entry by entry."""

    def entry(i, k):
        return -sqrt((2 * i + 1) * (2 * k + 1)) if i > k else -(i + 1) if i == k else 0

    return entry_by_entry(n, entry, lambda i: sqrt(2 * i + 1))


def legs_triangle(*, n):
    """The lower triangle of an outer product, and a diagonal."""
    r = np.sqrt(2 * np.arange(n) + 1)
    return -np.tril(np.outer(r, r), -1) - np.diag(np.arange(n) + 1.0), r


def legs_similar(*, n):
    """T M T⁻¹ with M of integers."""
    q = np.arange(n)
    M = np.diag(q) - np.tril(np.broadcast_to(2 * q + 1, (n, n)))
    T = np.diag(np.sqrt(2 * q + 1))
    return T @ M @ np.linalg.inv(T), T.diagonal().copy()


def legs_normal_plus_low_rank(*, n):
    """−½I + S − p pᵀ."""
    p = np.sqrt(np.arange(n) + 0.5)
    pp = np.outer(p, p)
    S = np.triu(pp, 1) - np.tril(pp, -1)
    return S - 0.5 * np.eye(n) - pp, np.sqrt(2) * p


def legs_powers(*, n):
    """((2i+1)(2k+1))^½ from integers."""
    r = 2 * np.arange(n) + 1
    A = -(np.tril(np.multiply.outer(r, r), -1) ** 0.5)
    A[np.diag_indices(n)] = -(r + 1) / 2
    return A, r**0.5


def legt_loops(*, n, window):
    """Entry by entry."""

    def entry(i, k):
        return -sqrt((2 * i + 1) * (2 * k + 1)) * (1 if k <= i else (-1) ** (i + k)) / window

    return entry_by_entry(n, entry, lambda i: sqrt(2 * i + 1) / window)


def legt_triangles(*, n, window):
    """A lower triangle plus an upper one with signs."""
    r = np.sqrt(2 * np.arange(n) + 1)
    signed = r * (-1.0) ** np.arange(n)
    A = -(np.tril(np.outer(r, r)) + np.triu(np.outer(signed, signed), 1))
    return A / window, r / window


def legt_halved(*, n, window):
    """The result for a window of 2, rescaled."""
    A, B = legt_triangles(n=n, window=2)
    return A * (2 / window), B * (2 / window)


def legt_derivatives(*, n, window):
    """D − b eᵀ, with the derivatives of Legendre polynomials as Legendre series."""
    r = np.sqrt(2 * np.arange(n) + 1)
    D = np.zeros((n, n))
    for k in range(1, n):
        D[:k, k] = legendre.legder(np.eye(n)[k][: k + 1])
    return (2 * D * r / r[:, None] - np.outer(r, r)) / window, r / window


def legt_from_lmu(*, n, window):
    """T⁻¹ A T of LMU's scale."""
    T = (-1.0) ** np.arange(n) * np.sqrt(2 * np.arange(n) + 1)
    A, B = lmu_integers(n=n, window=window)
    return A * T / T[:, None], B / T


def lmu_loops(*, n, window):
    """Entry by entry."""

    def entry(i, k):
        return (2 * i + 1) / window * (-1 if i < k else (-1) ** (i - k + 1))

    return entry_by_entry(n, entry, lambda i: (-1) ** i * (2 * i + 1) / window)


def lmu_integers(*, n, window):
    """Integers, divided at the end."""
    i, k = np.mgrid[:n, :n]
    signs = np.where(i < k, -1, 1 - 2 * ((i - k + 1) % 2))
    return (2 * i + 1) * signs / window, ((2 * i + 1) * (1 - 2 * (i % 2)))[:, 0] / window


def lmu_rows(*, n, window):
    """Row i from powers of −1; the rows are scaled at the end."""
    A = np.full((n, n), -1.0)
    for i in range(n):
        A[i, : i + 1] = (-1.0) ** np.arange(i + 1, 0, -1)
    scale = (2 * np.arange(n) + 1) / window
    return A * scale[:, None], (-1.0) ** np.arange(n) * scale


def lmu_from_legt(*, n, window):
    """T A T⁻¹ of the orthonormal scale."""
    T = (-1.0) ** np.arange(n) * np.sqrt(2 * np.arange(n) + 1)
    A, B = legt_triangles(n=n, window=window)
    return T[:, None] * A / T, T * B


def _laguerre(n, squares, alpha, beta):
    """A and B from L_i²."""
    L = np.sqrt(squares)
    A = -np.tril(L / L[:, None], -1) - (1 + beta) / 2 * np.eye(n)
    return A, L / gamma(1 + alpha) / sqrt(gamma(1 - alpha)) * beta ** ((1 - alpha) / 2)


def lagt_recurrence(*, n, alpha, beta):
    """L_i² = L_{i−1}² (i + α)/i."""
    squares = [gamma(1 + alpha)]
    for i in range(1, n):
        squares.append(squares[-1] * (i + alpha) / i)
    return _laguerre(n, np.array(squares), alpha, beta)


def lagt_binomials(*, n, alpha, beta):
    """L_i² = Γ(1 + α) C(i + α, i)."""
    i = np.arange(n)
    return _laguerre(n, gamma(1 + alpha) * special.binom(i + alpha, i), alpha, beta)


def lagt_fractions(*, n, alpha, beta):
    """L_i²/Γ(1 + α) as exact fractions, each rounded once."""
    a, r = Fraction(alpha), [Fraction(1)]
    for i in range(1, n):
        r.append(r[-1] * (i + a) / i)
    squares = gamma(1 + alpha) * np.array([float(r_i) for r_i in r])
    return _laguerre(n, squares, alpha, beta)


def lagt_cumulative(*, n, alpha, beta):
    """L_i² in long double, by cumulative products."""
    i = np.arange(1, n, dtype=np.longdouble)
    squares = np.cumprod(np.append(np.longdouble(gamma(1 + alpha)), (i + alpha) / i))
    A, B = _laguerre(n, squares, alpha, beta)
    return A.astype(float), B.astype(float)


def chebt_loops(*, n, window):
    """Entry by entry."""

    def entry(i, k):
        return -4 * i / window * (sqrt(0.5) if k == 0 else 1) if k < i and (i - k) % 2 else 0

    def B(i):
        return 2 * sqrt(2) / np.pi / window * (sqrt(2) if i else 1)

    return entry_by_entry(n, entry, B)


def chebt_derivatives(*, n, window):
    """The derivatives of Chebyshev polynomials as Chebyshev series, orthonormal."""
    scale = np.append(1, np.full(n - 1, np.sqrt(2)))
    A = np.zeros((n, n))
    for i in range(1, n):
        A[i, :i] = -2 * chebyshev.chebder(np.eye(n)[i][: i + 1]) / window
    return scale[:, None] * A / scale, scale * (np.sqrt(8) / (np.pi * window))


def chebt_parity(*, n, window):
    """Rows of a triangle with zeros in a chequered pattern."""
    odd = np.tril(np.arange(n)[:, None] - np.arange(n)) % 2
    columns = np.append(2 * np.sqrt(2), np.full(n - 1, 4.0))
    A = -odd * np.arange(n)[:, None] * columns / window
    return A, np.append(np.sqrt(2), np.full(n - 1, 2.0)) * (2 / (np.pi * window))


FORMS = {
    HIPPO_LEGS: (legs_loops, legs_triangle, legs_similar, legs_normal_plus_low_rank, legs_powers),
    HIPPO_LEGT: (legt_loops, legt_triangles, legt_halved, legt_derivatives, legt_from_lmu),
    HIPPO_LMU: (lmu_loops, lmu_integers, lmu_rows, lmu_from_legt),
    HIPPO_LAGT: (lagt_recurrence, lagt_binomials, lagt_fractions, lagt_cumulative),
    HIPPO_CHEBT: (chebt_loops, chebt_derivatives, chebt_parity),
}
IMPLEMENTATIONS = [
    Honest(op.name, form.__name__, form) for op, forms in FORMS.items() for form in forms
]
