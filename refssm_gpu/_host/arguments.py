"""Arguments of a launch: checked against the kernel's own signature, and guarded by zones.

A launch works on copies of its arrays, with a page of NaN before and after each. A kernel that
writes beside an array changes a zone, which is an error; one that reads there reads NaN in every
type. Farther accesses are AddressSanitizer's work (`sanitize.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

ZONE = 4096  # bytes; copies keep their addresses modulo this
PATTERN = 0xFFF5  # of 16 bits; repeated, it is NaN in every type
LARGEST = 2**24  # bytes of all arrays; more are not copied: some tests map more than the memory
Span = tuple[int, int]  # first address, and the one after the last


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as the C++ compiler sees it."""

    type: str | None  # "float32", "any" for void, None for a struct
    bytes: int  # of one element
    pointer: bool
    constant: bool  # what the pointer points to

    def __str__(self) -> str:
        thing = self.type or f"a struct of {self.bytes} bytes"
        if not self.pointer:
            return f"the scalar numpy.{thing}" if self.type else f"one record: {thing}"
        return f"an array of {thing}" if self.type != "any" else "an array"


def pointers(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...]) -> Any:
    """Pointers to the arguments' values, and what must stay alive while they are used."""
    if len(parameters) != len(arguments):
        raise TypeError(f"{name}: wanted {len(parameters)} arguments, got {len(arguments)}")
    values = []
    for i, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        if wrong := _wrong(parameter, argument):
            place = f"{name}: argument {i + 1} of {len(arguments)}"
            raise TypeError(f"{place}: wanted {parameter}, got {wrong}")
        values.append(_value(parameter, argument))
    return (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values)), values


def _value(parameter: Parameter, argument: Any) -> np.ndarray:
    """The argument's value in memory: an address, a scalar or a record."""
    if not parameter.pointer:
        return np.array(argument)
    return np.array([0 if argument is None else argument.ctypes.data], np.uintp)


def _wrong(parameter: Parameter, argument: Any) -> str:
    """What came instead of what was wanted; an empty text if it is right."""
    if parameter.pointer and argument is None:
        return ""  # a null pointer
    if not isinstance(argument, np.ndarray | np.generic):
        return f"{argument!r} of type {type(argument).__name__}"
    if parameter.pointer:
        return _wrong_array(parameter, argument)
    return _wrong_value(parameter, argument)


def _wrong_array(parameter: Parameter, argument: Any) -> str:
    if not isinstance(argument, np.ndarray):
        return f"the scalar numpy.{argument.dtype}"
    if not _same_type(parameter, argument.dtype):
        return f"an array of {argument.dtype}"
    if not argument.flags.c_contiguous:
        return "an array that is not contiguous"
    if not (parameter.constant or argument.flags.writeable):
        return "a read-only array, and the kernel writes to it"
    if argument.ctypes.data % _alignment(argument.itemsize):
        return f"an array at an address that is not a multiple of {_alignment(argument.itemsize)}"
    return ""


def _wrong_value(parameter: Parameter, argument: Any) -> str:
    if parameter.type is None:
        record = isinstance(argument, np.ndarray) and argument.dtype.names is not None
        if not (record and argument.size == 1):
            return f"{argument!r}"
        fits = argument.itemsize == parameter.bytes
        return "" if fits else f"a record of {argument.itemsize} bytes"
    if isinstance(argument, np.ndarray):
        return f"an array of {argument.dtype}"
    return "" if _same_type(parameter, argument.dtype) else f"the scalar numpy.{argument.dtype}"


def _same_type(parameter: Parameter, dtype: np.dtype) -> bool:
    if parameter.type is None:
        return dtype.itemsize == parameter.bytes
    names = {"any": (str(dtype),), "uint8": ("uint8", "bool")}
    return str(dtype) in names.get(parameter.type, (parameter.type,))


def _alignment(itemsize: int) -> int:
    """What a load of one element needs: elements of 2, 4, 8 and 16 bytes are loaded at once."""
    return itemsize & -itemsize if itemsize < 16 else 16 if itemsize == 16 else 1


def spans(arrays: Sequence[np.ndarray]) -> list[Span]:
    """The pieces of memory that these arrays cover; those that overlap are one piece."""
    pieces: list[Span] = []
    for first, end in sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays):
        if pieces and (first < pieces[-1][1] or first == pieces[-1][0]):
            pieces[-1] = pieces[-1][0], max(pieces[-1][1], end)
        else:
            pieces.append((first, end))
    return pieces


class _Piece(NamedTuple):
    first: int  # address
    size: int
    copy: np.ndarray  # with the zones, in bytes
    inside: int  # where the piece begins in the copy

    @classmethod
    def of(cls, first: int, end: int) -> _Piece:
        """A copy of this memory, as aligned as the memory itself."""
        copy = _zone(end - first + 3 * ZONE)
        inside = ZONE + (first - copy.ctypes.data) % ZONE
        ctypes.memmove(copy.ctypes.data + inside, first, end - first)
        return cls(first, end - first, copy, inside)

    def has(self, address: int) -> bool:
        """Whether an array at this address is in the piece."""
        return self.first <= address < self.first + max(self.size, 1)

    def back(self) -> None:
        """What the kernel wrote, to the caller's array."""
        ctypes.memmove(self.first, self.copy.ctypes.data + self.inside, self.size)

    def outside(self) -> np.ndarray:
        """The bytes of the zones that changed, counted from the piece's first byte."""
        changed = self.copy != _zone(self.copy.size)
        changed[self.inside : self.inside + self.size] = False
        return np.flatnonzero(changed) - self.inside


class Guarded:
    """Copies of the arrays of one launch between zones.

    `values` has each argument's value in memory: that of an array, its address, becomes the copy's.
    """

    def __init__(self, parameters: Sequence[Parameter], arguments: Sequence, values: Sequence):
        given = list(zip(parameters, arguments, strict=True))
        self.arrays = {i: a for i, (p, a) in enumerate(given) if p.pointer and a is not None}
        found = spans(list(self.arrays.values()))
        small = sum(end - first for first, end in found) <= LARGEST
        self.pieces = [_Piece.of(*span) for span in found] if small else []
        self.written: set[int] = set()  # first addresses of pieces that the kernel may write to
        for piece in self.pieces:
            for i, array in self.arrays.items():
                if piece.has(array.ctypes.data):
                    values[i][...] = array.ctypes.data - piece.first + piece.inside
                    values[i][...] += piece.copy.ctypes.data
                    self.written |= set() if parameters[i].constant else {piece.first}

    def back(self) -> str:
        """Copy back what the kernel wrote; where it wrote outside of an array, or nothing."""
        for piece in self.pieces:
            if piece.first in self.written:
                piece.back()
        for piece in self.pieces:
            if (places := piece.outside()).size:
                return self._told(piece, places)
        return ""

    def _told(self, piece: _Piece, places: np.ndarray) -> str:
        before = places[0] < 0
        near = piece.first + (0 if before else piece.size)
        edges = {i: a.ctypes.data + (0 if before else a.nbytes) for i, a in self.arrays.items()}
        i = next(i for i, edge in edges.items() if edge == near)
        far = -places[places < 0][-1] if before else places[0] - piece.size + 1
        where = "before its first byte" if before else "after its last byte"
        shaped = f"{self.arrays[i].dtype} of shape {self.arrays[i].shape}"
        return f"writes outside of argument {i + 1} ({shaped}), byte {far} {where}"


def _zone(size: int) -> np.ndarray:
    return np.full(-(-size // 2), PATTERN, np.uint16).view(np.uint8)[:size]
