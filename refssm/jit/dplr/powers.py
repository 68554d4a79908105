"""C (I − Ā^l) for the mirror of the DPLR kernel, from E = I − Ā; single precision is rounded later.

E_2m = 2 E_m − E_m² up to m = ⌊l/32⌋, then 32 steps of m and the rest of l one by one:
I − Ā^{jm} = (I + Ā^m + … + Ā^{(j−1)m}) E_m. Nothing cancels where Ā is near I.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm.jit._gufunc import compiled
from refssm.jit._tiles import COLUMNS, ROWS, product

STEPS = 32  # each is a product with a vector; a doubling is one with a matrix


@njit(error_model="numpy")
def _multiplied(X, Y, Z):
    """Z = X + Y − X Y; rows 2k and 2k + 1 of each table are real and imaginary parts of row k."""
    n = X.shape[0] // 2
    left, sums = np.zeros((2 * n, ROWS)), np.empty((ROWS, X.shape[1]))
    for i in range(0, n, ROWS // 2):
        for r in range(min(ROWS // 2, n - i)):
            for k in range(n):
                re, im = X[2 * (i + r), k], X[2 * (i + r) + 1, k]
                left[2 * k, 2 * r], left[2 * k + 1, 2 * r] = re, -im
                left[2 * k, 2 * r + 1], left[2 * k + 1, 2 * r + 1] = im, re
        product(left, Y, sums)
        for r in range(min(ROWS, 2 * n - 2 * i)):
            for k in range(n):
                Z[2 * i + r, k] = X[2 * i + r, k] + Y[2 * i + r, k] - sums[r, k]


@njit(error_model="numpy", fastmath={"contract"})
def _summed(E, count, c, total):
    """total += c (I + A + … + A^{count−1}) E and c becomes c A^count, A = I − E; c and total are
    rows of real and imaginary parts."""
    step = np.empty_like(c)
    for _ in range(count):
        step[:] = 0
        for i in range(c.shape[1]):
            re, im = c[0, i], c[1, i]
            for k in range(c.shape[1]):
                step[0, k] += re * E[2 * i, k] - im * E[2 * i + 1, k]
                step[1, k] += re * E[2 * i + 1, k] + im * E[2 * i, k]
        for part in range(2):
            for k in range(c.shape[1]):
                total[part, k] += step[part, k]
                c[part, k] -= step[part, k]


@njit(error_model="numpy")
def _power(one, m):
    """I − A^m from I − A, m ≥ 1."""
    powers, other, bits = one.copy(), np.zeros_like(one), 0
    while m >> (bits + 1):
        bits += 1
    for bit in range(bits - 1, -1, -1):
        _multiplied(powers, powers, other)
        powers, other = other, powers
        if (m >> bit) & 1:
            _multiplied(powers, one, other)
            powers, other = other, powers
    return powers


@compiled(["(c16[:,:], c16[:], f8[:], c16[:])"], "(n,k),(n),()->(n)")
def truncated(E, C, l, found):
    """C (I − (I − E)^l)."""
    n, m = C.size, int(l[0]) // STEPS
    one = np.zeros((2 * n, COLUMNS * ((n + COLUMNS - 1) // COLUMNS)))
    c, total = np.empty((2, n)), np.zeros((2, n))
    for i in range(n):
        c[0, i], c[1, i] = C[i].real, C[i].imag
        for k in range(n):
            one[2 * i, k], one[2 * i + 1, k] = E[i, k].real, E[i, k].imag
    if m:
        _summed(_power(one, m), STEPS, c, total)
    _summed(one, int(l[0]) - STEPS * m, c, total)
    for i in range(n):
        found[i] = complex(total[0, i], total[1, i])
