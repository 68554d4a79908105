"""A small matrix product whose sums stay in registers: four rows by two vectors of doubles.

As loops, the sums would go through the L1 cache at every step, and the multipliers would wait for
it half of the time. On processors with shorter vectors the compiler splits the lanes.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportCallIssue=false
# (an intrinsic's arguments are Numba's types when it is compiled, arrays when it is called)

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from refssm.jit._compiling.parts import part

LANES, ROWS, COLUMNS = 8, 4, 16  # doubles in a vector; rows and columns of a tile
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
WORD = ir.IntType(64)
THREE = 3  # columns of a corner
FUSED = ("contract",)  # one rounding for a product and its sum where the processor can


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
                term = builder.fmul(x, y, flags=FUSED)
                builder.store(builder.fadd(builder.load(total), term, flags=FUSED), total)
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
            factor = _repeated(builder, factor)
            for total, vector in zip(totals[r], vectors, strict=True):
                term = builder.fmul(factor, vector, flags=FUSED)
                builder.store(builder.fadd(builder.load(total), term, flags=FUSED), total)
    for r in range(ROWS):
        row = builder.add(builder.mul(width, builder.add(into, WORD(r))), start)
        for c, total in zip(parts, totals[r], strict=True):
            builder.store(builder.load(total), _lanes(builder, sums, row, c), align=8)


def _lanes(builder, table, row, column):
    """Where a vector of this table lies."""
    place = builder.gep(table.data, [builder.add(row, WORD(column))])
    return builder.bitcast(place, VECTOR.as_pointer())


def _repeated(builder, x):
    """x in every lane."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, everywhere)
