"""Products of small matrices in registers, and complex matrices as tables of real rows for them.

The sums of a product stay in registers, four rows by two vectors of doubles. As loops, the sums
would go through the L1 cache at every step, and the multipliers would wait for it half of the time.
On processors with shorter vectors the compiler splits the lanes.

Rows 2k and 2k + 1 of a table are the real and the imaginary parts of row k of a complex matrix, and
columns from n on, up to a multiple of COLUMNS, are 0.

Loops are explicit, because assigning slices takes seconds to compile. Row numbers are variables: a
function is compiled again for each constant that is passed to it.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from refssm.jit._compiling.parts import part
from refssm.jit._vectors.formula import splatted
from refssm.jit._vectors.lanes import apart

LANES, ROWS, COLUMNS = 8, 4, 16  # doubles in a vector; rows and columns of a tile
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
WORD = ir.IntType(64)
THREE = 3  # columns of a corner
ONCE = ("contract",)  # one rounding for a product and its sum where the processor can
FUSED = {*ONCE}
REORDERED = {*ONCE, "reassoc"}  # sums in SIMD lanes; NaN and infinity keep their meaning


@part
def product(left, right, sums):
    """sums_rb = Σ_k left_kr right_kb: (k, ROWS), (k, q) -> (ROWS, q), contiguous doubles, and q is
    a multiple of COLUMNS."""
    product_into(left, right, sums, 0)


@part
def product_into(left, right, sums, row):
    """`product`, in the rows of `sums` from `row` on; rows of `right` beyond those of `left` do not
    count."""
    for b in range(0, right.shape[1], COLUMNS):
        _tile(left, right, b, sums, row)


@intrinsic
def _tile(typingctx, left, right, start, sums, row):
    """`product_into` for the columns from `start` on, one tile wide."""

    def generate(context, builder, signature, arguments):
        tables = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
            if isinstance(kind, types.Array)
        ]
        _add_up(builder, *tables, arguments[2], arguments[4])
        return context.get_dummy_value()

    return types.void(left, right, types.intp, sums, types.intp), generate


@part
def correlate(left, right, sums):
    """Adds Σ_b left_rb right_cb to row r · columns + c of sums, apart for each of LANES places b:
    (r, q), (c, q) -> (r c, LANES), contiguous doubles; r is a multiple of 4, c of 3, q of LANES."""
    for r in range(0, left.shape[0], ROWS):
        for c in range(0, right.shape[0], THREE):
            _corner(left, right, r, c, sums)


@intrinsic
def _corner(typingctx, left, right, r, c, sums):
    """`correlate` for four rows by three."""

    def generate(context, builder, signature, arguments):
        left, right, sums = (
            context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1, 4)
        )
        _add_corner(builder, left, right, sums, *arguments[2:4])
        return context.get_dummy_value()

    return types.void(left, right, types.intp, types.intp, sums), generate


def _add_corner(builder, left, right, sums, r, c):
    """Add twelve rows of lanes."""
    (columns, width) = cgutils.unpack_tuple(builder, right.shape, 2)
    places = [
        [
            _lanes(builder, sums, builder.mul(builder.add(row, c), WORD(LANES)), LANES * i)
            for i in range(THREE)
        ]
        for row in (builder.mul(builder.add(r, WORD(k)), columns) for k in range(ROWS))
    ]
    totals = [
        [cgutils.alloca_once_value(builder, builder.load(p, align=8)) for p in row]
        for row in places
    ]
    steps = builder.udiv(width, WORD(LANES))
    with cgutils.for_range(builder, steps) as loop:
        b = builder.mul(loop.index, WORD(LANES))
        xs, ys = (
            [
                builder.load(_lanes(builder, t, builder.add(builder.mul(
                    builder.add(first, WORD(k)), width), b), 0), align=8)
                for k in range(count)
            ]
            for t, first, count in ((left, r, ROWS), (right, c, THREE))
        )  # fmt: skip
        for x, row in zip(xs, totals, strict=True):
            for y, total in zip(ys, row, strict=True):
                term = builder.fmul(x, y, flags=ONCE)
                builder.store(builder.fadd(builder.load(total), term, flags=ONCE), total)
    for row, kept in zip(places, totals, strict=True):
        for place, total in zip(row, kept, strict=True):
            builder.store(builder.load(total), place, align=8)


def _add_up(builder, left, right, sums, start, into):
    """Write a tile of the product."""
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    parts = range(0, COLUMNS, LANES)
    totals = [[cgutils.alloca_once_value(builder, zero) for _ in parts] for _ in range(ROWS)]
    width = cgutils.unpack_tuple(builder, right.shape, 2)[1]
    with cgutils.for_range(builder, cgutils.unpack_tuple(builder, left.shape, 2)[0]) as loop:
        row = builder.add(builder.mul(loop.index, width), start)
        vectors = [builder.load(_lanes(builder, right, row, c), align=8) for c in parts]
        factors = builder.mul(loop.index, WORD(ROWS))
        for r in range(ROWS):
            factor = builder.load(builder.gep(left.data, [builder.add(factors, WORD(r))]))
            factor = splatted(builder, factor, VECTOR)
            for total, vector in zip(totals[r], vectors, strict=True):
                term = builder.fmul(factor, vector, flags=ONCE)
                builder.store(builder.fadd(builder.load(total), term, flags=ONCE), total)
    for r in range(ROWS):
        row = builder.add(builder.mul(width, builder.add(into, WORD(r))), start)
        for c, total in zip(parts, totals[r], strict=True):
            builder.store(builder.load(total), _lanes(builder, sums, row, c), align=8)


def _lanes(builder, table, row, column):
    """Where a vector of this table lies."""
    place = builder.gep(table.data, [builder.add(row, WORD(column))])
    return builder.bitcast(place, VECTOR.as_pointer())


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
