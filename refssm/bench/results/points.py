"""What the picture of a run shows: for each work, the implementations by time and correct bits.

The bits are those of the largest entry, −log₂(largest error / largest entry): the judge's bits are
all those of the type as soon as no error is above u·K0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log2
from typing import NamedTuple

from refssm.bench.results.rows import Row, WorkRows
from refssm.conformance.number_types import number_type


class MeasuredPoint(NamedTuple):
    """One implementation."""

    label: str
    kind: str  # reference, mirror, GPU mirror, peer or yours
    seconds: float
    low: float  # the quartiles of its times
    high: float
    bits: float


class MeasuredPanel(NamedTuple):
    """One work: its implementations, and the bits that its type has."""

    title: str
    digits: int
    points: list[MeasuredPoint]


def panels(groups: Iterable[WorkRows]) -> list[MeasuredPanel]:
    """A panel for each work in which something is timed and has an accuracy."""
    found = []
    for group in groups:
        digits = number_type(group.work.dtype).digits
        points = [
            MeasuredPoint(row.label, row.kind, row.median.value, *row.quartiles, bits(row, digits))
            for row in group.rows
            if row.timed and row.relative is not None
        ]
        if points:
            found.append(MeasuredPanel(f"{group.work.call}, {group.work.dtype}", digits, points))
    return found


def bits(row: Row, digits: int) -> float:
    """Correct bits of the largest entry; at most one more than the type has."""
    least = 2.0 ** -(digits + 1)
    return -log2(min(1.0, max(row.relative or 0.0, least)))
