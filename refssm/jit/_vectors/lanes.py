"""Registers of numbers in compiled functions, one number for each channel.

Numba's loops vectorize only where LLVM finds that they may. `Lanes` are values of LLVM's vector
type (`formula.py`), so a recurrence written for one channel computes 16 of them (8 in float64):

    x = times_plus(a, load(states, n), drive * B[k, n])
    store(states, n, x)

`load` and `store` are in `scratch.py`. + − · / also take one number for all lanes.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global

from refssm.jit._vectors.formula import Lanes, code_of, elementwise, signature_of, splatted


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
def larger(x, y):
    """The larger one; y if x is NaN."""
    return x.where(">", y, x, y)


@elementwise
def beyond(x, bound, before):
    """1 where |x| ≤ bound does not hold, NaN included; `before` elsewhere."""
    return x.where("<=", bound, x.where(">=", -bound, before, 1), 1)


@intrinsic
def apart(typingctx):
    """The compiled function stays one of its own: LLVM copies it into no other."""

    def write(context, builder, signature, values):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), write


@intrinsic
def plain(typingctx):
    """The compiled function is not copied into others, and its loops not unrolled: they are written
    in vectors already, and Numba optimizes a function anew in each that calls it."""

    def generate(context, builder, signature, arguments):
        for attribute in ("noinline", "optsize"):
            builder.function.attributes.add(attribute)
        return context.get_dummy_value()

    return types.void(), generate


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


def columns_of(builder, rows):
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
