"""Matrix products inside a compiled kernel, a tile of registers at a time.

A tile is a few rows of Y, each some vectors long. Its numbers stay in registers while the sum goes
over k, and one step is one fused multiplication and addition for each vector. LLVM's vectorizer
makes no such code from loops, so the tile is written in LLVM's vectors, as wide as this processor's
registers.
"""

# pyright: reportCallIssue=false
# (an intrinsic is called without its first parameter)

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

WIDE = "avx512f" in (found := llvm.get_host_cpu_features()) and found["avx512f"]
BYTES = 64 if WIDE else 32  # of a vector
ROWS, VECTORS = 4, 4 if WIDE else 2  # of a tile: half of the 32 or 16 registers
BYTE, INTP = ir.IntType(8), ir.IntType(64)


class _Matrix:
    """An array of a kernel: the places of its numbers."""

    def __init__(self, context, builder, kind, value):
        made = context.make_array(kind)(context, builder, value)
        self.builder = builder
        self.start = builder.bitcast(made.data, BYTE.as_pointer())
        self.strides = cgutils.unpack_tuple(builder, made.strides)
        self.shape = cgutils.unpack_tuple(builder, made.shape)
        self.number = context.get_data_type(kind.dtype)
        self.size = 4 if self.number == ir.FloatType() else 8
        self.vector = ir.VectorType(self.number, BYTES // self.size)

    def at(self, row, column=None, vector=0):
        """The place of a number, or of a vector further on."""
        b = self.builder
        offset = b.add(b.mul(row, self.strides[0]), INTP(BYTES * vector))
        if column is not None:
            offset = b.add(offset, b.mul(column, self.strides[1]))
        return b.gep(self.start, [offset])

    def load(self, place, kind):
        """A number or a vector."""
        place = self.builder.bitcast(place, kind.as_pointer())
        return self.builder.load(place, align=self.size)

    def splat(self, place):
        """A vector of copies of one number."""
        b, lanes = self.builder, self.vector.count
        one = ir.Constant(self.vector, ir.Undefined)
        one = b.insert_element(one, self.load(place, self.number), INTP(0))
        return b.shuffle_vector(one, one, ir.Constant(_masks(lanes), None))


@intrinsic(prefer_literal=True)
def _tile(typing, rows, vectors, Y, scale, Z, A, B, r, c):
    """Y[i, c:] = scale[i] Z[i, c:] + A[i] @ B[:, c:] for `rows` rows from r and some vectors."""

    def generate(context, builder, signature, arguments):
        y, by, z, a, b = (
            _Matrix(context, builder, signature.args[i], arguments[i]) for i in range(2, 7)
        )
        r, c = arguments[7:]
        tile = [(i, v) for i in range(rows.literal_value) for v in range(vectors.literal_value)]
        at = {i: builder.add(r, INTP(i)) for i, _ in tile}
        scales = {i: by.splat(by.at(at[i])) for i in at}
        places = [y.at(at[i], c, v) for i, v in tile]
        begun = [builder.fmul(scales[i], z.load(z.at(at[i], c, v), z.vector)) for i, v in tile]

        def step(k, sums):
            right = [b.load(b.at(k, c, v), b.vector) for v in range(vectors.literal_value)]
            left = {i: a.splat(a.at(at[i], k)) for i in at}
            parts = [builder.fmul(left[i], right[v], flags=("contract",)) for i, v in tile]
            return [
                builder.fadd(total, part, flags=("contract",))
                for total, part in zip(sums, parts, strict=True)
            ]

        for place, total in zip(places, _repeated(builder, a.shape[1], begun, step), strict=True):
            place = builder.bitcast(place, y.vector.as_pointer())
            builder.store(total, place, align=y.size)
        return context.get_dummy_value()

    return types.none(rows, vectors, Y, scale, Z, A, B, r, c), generate


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


@njit(inline="always")
def multiplied(Y, scale, Z, A, B):
    """Y[i] = scale[i] Z[i] + (A B)[i]; rows of Y, Z and B are contiguous, whole vectors long."""
    _multiplied(_loose(Y), _loose(scale), _loose(Z), _loose(A), _loose(B))


@njit
def _multiplied(Y, scale, Z, A, B):
    apart()
    (rows, columns), lanes, c = Y.shape, BYTES // Y.itemsize, 0
    while c < columns:
        wide, r = c + VECTORS * lanes <= columns, 0
        while r < rows:
            if r + ROWS <= rows:
                if wide:
                    _tile(ROWS, VECTORS, Y, scale, Z, A, B, r, c)
                else:
                    _tile(ROWS, 1, Y, scale, Z, A, B, r, c)
                r += ROWS
            else:
                if wide:
                    _tile(1, VECTORS, Y, scale, Z, A, B, r, c)
                else:
                    _tile(1, 1, Y, scale, Z, A, B, r, c)
                r += 1
        c += VECTORS * lanes if wide else lanes


def _same(context, builder, signature, arguments):
    """The argument itself; only its type is another one."""
    return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])


@intrinsic
def dense(typing, row):
    """The same row, of a type that says that its numbers are neighbours."""
    return row.copy(layout="C")(row), _same


@intrinsic
def _loose(typing, array):
    """The same array, of the type with any strides: functions of one type are compiled once."""
    return array.copy(layout="A")(array), _same


@intrinsic
def apart(typing):
    """Forbid to inline the function that calls this: copies of it would be compiled one by one."""

    def generate(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), generate


@njit(inline="always")
def moved(Y, X, scale):
    """Y[i] = scale[i] X[i] for the rows of X, as far as they go."""
    _moved(_loose(Y), _loose(X), _loose(scale))


@njit
def _moved(Y, X, scale):
    apart()
    neighbours = X.strides[1] == X.itemsize and Y.strides[1] == Y.itemsize
    for i in range(X.shape[0]):
        if neighbours:
            _row_moved(dense(Y[i]), dense(X[i]), scale[i])
        else:
            _row_moved(Y[i], X[i], scale[i])


@njit
def _row_moved(y, x, factor):
    """y = factor x, as far as x goes."""
    for p in range(x.size):
        y[p] = factor * x[p]


@intrinsic
def _transposed_block(typing, Y, X, i, j):
    """Y[j : j + lanes, i:] = X[i : i + lanes, j:]ᵀ, one vector of each row."""

    def generate(context, builder, signature, arguments):
        y, x = (_Matrix(context, builder, signature.args[k], arguments[k]) for k in (0, 1))
        (i, j), lanes = arguments[2:], x.vector.count
        rows = [x.load(x.at(builder.add(i, INTP(k)), j), x.vector) for k in range(lanes)]
        step = lanes // 2
        while step:  # exchange the off-diagonal blocks of this size
            lower = [k + step if not k & step else k + lanes for k in range(lanes)]
            upper = [k if not k & step else k - step + lanes for k in range(lanes)]
            for k in range(lanes):
                if not k & step:
                    pair = rows[k], rows[k + step]
                    rows[k], rows[k + step] = (
                        builder.shuffle_vector(*pair, ir.Constant(_masks(lanes), mask))
                        for mask in (upper, lower)
                    )
            step //= 2
        for k, row in enumerate(rows):
            place = y.at(builder.add(j, INTP(k)), i)
            builder.store(row, builder.bitcast(place, y.vector.as_pointer()), align=y.size)
        return context.get_dummy_value()

    return types.none(Y, X, i, j), generate


def _masks(lanes):
    """The type of a mask of `shuffle_vector`."""
    return ir.VectorType(ir.IntType(32), lanes)


@njit
def transposed(Y, X):
    """Y = Xᵀ; rows are contiguous, both sizes whole vectors."""
    lanes = BYTES // X.itemsize
    for i in range(0, X.shape[0], lanes):
        for j in range(0, X.shape[1], lanes):
            _transposed_block(Y, X, i, j)


@njit
def padded(length, x):
    """The length of whole vectors that have room for this many numbers."""
    lanes = BYTES // x.itemsize
    return -(-length // lanes) * lanes


@njit
def unset(rows, columns, x):
    """Memory for rows of whole vectors, of the type of x, that begin at multiples of BYTES."""
    width = padded(columns, x)
    memory = np.empty(rows * width + BYTES // x.itemsize, x.dtype)
    skipped = (-memory.ctypes.data % BYTES) // x.itemsize
    return memory[skipped : skipped + rows * width].reshape(rows, width)


@njit
def buffer(rows, columns, x):
    """Zeros in such memory."""
    memory = unset(rows, columns, x)
    for i in range(rows):
        for j in range(memory.shape[1]):
            memory[i, j] = 0
    return memory


@njit
def filled(Y, X):
    """Y = X as far as both go, and 0 beyond."""
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            Y[i, j] = X[i, j] if i < X.shape[0] and j < X.shape[1] else 0
