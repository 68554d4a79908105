"""Formulas over the rows of matrices, real or complex, for compiled functions.

    @over_rows(1)
    def advance(a, b, before):
        return a * before + b

    advance(x, k, a, k, b, k, x, k - 1)  # x_k = a_k x_{k−1} + b_k, entry by entry

Each argument is a matrix and the index of a row; the outputs come first. Numba would compile such
loops to gathers and scatters, since a gufunc's arrays may have any stride. Here the entries of a
register are loaded at once where those of every row are adjacent; the others one by one.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalCall=false
# pyright: reportArgumentType=false
# (Numba and llvmlite make attributes when they are imported; an intrinsic is called without its
# first parameter)

import inspect
from itertools import pairwise

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from refssm.jit._vectors.entries import Entries, bit

LONG = 8  # registers: in rows as long, it pays that no access crosses a line of the cache


def over_rows(outputs, backwards=False):
    """This formula as a function for compiled code, which has so many outputs. Each row is a matrix
    and an index; a parameter called `flag` is a boolean.

    `backwards`: from the last entry to the first, for loops over descending rows: the processor
    then reads memory in one direction and fetches it in time.
    """

    def decorate(formula):
        names = [*inspect.signature(formula).parameters]
        rows = [f"y{i}" for i in range(outputs)] + [n for n in names if n != "flag"]

        def define(typingctx, *arguments):
            whole = (types.intp if isinstance(a, types.Integer) else a for a in arguments)
            return types.void(*whole), _code_of(formula, outputs, len(rows), backwards)

        # Numba asks for the number of arguments
        pairs = [name for row in rows for name in (row, f"{row}_at")]
        told = ["typingctx", *pairs, *names[len(rows) - outputs :]]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        define.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in told])
        define.__name__, define.__doc__ = formula.__name__, formula.__doc__
        return intrinsic(define)

    return decorate


def _code_of(formula, outputs, count, backwards):
    """What Numba calls to write the loops of a formula over so many rows."""

    def write(context, builder, signature, values):
        kind = Entries(context, builder, signature.args[0].dtype)
        flags = [bit(context, builder, value) for value in values[2 * count :]]
        rows, length = [], None
        for i in range(0, 2 * count, 2):
            matrix = context.make_array(signature.args[i])(context, builder, values[i])
            across, step = cgutils.unpack_tuple(builder, matrix.strides, 2)
            rows.append(kind.moved(kind.row(matrix.data, step), builder.mul(values[i + 1], across)))
            length = length or cgutils.unpack_tuple(builder, matrix.shape, 2)[1]

        def loop(begin, end, width):
            step = begin.type(width)
            with cgutils.for_range_slice(builder, begin, end, step) as (place, _):
                if backwards:
                    place = builder.sub(builder.add(begin, builder.sub(end, place)), step)
                given = [kind.load(row, place, width) for row in rows[outputs:]]
                for result, row in zip(formula(*given, *flags), rows, strict=False):
                    kind.store(result, row, place)

        widths = (1, kind.wide, 1)
        loops = [*zip(pairwise(_borders(builder, kind, rows, length)), widths, strict=True)]
        for (begin, end), width in loops[::-1] if backwards else loops:
            loop(begin, end, width)
        return context.get_dummy_value()

    return write


def _borders(builder, kind, rows, length):
    """Where the loops begin and end: one by one up to the address at which a register of the first
    row is aligned, if rows are long; registers; the others. No registers without adjacent
    entries."""
    number = length.type
    adjacent = ir.IntType(1)(1)
    for row in rows:
        adjacent = builder.and_(adjacent, builder.icmp_signed("==", row.step, number(kind.size)))
    address = builder.ptrtoint(rows[0].start, number)
    rest = builder.and_(builder.neg(address), number(kind.wide * kind.size - 1))
    long = builder.icmp_signed(">=", length, number(LONG * kind.wide))
    head = builder.udiv(rest, number(kind.size))
    head = builder.select(builder.and_(adjacent, long), head, number(0))
    whole = builder.and_(builder.sub(length, head), number(-kind.wide))
    return [number(0), head, builder.select(adjacent, builder.add(head, whole), head), length]


@intrinsic
def adjacent(typing, vector):
    """The same vector for SIMD; it does not keep the memory alive; for adjacent entries only."""
    same = types.Array(vector.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        given = context.make_array(vector)(context, builder, arguments[0])
        result = context.make_array(same)(context, builder)
        context.populate_array(
            result,
            data=given.data,
            shape=given.shape,
            strides=given.strides,
            itemsize=given.itemsize,
            meminfo=None,
        )
        return result._getvalue()

    return same(vector), generate
