"""Cauchy sums in single precision: registers of nodes, poles in the inner loop.

    v/(z − w) = v a r − i v b r,   a + ib = z − w,   r = 1/(a² + b²)

A register has 16 nodes, and four of them make one pass over the poles. Sums of at most TERMS poles
are added to each other, so the error does not grow with the number of poles. A node where some r is
above LARGEST is computed again by Smith's division in double precision, and so is a block with
numbers beyond HUGE.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportGeneralTypeIssues=false
# (a gufunc allocates its outputs, and an intrinsic is called without its first parameter)

import numpy as np

from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart, larger, splat, times_plus
from refssm.jit._vectors.scratch import (
    load,
    number,
    put,
    release,
    scratch,
    store,
    width_of,
)
from refssm.jit.cauchy.division import carefully

TERMS = 64  # poles
NODES = 4  # registers of nodes
RE, IM, SUM_RE, SUM_IM, WORST, ROWS = range(0, 6 * NODES, NODES)
LARGEST, HUGE = np.float32(1e30), np.float32(1e18)  # of 1/|d|²; of real and imaginary parts


@part
def _largest(x):
    """The largest real or imaginary part."""
    found = np.float32(0)
    for n in range(x.size):
        found = max(found, max(abs(x[n].real), abs(x[n].imag)))
    return found


@part
def _gathered(z, start, rows):
    """A block of z as registers; behind the last node, that one again. Its largest part."""
    apart()
    width, found = width_of(rows), np.float32(0)
    for i in range(NODES * width):
        z_i = z[min(start + i, z.size - 1)]
        put(rows, RE * width + i, z_i.real)
        put(rows, IM * width + i, z_i.imag)
        found = max(found, max(abs(z_i.real), abs(z_i.imag)))
    return found


@part
def _added(v, w, first, last, rows, j):
    """Add v/(z − w) for the poles from `first` to `last` to the sums of one register of nodes."""
    zero, one = splat(np.float32(0)), splat(np.float32(1))
    re, im = zero, zero
    z_re, z_im, worst = load(rows, RE + j), load(rows, IM + j), load(rows, WORST + j)
    for n in range(first, last):
        a, b = z_re - w[n].real, z_im - w[n].imag
        r = one / times_plus(a, a, b * b)
        worst = larger(r, worst)
        a, b = a * r, b * r  # first: v a may underflow where v/d does not
        re = times_plus(b, v[n].imag, times_plus(a, v[n].real, re))
        im = times_plus(b, -v[n].real, times_plus(a, v[n].imag, im))
    store(rows, SUM_RE + j, load(rows, SUM_RE + j) + re)
    store(rows, SUM_IM + j, load(rows, SUM_IM + j) + im)
    store(rows, WORST + j, worst)


@compiled(["(c8[:], c8[:], c8[:], c8[:])"], "(n),(n),(l)->(l)")
def cauchy_single(v, w, z, k):
    """Σ_n v_n / (z_l − w_n) in single precision."""
    rows = scratch(ROWS, np.empty(1, np.float32))
    width, poles, zero = width_of(rows), _largest(w), splat(np.float32(0))
    for start in range(0, z.size, NODES * width):
        safe = max(poles, _gathered(z, start, rows)) <= HUGE
        for j in range(SUM_RE, ROWS):
            store(rows, j, zero)
        for first in range(0, v.size, TERMS):
            for j in range(NODES):
                _added(v, w, first, min(first + TERMS, v.size), rows, j)
        for i in range(min(NODES * width, z.size - start)):
            total = complex(number(rows, SUM_RE * width + i), number(rows, SUM_IM * width + i))
            if not (safe and number(rows, WORST * width + i) <= LARGEST):
                total = carefully(v, w, np.complex128(z[start + i]))
            k[start + i] = total
    release(rows)
