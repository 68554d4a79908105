"""Round to nearest even by integers alone: m·2^e to the nearest number of a binary format."""

from __future__ import annotations

import math
from dataclasses import dataclass

End = tuple[int, int] | None  # m·2^e, or no bound


@dataclass(frozen=True)
class Format:
    """A binary format: digits, exponent of the smallest subnormal, 2^most is the first overflow."""

    name: str
    digits: int
    least: int
    most: int


FORMATS = {
    "float32": Format("float32", 24, -149, 128),
    "float64": Format("float64", 53, -1074, 1024),
}


def nearest(m: int, e: int, fmt: Format) -> float:
    """m·2^e rounded to nearest, ties to even; −0.0 where a negative number comes to nothing."""
    size = abs(m)
    unit = max(e + size.bit_length() - fmt.digits, fmt.least)  # of the last place
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
        rounded = math.ldexp(kept, unit if kept else 0)  # exact: no more digits than the format has
    return -rounded if m < 0 else rounded


def certain(low: End, high: End, fmt: Format) -> float | None:
    """What every number between two ends rounds to, or None where they round apart.

    Where they round to zeros of both signs it is nothing, without one.
    """
    if low is None or high is None:
        return None
    ends = nearest(*low, fmt), nearest(*high, fmt)
    if ends[0] != ends[1]:
        return None
    signs = {math.copysign(1.0, end) for end in ends}
    return ends[0] if len(signs) == 1 else 0.0
