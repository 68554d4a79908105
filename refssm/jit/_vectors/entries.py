"""Entries of arrays in registers, real or complex, for loops that are written as LLVM's.

Complex entries lie in a register as in memory: real and imaginary parts by turns.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# (Numba and llvmlite make many attributes when they are imported; pyright does not see them)

from dataclasses import dataclass

from llvmlite import ir
from numba import types

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
        self.number, self.bytes = context.get_value_type(part), part.bitwidth // 8
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
