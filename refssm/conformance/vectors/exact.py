"""Correctly rounded outputs, certified by ball arithmetic and confirmed by mpmath.

A number m·2^e is rounded to the nearest one of a binary format, ties to even, with integers only.
It is certified if both ends of its ball round to it; otherwise the precision doubles, up to a
limit. Then mpmath, another program with other formulas, must give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from refssm import oracle
from refssm._declaration.operator import Operator

End = tuple[int, int] | None  # (m, e) for m·2^e, or None for no bound


@dataclass(frozen=True)
class Format:
    """A binary format: significand bits, exponent of the smallest subnormal, 2^most overflows."""

    name: str
    digits: int
    least: int
    most: int


FORMATS = {
    "float32": Format("float32", 24, -149, 128),
    "float64": Format("float64", 53, -1074, 1024),
}


def nearest(m: int, e: int, fmt: Format) -> float:
    """m·2^e rounded to nearest, ties to even; a negative number that rounds to zero gives −0.0."""
    size = abs(m)
    unit = max(e + size.bit_length() - fmt.digits, fmt.least)  # exponent of the last digit
    dropped = unit - e
    if dropped <= 0:
        kept = size << -dropped
    else:
        kept, rest = size >> dropped, size & ((1 << dropped) - 1)
        half = 1 << (dropped - 1)
        kept += rest > half or (rest == half and kept % 2 == 1)
    if kept and kept.bit_length() + unit > fmt.most:
        rounded = math.inf
    else:
        rounded = math.ldexp(kept, unit if kept else 0)  # exact: kept fits into the format
    return -rounded if m < 0 else rounded


def certain(low: End, high: End, fmt: Format) -> float | None:
    """The value that all numbers between two ends round to, or None if they differ.

    If the ends round to zeros of different sign, the value is +0.0.
    """
    if low is None or high is None:
        return None
    ends = nearest(*low, fmt), nearest(*high, fmt)
    if ends[0] != ends[1]:
        return None
    signs = {math.copysign(1.0, end) for end in ends}
    return ends[0] if len(signs) == 1 else 0.0


FIRST, LAST = 128, 8192  # bits; products of two subnormals start 2148 bits after the point
SPARE = 10  # decimal digits of mpmath beyond those of the balls


class Disagreement(Exception):
    """Two oracles round one number differently: one of them is wrong."""


class Undecided(Exception):
    """No precision up to the limit decides how to round a number: it is near a midpoint."""


def correctly_rounded(
    op: Operator, arrays, statics: Mapping, formats: Iterable[str]
) -> list[dict[str, np.ndarray]]:
    """Every output in every format, as double precision arrays with that format's values."""
    wanted = [FORMATS[name] for name in formats]
    bits, numbers = _certified(op, arrays, statics, wanted)
    _confirm(op, arrays, statics, wanted, numbers, bits)
    shapes = op.output_shapes(*arrays, **statics)
    return [
        {f.name: _array(entries, i, shape) for i, f in enumerate(wanted)}
        for entries, shape in zip(numbers, shapes, strict=True)
    ]


def _certified(op, arrays, statics, wanted) -> tuple[int, list]:
    """The precision that was enough, and for each output the parts of each entry per format."""
    from refssm.enclosure import ends

    bits, place = FIRST, None
    while bits <= LAST:
        balls = ends(op, arrays, statics, bits)
        numbers = [
            [[[certain(low, high, f) for f in wanted] for low, high in parts] for parts in entries]
            for entries in balls
        ]
        place = _first(op, arrays, statics, numbers, lambda x: None in x)
        if place is None:
            return bits, numbers
        bits *= 2
    raise Undecided(f"{op}: {place} cannot be rounded with {LAST} bits")


def _confirm(op, arrays, statics, wanted: list[Format], numbers, bits) -> None:
    """Compare with mpmath at rising precision until it rounds to the same; else Disagreement."""
    place, apart = None, (None, None)
    while bits <= 2 * LAST:
        digits = int(bits * np.log10(2)) + SPARE
        exact = oracle.exact(op, arrays, statics, digits)
        pairs = [
            [[_apart(x, part, wanted) for x, part in zip(*both, strict=True)]
             for both in zip(entries, theirs, strict=True)]
            for entries, theirs in zip(numbers, exact, strict=True)
        ]  # fmt: skip
        place = _first(op, arrays, statics, pairs, bool)
        if place is None:
            return
        apart = next(x for entries in pairs for parts in entries for x in parts if x)
        bits *= 2
    raise Disagreement(f"{op}: {place} is {apart[0]!r} by ball arithmetic, {apart[1]!r} by mpmath")


def _apart(ours, theirs, wanted: list[Format]) -> tuple:
    """The last pair of numbers that differ, or ()."""
    rounded = [nearest(theirs[0], theirs[1], f) if theirs else None for f in wanted]
    return next(((x, y) for x, y in zip(ours[::-1], rounded[::-1], strict=True) if x != y), ())


def _first(op, arrays, statics, numbers, wrong) -> str | None:
    """The name of the first entry for which `wrong` is true, such as `y[0, 2]`, or None."""
    shapes = op.output_shapes(*arrays, **statics)
    for name, shape, entries in zip(op.outputs, shapes, numbers, strict=True):
        for i, parts in enumerate(entries):
            if any(wrong(x) for x in parts):
                return f"{name}{[int(j) for j in np.unravel_index(i, shape)] if shape else ''}"
    return None


def _array(entries, i, shape) -> np.ndarray:
    """The numbers of one format; parts are set separately, since x + 0·i loses signs of zero."""
    parts = [np.array([parts[j][i] for parts in entries], float) for j in range(_width(entries))]
    if len(parts) == 1:
        return parts[0].reshape(shape)
    y = np.empty(len(entries), complex)
    y.real, y.imag = parts
    return y.reshape(shape)


def _width(entries) -> int:
    return len(entries[0]) if entries else 1
