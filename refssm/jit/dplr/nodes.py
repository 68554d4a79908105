"""DPLR systems at their nodes: all Cauchy sums of a node in one pass, modes in the inner loop.

    K̂(z) = 2 (S₀₀ − s S₀ᵣ (I_r + s Sᵣᵣ)⁻¹ Sᵣ₀),   S = Σ_n [C̃, Q*]_n [B, P]_nᵀ / D_n,   D = g − s w

with s = 1 + z and g = 2 (1 − z)/dt. No array has both nodes and modes.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from functools import lru_cache

import numpy as np

from refssm.dplr.system import around_the_circle
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit.cauchy.division import quotient
from refssm.jit.dplr.pairs import add, add_product, copied, dot, pair, pairs, put

WIDE = ("c16",)
SMALLEST, LARGEST = 1e-280, 1e280  # of |d|²: outside, the square loses digits


@lru_cache(maxsize=8)
def circle(l):
    """1 − z and 1 + z at the nodes, in double precision."""
    tables = around_the_circle(l, np.float64(0))
    for table in tables:
        table.flags.writeable = False
    return tables


def wide(*arrays):
    """The arrays in at least double precision."""
    return [x.astype(np.result_type(x, np.float64), copy=False) for x in arrays]


def narrow(gradients, *arguments):
    """Complex gradients in the precision of the arguments."""
    kind = np.result_type(np.complex64, *arguments)
    return [g.astype(kind, copy=False) for g in gradients]


def rows(x, factors):
    """[x, factors] as rows: (…, n), (…, n, r) -> (…, r + 1, n)."""
    batch = np.broadcast_shapes(x.shape[:-1], factors.shape[:-2])
    x = np.broadcast_to(x, (*batch, x.shape[-1]))
    factors = np.broadcast_to(factors, (*batch, *factors.shape[-2:]))
    return np.concatenate([x[..., None, :], factors.swapaxes(-1, -2)], axis=-2)


@part
def _reciprocals(g, s, w, R):
    """1/D_n = d*/|d|², D_n = g − s w_n; by Smith's division if |d|² may lose digits."""
    outside = 0
    for n in range(w.shape[1]):
        re = g.real - (s.real * w[0, n] - s.imag * w[1, n])
        im = g.imag - (s.real * w[1, n] + s.imag * w[0, n])
        size = re * re + im * im
        outside += (size < SMALLEST) | (size > LARGEST)
        R[0, n], R[1, n] = re / size, -im / size
    if outside:
        for n in range(w.shape[1]):
            x = quotient(1.0 + 0.0j, g - s * complex(w[0, n], w[1, n]))
            R[0, n], R[1, n] = x.real, x.imag


@part
def _weights(left, right):
    """left_in right_jn, real and imaginary parts apart: (i, n), (j, n) -> (i, j, 2, n)."""
    W = np.empty((left.shape[0], right.shape[0], 2, left.shape[1]))
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            for n in range(left.shape[1]):
                product = left[i, n] * right[j, n]
                W[i, j, 0, n], W[i, j, 1, n] = product.real, product.imag
    return W


@part
def _sums(R, W, S):
    """S_ij = Σ_n R_n W_ijn."""
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            S[i, j] = dot(R, W[i, j])


@part
def eliminated(s, S, M, x):
    """Solve (I_r + s Sᵣᵣ) x' = x in place, with partial pivoting; M is a work array."""
    r = x.size
    for i in range(r):
        for j in range(r):
            M[i, j] = s * S[i + 1, j + 1] + (i == j)
    for i in range(r):
        p = i
        for j in range(i + 1, r):
            p = j if abs(M[j, i]) > abs(M[p, i]) else p
        for j in range(r):
            M[i, j], M[p, j] = M[p, j], M[i, j]
        x[i], x[p] = x[p], x[i]
        for j in range(i + 1, r):
            factor = quotient(M[j, i], M[i, i])
            for k in range(i + 1, r):
                M[j, k] -= factor * M[i, k]
            x[j] -= factor * x[i]
    for i in range(r - 1, -1, -1):
        for k in range(i + 1, r):
            x[i] -= M[i, k] * x[k]
        x[i] = quotient(x[i], M[i, i])


@part
def _resolved(R, s, x, factors, X):
    """Write (diag D + s P Qᴴ)⁻¹ factors₀ to X, as R (factors₀ − s Σ_q x_q factors_q)."""
    copied(X, factors[0])
    for q in range(x.size):
        add(X, -s * x[q], factors[q + 1])
    for n in range(R.shape[1]):
        re = R[0, n] * X[0, n] - R[1, n] * X[1, n]
        X[1, n] = R[0, n] * X[1, n] + R[1, n] * X[0, n]
        X[0, n] = re


@gufunc("(l),(l),(l),(l),(n),(i,n),(i,n)->(i,n),(i,n),(n),()", kinds=WIDE)
def transfer_back(d, below, g, s, w, left, right, dleft, dright, dw, ddt):
    """Σ_j d_j of ½K̂'s derivatives by left, right and w; and Σ_j d_j below_j YᵀX."""
    r = left.shape[0] - 1
    modes, W, lefts, rights = pair(w), _weights(left, right), pairs(left), pairs(right)
    S, ST = np.empty((r + 1, r + 1), np.complex128), np.empty((r + 1, r + 1), np.complex128)
    M = np.empty((r, r), np.complex128)
    x, y = np.empty(r, np.complex128), np.empty(r, np.complex128)
    R, w_sums = np.zeros((2, w.size)), np.zeros((2, w.size))
    X, Y = np.zeros((2, w.size)), np.zeros((2, w.size))
    left_sums, right_sums = np.zeros((r + 1, 2, w.size)), np.zeros((r + 1, 2, w.size))
    ddt[0] = 0
    for j in range(g.size):
        _reciprocals(g[j], s[j], modes, R)
        _sums(R, W, S)
        for q in range(r):
            x[q], y[q] = S[q + 1, 0], S[0, q + 1]
            for k in range(r):
                ST[q + 1, k + 1] = S[k + 1, q + 1]
        eliminated(s[j], S, M, x)
        eliminated(s[j], ST, M, y)
        _resolved(R, s[j], x, rights, X)
        _resolved(R, s[j], y, lefts, Y)
        through = d[j] * s[j]
        ddt[0] += d[j] * below[j] * add_product(w_sums, through, X, Y)
        add(left_sums[0], d[j], X)
        add(right_sums[0], d[j], Y)
        for q in range(r):
            add(left_sums[q + 1], -through * y[q], X)
            add(right_sums[q + 1], -through * x[q], Y)
    for q in range(r + 1):
        put(dleft[q], left_sums[q])
        put(dright[q], right_sums[q])
    put(dw, w_sums)
