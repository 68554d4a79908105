"""Complex vectors as two rows, real and imaginary parts, for SIMD loads.

Numba's complex arrays interleave the two, and its compiler then does not vectorize sums. Loops are
explicit, because one array expression takes a second or more to compile.
"""

import numpy as np

from refssm.jit._compiling.parts import part

FUSED = {"contract"}
REORDERED = {"reassoc", "contract"}  # allow sums in SIMD lanes; NaN and infinity keep their meaning


@part
def pair(x):
    """(n) -> (2, n), contiguous."""
    found = np.empty((2, x.size))
    for n in range(x.size):
        found[0, n], found[1, n] = x[n].real, x[n].imag
    return found


@part
def pairs(X):
    """`pair` of each row: (r, n) -> (r, 2, n)."""
    found = np.empty((X.shape[0], 2, X.shape[1]))
    for q in range(X.shape[0]):
        for n in range(X.shape[1]):
            found[q, 0, n], found[q, 1, n] = X[q, n].real, X[q, n].imag
    return found


@part
def put(x, X):
    """Write the pair X to x as complex numbers."""
    for n in range(x.size):
        x[n] = complex(X[0, n], X[1, n])


@part
def copied(x, y):
    """Copy y to x."""
    for n in range(x.shape[1]):
        x[0, n], x[1, n] = y[0, n], y[1, n]


@part(fastmath=REORDERED)
def dot(x, y):
    """Σ_n x_n y_n."""
    re, im = 0.0, 0.0
    for n in range(x.shape[1]):
        re += x[0, n] * y[0, n] - x[1, n] * y[1, n]
        im += x[0, n] * y[1, n] + x[1, n] * y[0, n]
    return complex(re, im)


@part(fastmath=FUSED)
def add(x, c, y):
    """x_n += c y_n."""
    for n in range(x.shape[1]):
        x[0, n] += c.real * y[0, n] - c.imag * y[1, n]
        x[1, n] += c.real * y[1, n] + c.imag * y[0, n]


@part(fastmath=REORDERED)
def add_product(x, c, y, z):
    """x_n += c y_n z_n; returns Σ_n y_n z_n."""
    total_re, total_im = 0.0, 0.0
    for n in range(x.shape[1]):
        re = y[0, n] * z[0, n] - y[1, n] * z[1, n]
        im = y[0, n] * z[1, n] + y[1, n] * z[0, n]
        total_re += re
        total_im += im
        x[0, n] += c.real * re - c.imag * im
        x[1, n] += c.real * im + c.imag * re
    return complex(total_re, total_im)
