"""Round m·2^e to the nearest number of a binary format, ties to even, with integers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
