"""Complex matrices as tables of real rows, for SIMD lanes: rows 2k and 2k + 1 are the real and the
imaginary parts of row k, and columns from n on, up to a multiple of COLUMNS, are 0.

Loops are explicit, because assigning slices takes seconds to compile. Row numbers are variables: a
function is compiled again for each constant that is passed to it.
"""

# pyright: reportCallIssue=false, reportIndexIssue=false
# (Numba's own signatures lack options)

import numpy as np

from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart
from refssm.jit._vectors.tiles import COLUMNS, ROWS, product_into

FUSED, REORDERED = {"contract"}, {"contract", "reassoc"}


@part
def zeros(count, n):
    """A table of so many rows and columns."""
    apart()
    return np.zeros((2 * count, COLUMNS * ((n + COLUMNS - 1) // COLUMNS)))


@part
def table(X):
    """A matrix as a table."""
    apart()
    found = zeros(X.shape[0], X.shape[1])
    for k in range(X.shape[0]):
        for n in range(X.shape[1]):
            found[2 * k, n], found[2 * k + 1, n] = X[k, n].real, X[k, n].imag
    return found


@part
def turned(X, n):
    """The transpose of a table with n columns."""
    apart()
    found = zeros(n, X.shape[0] // 2)
    for k in range(X.shape[0] // 2):
        for i in range(n):
            found[2 * i, k], found[2 * i + 1, k] = X[2 * k, i], X[2 * k + 1, i]
    return found


@part
def crossed(X, n, Y):
    """Σ_k X_ki Y_k, a row for each of the n columns of X; and a row of zeros if n is odd. Y may
    have more rows than X."""
    apart()
    left, found = np.zeros((X.shape[0], ROWS)), zeros(n + n % 2, Y.shape[1])
    for i in range(0, n, 2):
        for k in range(0, X.shape[0], 2):
            for j in range(2):
                re, im = X[k, i + j], X[k + 1, i + j]
                left[k, 2 * j], left[k + 1, 2 * j] = re, -im
                left[k, 2 * j + 1], left[k + 1, 2 * j + 1] = im, re
        product_into(left, Y, found, 2 * i)
    return found


@part(fastmath=REORDERED)
def dot(X, k, Y, i):
    """Σ_n X_kn Y_in."""
    apart()
    re, im = 0.0, 0.0
    for n in range(X.shape[1]):
        re += X[2 * k, n] * Y[2 * i, n] - X[2 * k + 1, n] * Y[2 * i + 1, n]
        im += X[2 * k, n] * Y[2 * i + 1, n] + X[2 * k + 1, n] * Y[2 * i, n]
    return complex(re, im)


@part(fastmath=FUSED)
def add(X, k, c, Y, i):
    """X_k += c Y_i."""
    apart()
    for n in range(X.shape[1]):
        X[2 * k, n] += c.real * Y[2 * i, n] - c.imag * Y[2 * i + 1, n]
        X[2 * k + 1, n] += c.real * Y[2 * i + 1, n] + c.imag * Y[2 * i, n]


@part(fastmath=FUSED)
def add_product(x, Y, i, Z, j):
    """x_n += Y_in Z_jn, x the first row of a table."""
    apart()
    for n in range(x.shape[1]):
        x[0, n] += Y[2 * i, n] * Z[2 * j, n] - Y[2 * i + 1, n] * Z[2 * j + 1, n]
        x[1, n] += Y[2 * i, n] * Z[2 * j + 1, n] + Y[2 * i + 1, n] * Z[2 * j, n]


@part(fastmath=FUSED)
def add_grown(X, k, e, Y, i):
    """X_kn += Y_in + e_n Y_in, e the first row of a table: 1 + e would lose digits of small e."""
    apart()
    for n in range(X.shape[1]):
        re = e[0, n] * Y[2 * i, n] - e[1, n] * Y[2 * i + 1, n]
        im = e[0, n] * Y[2 * i + 1, n] + e[1, n] * Y[2 * i, n]
        X[2 * k, n] += Y[2 * i, n] + re
        X[2 * k + 1, n] += Y[2 * i + 1, n] + im


@part(fastmath=FUSED)
def add_without(X, k, Y, i, E, n):
    """X_k += Y_i (I − E), E with n rows."""
    apart()
    for j in range(X.shape[1]):
        X[2 * k, j], X[2 * k + 1, j] = X[2 * k, j] + Y[2 * i, j], X[2 * k + 1, j] + Y[2 * i + 1, j]
    for m in range(n):
        re, im = Y[2 * i, m], Y[2 * i + 1, m]
        for j in range(X.shape[1]):
            X[2 * k, j] -= re * E[2 * m, j] - im * E[2 * m + 1, j]
            X[2 * k + 1, j] -= re * E[2 * m + 1, j] + im * E[2 * m, j]
