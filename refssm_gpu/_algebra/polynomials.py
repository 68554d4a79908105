"""Orthogonal polynomials by three-term recurrences: one pass over the points for each degree.

    (i + 1) P_{i+1}(x) = (2i + 1) x P_i(x) − i P_{i−1}(x)
    (i + 1) L_{i+1}(s) = (2i + 1 + α − s) L_i(s) − (i + α) L_{i−1}(s)

The loop is over degrees; the points, which are many, are the arrays.
"""

from __future__ import annotations

from refssm_gpu._algebra.parts import counting
from refssm_gpu._launching.arrays import Array, namespace


def legendre(x: Array, n: int) -> Array:
    """P_0 … P_{n−1} at x, along a new last axis: (…, n)."""
    steps = range(n - 1)
    return _recurrence(x, n, [((2 * i + 1) / (i + 1), 0.0, i / (i + 1)) for i in steps])


def laguerre(s: Array, n: int, alpha: float) -> Array:
    """L_0^(α) … L_{n−1}^(α) at s, along a new last axis: (…, n)."""
    rows = [(-1 / (i + 1), (2 * i + 1 + alpha) / (i + 1), (i + alpha) / (i + 1)) for i in range(n)]
    return _recurrence(s, n, rows)


def _recurrence(x: Array, n: int, rows) -> Array:
    """p_0 = 1, p_{i+1} = (a_i x + b_i) p_i − c_i p_{i−1}, i = 0 … n−2."""
    xp = namespace(x)
    if n == 0:
        return xp.zeros((*x.shape, 0), dtype=x.dtype)
    # p_0 = 1 for every x, but NaN in x reaches every sum of the p_i
    p = [xp.where(xp.isnan(x), x, 1.0)]
    for i, (a, b, c) in enumerate(rows[: n - 1]):
        grown = ((a * x + b) if b else a * x) * p[i]
        p.append(grown - c * p[i - 1] if i else grown)
    return xp.stack(p, axis=-1)


def legendre_slopes(P: Array) -> Array:
    """P_i' = Σ (2k + 1) P_k over k = i − 1, i − 3, …"""
    xp, i = namespace(P), counting(P.shape[-1], P)
    k = i[:, None]
    below = (i > k) & ((i - k) % 2 == 1)
    return P @ xp.where(below, 2 * k + 1, 0.0)


def laguerre_slopes(L: Array) -> Array:
    """L_i' = −Σ_{k<i} L_k, for any α."""
    xp, i = namespace(L), counting(L.shape[-1], L)
    return L @ xp.where(i > i[:, None], xp.full_like(i, -1.0), 0.0)
