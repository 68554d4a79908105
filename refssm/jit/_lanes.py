"""Registers of numbers in compiled functions, one number for each channel.

Numba's loops vectorize only where LLVM finds that they may. `Lanes` are values of LLVM's vector
type (`_formula.py`), so a recurrence written for one channel computes 16 of them (8 in float64):

    x = times_plus(a, load(states, n), drive * B[k, n])
    store(states, n, x)

`load` and `store` use row n of an array (rows, lanes) made by `scratch`. + − · / also take one
number for all lanes.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalCall=false
# pyright: reportArgumentType=false
# (Numba and llvmlite make attributes when they are imported; an intrinsic is called without its
# first parameter)

import operator

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global

from refssm.jit._formula import REGISTER, Lanes, code_of, elementwise, signature_of, splatted

# a part of a kernel: without the functions by which Python and C would call it, whose compilation
# takes longer than its own
inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _operators():
    """+ − · / of lanes, and of lanes and numbers."""
    for sign in (operator.add, operator.sub, operator.mul, operator.truediv):

        @infer_global(sign)
        class _(AbstractTemplate):
            def generic(self, args, kws):
                return signature_of(*args) if any(isinstance(a, Lanes) for a in args) else None

        for kinds in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
            lower_builtin(sign, *kinds)(code_of(sign))


_operators()


@elementwise
def times_plus(x, factor, summand):
    """x · factor + summand, rounded once where the processor can."""
    return x.times_plus(factor, summand)


@elementwise
def where_flagged(flag, chosen, rejected):
    """`chosen` where the flag is 1, `rejected` where it is 0."""
    return flag.where("!=", 0, chosen, rejected)


@elementwise
def beyond(x, bound, before):
    """1 where |x| ≤ bound does not hold, NaN included; `before` elsewhere."""
    return x.where("<=", bound, x.where(">=", -bound, before, 1), 1)


def _pointer(context, builder, kind, array, row, column, rank):
    """The address of array[row, column], as one of lanes."""
    array = context.make_array(kind)(context, builder, array)
    strides = [builder.extract_value(array.strides, i) for i in range(rank)]
    offset = builder.mul(row, strides[0])
    if column is not None:
        offset = builder.add(offset, builder.mul(column, strides[1]))
    base = builder.bitcast(array.data, ir.IntType(8).as_pointer())
    lanes = context.get_value_type(Lanes(kind.dtype)).as_pointer()
    return builder.bitcast(builder.gep(base, [offset]), lanes)


@intrinsic
def apart(typingctx):
    """The compiled function stays one of its own: LLVM copies it into no other."""

    def write(context, builder, signature, values):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), write


@intrinsic
def load(typingctx, array, row):
    """Row `row` of a scratch array."""
    kind = Lanes(array.dtype)

    def write(context, builder, signature, values):
        place = _pointer(context, builder, signature.args[0], *values, None, 1)
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return kind(array, types.intp), write


@intrinsic
def store(typingctx, array, row, lanes):
    """Row `row` of a scratch array becomes these lanes."""

    def write(context, builder, signature, values):
        place = _pointer(context, builder, signature.args[0], *values[:2], None, 1)
        builder.store(values[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, Lanes(array.dtype)), write


@intrinsic
def splat(typingctx, number):
    """This number in all lanes."""
    kind = Lanes(number)

    def write(context, builder, signature, values):
        return splatted(builder, values[0], context.get_value_type(kind))

    return kind(number), write


@intrinsic
def total(typingctx, lanes):
    """The sum of all lanes, by halves."""

    def write(context, builder, signature, values):
        (x,) = values
        while (count := x.type.count) > 1:
            kind = ir.VectorType(ir.IntType(32), count // 2)
            halves = (
                builder.shuffle_vector(x, x, ir.Constant(kind, [*range(i, i + count // 2)]))
                for i in (0, count // 2)
            )
            x = builder.fadd(*halves)
        return builder.extract_element(x, ir.Constant(ir.IntType(32), 0))

    return lanes.dtype(lanes), write


@intrinsic
def transpose(typingctx, source, i, j, target, p, q):
    """target[p + a, q + b] = source[i + b, j + a], for all lanes a and b; their last axes are
    contiguous."""

    def write(context, builder, signature, values):
        source, i, j, target, p, q = values
        count, one = Lanes(signature.args[0].dtype).count, ir.Constant(i.type, 1)
        size = signature.args[0].dtype.bitwidth // 8
        rows, places = [], []
        for _ in range(count):
            place = _pointer(context, builder, signature.args[0], source, i, j, 2)
            rows.append(builder.load(place, align=size))
            places.append(_pointer(context, builder, signature.args[3], target, p, q, 2))
            i, p = builder.add(i, one), builder.add(p, one)
        for row, place in zip(_transposed(builder, rows), places, strict=True):
            builder.store(row, place, align=size)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp, types.intp), write


def _transposed(builder, rows):
    """The columns of a square matrix of rows: blocks of 1, 2, 4 … change places."""
    count, step = len(rows), 1
    kind = ir.VectorType(ir.IntType(32), count)
    while step < count:
        upper = [c if not c & step else count + c - step for c in range(count)]
        lower = [c + step if not c & step else count + c for c in range(count)]
        for r in (r for r in range(count) if not r & step):
            pair = rows[r], rows[r + step]
            rows[r], rows[r + step] = (
                builder.shuffle_vector(*pair, ir.Constant(kind, mask)) for mask in (upper, lower)
            )
        step *= 2
    return rows


@inner
def scratch(rows, like):
    """An array (rows, lanes) of zeros, aligned as registers are."""
    size = like.itemsize
    lanes = REGISTER // 8 // size
    flat = np.zeros((rows + 1) * lanes, like.dtype)
    start = (-flat.ctypes.data // size) % lanes
    return flat[start : start + rows * lanes].reshape(rows, lanes)
