"""Matrices in compiled functions: where the first number is, the sizes, and two strides.

Numba compiles a function anew for arrays of each layout, and a slice of an array takes it ten
milliseconds. A `Matrix` is five numbers; all of one floating type are of one type in compiled code,
whatever they are parts of. It does not keep its memory alive: a kernel calls `held(array)` after
the last use.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic, make_attribute_wrapper, models, register_model

from refssm.jit._vectors.formula import REGISTER, Lanes

BYTES = REGISTER // 8
INTP = ir.IntType(64)
SIZES = ("rows", "columns", "down", "across")  # strides in bytes


class Matrix(types.Type):
    """The type of matrices of this floating type."""

    def __init__(self, dtype: types.Float):
        self.dtype = dtype
        super().__init__(f"Matrix({dtype})")


@register_model(Matrix)
class _MatrixModel(models.StructModel):
    def __init__(self, manager, kind):
        members = [("place", types.voidptr), *((name, types.intp) for name in SIZES)]
        super().__init__(manager, kind, members)


for _name in SIZES:
    make_attribute_wrapper(Matrix, _name, _name)


class Addresses:
    """A matrix while instructions are written."""

    def __init__(self, context, builder, kind, value):
        self.builder, self.given = (
            builder,
            cgutils.create_struct_proxy(kind)(context, builder, value),
        )
        self.number = context.get_value_type(kind.dtype)
        self.vector = context.get_value_type(Lanes(kind.dtype))
        self.size = kind.dtype.bitwidth // 8

    def at(self, row, column, vector=0):
        """The address of an entry, or of a vector further on."""
        b = self.builder
        offset = b.add(b.mul(row, self.given.down), b.mul(column, self.given.across))
        return b.gep(self.given.place, [b.add(offset, INTP(BYTES * vector))])

    def load(self, place, kind):
        """A number, or numbers beside each other."""
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=self.size)

    def store(self, value, place):
        """Write a number or a vector."""
        place = self.builder.bitcast(place, value.type.as_pointer())
        self.builder.store(value, place, align=self.size)


def _written(write):
    """What Numba calls for a matrix made of given ones: `write` fills the fields of the result."""

    def generate(context, builder, signature, arguments):
        result = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        write(context, builder, signature, arguments, result)
        return result._getvalue()

    return generate


@intrinsic
def matrix(typing, array):
    """An array of two axes."""

    def write(context, builder, signature, arguments, result):
        _of_array(context, builder, array, arguments[0], [], result)

    return Matrix(array.dtype)(array), _written(write)


@intrinsic
def slab(typing, array, k):
    """array[k], of an array of three axes."""

    def write(context, builder, signature, arguments, result):
        _of_array(context, builder, array, arguments[0], arguments[1:], result)

    return Matrix(array.dtype)(array, types.intp), _written(write)


def _of_array(context, builder, kind, value, leading, result):
    given = context.make_array(kind)(context, builder, value)
    strides = cgutils.unpack_tuple(builder, given.strides, kind.ndim)
    place = builder.bitcast(given.data, result.place.type)
    for k, stride in zip(leading, strides, strict=False):
        place = builder.gep(place, [builder.mul(k, stride)])
    result.place, (result.down, result.across) = place, strides[-2:]
    result.rows, result.columns = cgutils.unpack_tuple(builder, given.shape, kind.ndim)[-2:]


@intrinsic
def memory_of(typing, array, start, rows, columns, like):
    """A matrix of numbers like `like` in an array of bytes: it begins at a multiple of BYTES,
    `start` bytes and at most BYTES − 1 more behind the first one, and its rows follow at once."""

    def write(context, builder, signature, arguments, result):
        given = context.make_array(array)(context, builder, arguments[0])
        _, start, result.rows, result.columns, _ = arguments
        place = builder.add(builder.ptrtoint(given.data, INTP), start)
        place = builder.and_(builder.add(place, INTP(BYTES - 1)), INTP(-BYTES))
        result.place = builder.inttoptr(place, result.place.type)
        result.across = INTP(signature.return_type.dtype.bitwidth // 8)
        result.down = builder.mul(result.columns, result.across)

    return Matrix(like)(array, *(types.intp,) * 3, like), _written(write)


@intrinsic
def held(typing, array):
    """Up to here the memory of this array is not freed."""
    return types.void(array), lambda context, builder, *_: context.get_dummy_value()


@intrinsic
def block(typing, X, i, j, rows, columns):
    """X[i : i + rows, j : j + columns]."""

    def write(context, builder, signature, arguments, result):
        X_, i, j, result.rows, result.columns = arguments
        entries = Addresses(context, builder, X, X_)
        result.place = entries.at(i, j)
        result.down, result.across = entries.given.down, entries.given.across

    return X(X, *(types.intp,) * 4), _written(write)


@intrinsic
def turned(typing, X):
    """Xᵀ."""

    def write(context, builder, signature, arguments, result):
        given = Addresses(context, builder, X, arguments[0]).given
        result.place = given.place
        result.rows, result.columns = given.columns, given.rows
        result.down, result.across = given.across, given.down

    return X(X), _written(write)


@intrinsic
def repeated(typing, X, i, j):
    """The row from X[i, j] on, again and again."""

    def write(context, builder, signature, arguments, result):
        entries = Addresses(context, builder, X, arguments[0])
        result.place = entries.at(*arguments[1:])
        result.rows, result.columns = entries.given.rows, entries.given.columns
        result.down, result.across = INTP(0), entries.given.across

    return X(X, types.intp, types.intp), _written(write)


@intrinsic
def number(typing, X, i, j):
    """X[i, j]."""

    def generate(context, builder, signature, arguments):
        entries = Addresses(context, builder, X, arguments[0])
        return entries.load(entries.at(*arguments[1:]), entries.number)

    return X.dtype(X, types.intp, types.intp), generate


@intrinsic
def put(typing, X, i, j, value):
    """X[i, j] = value."""

    def generate(context, builder, signature, arguments):
        entries = Addresses(context, builder, X, arguments[0])
        entries.store(arguments[3], entries.at(*arguments[1:3]))
        return context.get_dummy_value()

    return types.void(X, types.intp, types.intp, X.dtype), generate


@intrinsic
def lanes_at(typing, X, i, j):
    """X[i, j] and the numbers beside it, one for each lane."""

    def generate(context, builder, signature, arguments):
        entries = Addresses(context, builder, X, arguments[0])
        return entries.load(entries.at(*arguments[1:]), entries.vector)

    return Lanes(X.dtype)(X, types.intp, types.intp), generate


@intrinsic
def put_lanes(typing, X, i, j, lanes):
    """X[i, j] and the numbers beside it become these, each rounded to the type of X."""

    def generate(context, builder, signature, arguments):
        entries = Addresses(context, builder, X, arguments[0])
        value = arguments[3]
        kind = ir.VectorType(entries.number, value.type.count)
        value = builder.fptrunc(value, kind) if kind != value.type else value
        entries.store(value, entries.at(*arguments[1:3]))
        return context.get_dummy_value()

    return types.void(X, types.intp, types.intp, lanes), generate


@intrinsic
def lanes_of(typing, X):
    """How many numbers of this matrix are one vector."""
    count = Lanes(X.dtype).count
    return types.intp(X), lambda context, *_: context.get_constant(types.intp, count)


@intrinsic
def zeros(typing, X):
    """Lanes of zeros, for this matrix."""

    def generate(context, builder, signature, arguments):
        return ir.Constant(context.get_value_type(signature.return_type), None)

    return Lanes(X.dtype)(X), generate


@intrinsic
def neighbours(typing, X):
    """True if the numbers of a row are beside each other."""

    def generate(context, builder, signature, arguments):
        entries = Addresses(context, builder, X, arguments[0])
        return builder.icmp_signed("==", entries.given.across, INTP(entries.size))

    return types.boolean(X), generate
