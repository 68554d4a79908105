"""Matrix products inside a compiled kernel, a tile of registers at a time.

A tile is four rows of Y, each some vectors long. Its numbers stay in registers while the sum goes
over k, and one step is one fused multiplication and addition for each vector. LLVM's vectorizer
makes no such code from loops, so the tile is written in LLVM's vectors.

Matrices that are written here have whole tiles of rows and whole vectors of columns, and what lies
beyond the true sizes is zero.
"""

# pyright: reportCallIssue=false
# (an intrinsic is called without its first parameter)

from numba import types
from numba.core.extending import intrinsic

from refssm.jit._compiling.parts import part
from refssm.jit._compiling.width import wide
from refssm.jit._vectors.formula import splatted
from refssm.jit._vectors.lanes import columns_of, plain, times_plus, total
from refssm.jit._vectors.matrix import (
    INTP,
    Addresses,
    lanes_at,
    lanes_of,
    neighbours,
    number,
    put,
    put_lanes,
    zeros,
)

ROWS = 4  # of a tile
FUSED = ("contract",)  # one rounding for a product and its sum


def vectors_of_tile() -> int:
    """The vectors of a row of a tile: the tile has half of the registers, and a vector is two of
    the shorter ones."""
    return 4 if wide() else 1


@intrinsic
def _tile_columns(typing, Y):
    """How many columns a wide tile has."""

    def generate(context, builder, signature, arguments):
        lanes = Addresses(context, builder, Y, arguments[0]).vector.count
        return context.get_constant(types.intp, lanes * vectors_of_tile())

    return types.intp(Y), generate


@intrinsic(prefer_literal=True)
def _tile(typing, whole, Y, scale, Z, A, B, r, c):
    """Y[i, c:] = scale[i] Z[i, c:] + A[i] @ B[:, c:] for ROWS rows from r and some vectors."""

    def generate(context, builder, signature, arguments):
        y, by, z, a, b = (
            Addresses(context, builder, signature.args[i], arguments[i]) for i in range(1, 6)
        )
        r, c = arguments[6:]
        vectors = range(vectors_of_tile() if whole.literal_value else 1)
        rows, zero = [builder.add(r, INTP(i)) for i in range(ROWS)], INTP(0)

        def spread(matrix, i, k):
            return splatted(builder, matrix.load(matrix.at(i, k), matrix.number), matrix.vector)

        def begun(i, v):
            return builder.fmul(spread(by, i, zero), z.load(z.at(i, c, v), z.vector))

        def step(k, sums):
            right = [b.load(b.at(k, c, v), b.vector) for v in vectors]
            left = [spread(a, i, k) for i in rows]
            terms = (builder.fmul(x, y, flags=FUSED) for x in left for y in right)
            return [builder.fadd(s, t, flags=FUSED) for s, t in zip(sums, terms, strict=True)]

        places = [y.at(i, c, v) for i in rows for v in vectors]
        sums = [begun(i, v) for i in rows for v in vectors]
        for place, value in zip(
            places, _repeated(builder, a.given.columns, sums, step), strict=True
        ):
            y.store(value, place)
        return context.get_dummy_value()

    return types.void(whole, Y, scale, Z, A, B, types.intp, types.intp), generate


def _repeated(builder, count, begun, step):
    """The values after `values = step(k, values)` for k = 0 … count − 1."""
    before = builder.block
    loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", count, INTP(0)), loop, after)
    builder.position_at_end(loop)
    k, values = builder.phi(INTP), [builder.phi(value.type) for value in begun]
    changed = [builder.add(k, INTP(1)), *step(k, values)]
    for value, first, next_ in zip([k, *values], [INTP(0), *begun], changed, strict=True):
        value.add_incoming(first, before)
        value.add_incoming(next_, builder.block)
    builder.cbranch(builder.icmp_signed("<", changed[0], count), loop, after)
    builder.position_at_end(after)
    results = [builder.phi(value.type) for value in begun]
    for result, first, last in zip(results, begun, changed[1:], strict=True):
        result.add_incoming(first, before)
        result.add_incoming(last, loop)
    return results


@part
def multiplied(Y, scale, Z, A, B):
    """Y[i] = scale[i] Z[i] + (A B)[i]; rows of Y, Z and B are contiguous."""
    plain()
    whole, c = _tile_columns(Y), 0
    while c < Y.columns:
        if c + whole <= Y.columns:
            for r in range(0, Y.rows, ROWS):
                _tile(1, Y, scale, Z, A, B, r, c)
            c += whole
        else:
            for r in range(0, Y.rows, ROWS):
                _tile(0, Y, scale, Z, A, B, r, c)
            c += lanes_of(Y)


@part
def moved(Y, scale, X):
    """Y[i] = scale[i] X[i] as far as X goes, and 0 beyond, as far as Y goes."""
    plain()
    lanes, beside = lanes_of(Y), neighbours(X) and neighbours(Y)
    for i in range(Y.rows):
        count, j, factor = min(Y.columns, X.columns) if i < X.rows else 0, 0, number(scale, i, 0)
        while beside and j + lanes <= count:
            put_lanes(Y, i, j, factor * lanes_at(X, i, j))
            j += lanes
        while j < count:
            put(Y, i, j, factor * number(X, i, j))
            j += 1
        while j < Y.columns:
            put(Y, i, j, 0.0)
            j += 1


@part
def cleared(Y):
    """Y = 0."""
    plain()
    for i in range(Y.rows):
        for j in range(0, Y.columns, lanes_of(Y)):
            put_lanes(Y, i, j, zeros(Y))


@intrinsic
def _transposed_block(typing, Y, X, i, j):
    """Y[j : j + lanes, i:] = X[i : i + lanes, j:]ᵀ, one vector of each row."""

    def generate(context, builder, signature, arguments):
        y, x = (Addresses(context, builder, signature.args[k], arguments[k]) for k in (0, 1))
        (i, j), lanes = arguments[2:], range(x.vector.count)
        rows = [x.load(x.at(builder.add(i, INTP(k)), j), x.vector) for k in lanes]
        for k, column in enumerate(columns_of(builder, rows)):
            y.store(column, y.at(builder.add(j, INTP(k)), i))
        return context.get_dummy_value()

    return types.void(Y, X, types.intp, types.intp), generate


@part
def transposed(Y, X):
    """Y = Xᵀ; rows are contiguous, both sizes whole vectors."""
    plain()
    for i in range(0, X.rows, lanes_of(X)):
        for j in range(0, X.columns, lanes_of(X)):
            _transposed_block(Y, X, i, j)


@part
def row_dots(dots, X, Y):
    """dots[i] = X[i] · Y[i]."""
    plain()
    for i in range(X.rows):
        dot = zeros(X)
        for j in range(0, X.columns, lanes_of(X)):
            dot = times_plus(lanes_at(X, i, j), lanes_at(Y, i, j), dot)
        put(dots, 0, i, total(dot))


@part
def added(Y, X):
    """Y += X."""
    plain()
    for i in range(X.rows):
        for j in range(0, X.columns, lanes_of(X)):
            put_lanes(Y, i, j, lanes_at(Y, i, j) + lanes_at(X, i, j))


@part
def weighted(Y, W, X):
    """Y_ij = W_ij X_ij."""
    plain()
    for i in range(Y.rows):
        for j in range(0, Y.columns, lanes_of(Y)):
            put_lanes(Y, i, j, lanes_at(W, i, j) * lanes_at(X, i, j))


@part
def nothing(X):
    """0 if all numbers are finite, else NaN."""
    plain()
    checked = zeros(X)
    for i in range(X.rows):
        for j in range(0, X.columns, lanes_of(X)):
            checked = times_plus(lanes_at(X, i, j), zeros(X), checked)
    return total(checked)


@part
def padded(length, lanes):
    """The length of whole vectors that have room for this many numbers."""
    return (length + lanes - 1) // lanes * lanes
