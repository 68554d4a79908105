"""Formulas over the rows of matrices, real or complex, for compiled functions.

    @over_rows(1)
    def advance(a, b, before):
        return a * before + b

    advance(x, k, a, k, b, k, x, k - 1)  # x_k = a_k x_{k−1} + b_k, entry by entry

Each argument is a matrix and the index of a row; the outputs come first. Numba would compile such
loops to gathers and scatters, since a gufunc's arrays may have any stride. Here the entries of a
register are loaded at once where those of every row are adjacent; the others one by one.

`Entries` are for loops that are written as LLVM's. Complex entries lie in a register as in memory:
real and imaginary parts by turns.
"""

import inspect
from dataclasses import dataclass
from itertools import pairwise

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from refssm.jit._compiling.parts import callable_as
from refssm.jit._vectors.formula import REGISTER

BYTE, WORD = ir.IntType(8), ir.IntType(32)


@dataclass(frozen=True)
class Entry:
    """Real entries, or one, as an LLVM vector."""

    builder: ir.IRBuilder
    value: ir.Value

    parts = 1  # numbers in an entry

    def _like(self, value):
        return type(self)(self.builder, value)

    def _moved(self, places, other=None):
        """The numbers at these places; those of `other` come after the own ones."""
        mask = ir.Constant(ir.VectorType(WORD, len(places)), places)
        value = self.value if other is None else other
        return self._like(self.builder.shuffle_vector(self.value, value, mask))

    def __add__(self, other):
        return self._like(self.builder.fadd(self.value, other.value))

    def __mul__(self, other):
        return self._like(self.builder.fmul(self.value, other.value))

    def conj(self):
        """The conjugates."""
        return self

    def instead(self, flag, other):
        """`other` if the flag, a bit, is set."""
        return self._like(self.builder.select(flag, other.value, self.value))

    def unless(self, flag):
        """Zeros if the flag is set."""
        return self.instead(flag, self._like(ir.Constant(self.value.type, None)))

    def repeated(self, count):
        """The one entry so many times."""
        return self._moved([i % self.parts for i in range(count * self.parts)])

    def total(self):
        """The sum of all entries, by halves."""
        half = self.value.type.count // 2
        if half < self.parts:
            return self
        lower = self._moved([*range(half)]) + self._moved([*range(half, 2 * half)])
        return lower.total()


@dataclass(frozen=True)
class ComplexEntry(Entry):
    """Complex entries, or one."""

    parts = 2

    def conj(self):
        count = self.value.type.count
        negative = self.builder.fneg(self.value)
        return self._moved([i + count * (i % 2) for i in range(count)], negative)

    def __mul__(self, other):
        """(Re x Re y − Im x Im y) + i(Re x Im y + Im x Re y), each part rounded as written."""
        count = self.value.type.count
        negative = self.builder.fneg(self.value)  # a − b is a + (−b), bit by bit
        real = self._moved([i - i % 2 for i in range(count)])
        signed = self._moved([i if i % 2 else count + i + 1 for i in range(count)], negative)
        turned = other._moved([i + 1 - 2 * (i % 2) for i in range(count)])
        first = self.builder.fmul(real.value, other.value)
        second = self.builder.fmul(signed.value, turned.value)
        return self._like(self.builder.fadd(first, second))


@dataclass(frozen=True)
class RowAddress:
    """The address of a first entry, and the bytes from one entry to the next."""

    start: ir.Value
    step: ir.Value


class Entries:
    """Where a function loads and stores entries of one type of array."""

    def __init__(self, context, builder, dtype):
        part = getattr(dtype, "underlying_float", dtype)
        self.builder, self.entry = builder, Entry if part is dtype else ComplexEntry
        self.number = context.get_value_type(part)
        self.bytes = part.bitwidth // 8  # pyright: ignore[reportOptionalMemberAccess]
        self.size = self.bytes * self.entry.parts
        self.wide = REGISTER // 8 // self.size  # entries in a register

    def _kind(self, count):
        return ir.VectorType(self.number, count * self.entry.parts)

    def row(self, data, step=None):
        """The row that begins here; its entries are adjacent, or `step` bytes apart."""
        start = self.builder.bitcast(data, BYTE.as_pointer())
        return RowAddress(start, ir.IntType(64)(self.size) if step is None else step)

    def moved(self, row, offset):
        """The row so many bytes further on."""
        return RowAddress(self.builder.gep(row.start, [offset]), row.step)

    def further(self, place, count):
        """This place and so many entries."""
        return self.builder.add(place, place.type(count))

    def _address(self, row, place, count):
        start = self.builder.gep(row.start, [self.builder.mul(place, row.step)])
        return self.builder.bitcast(start, self._kind(count).as_pointer())

    def load(self, row, place, count) -> Entry:
        """So many entries from this place on."""
        address = self._address(row, place, count)
        return self.of(self.builder.load(address, align=self.bytes))

    def store(self, entry, row, place):
        """Store entries from this place on."""
        count = entry.value.type.count // self.entry.parts
        self.builder.store(entry.value, self._address(row, place, count), align=self.bytes)

    def of(self, value) -> Entry:
        """This LLVM vector as entries."""
        return self.entry(self.builder, value)

    def zero(self, count) -> Entry:
        """So many zeros."""
        return self.of(ir.Constant(self._kind(count), None))


def bit(context, builder, flag):
    """A boolean of Numba as one bit."""
    return context.cast(builder, flag, types.boolean, types.boolean)


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

        pairs = [name for row in rows for name in (row, f"{row}_at")]
        return callable_as(formula, define, [*pairs, *names[len(rows) - outputs :]])

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
