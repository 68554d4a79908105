"""What the picture of a run shows: for each work, the implementations by time and correct bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from refssm.bench.results.rows import Group
from refssm.conformance.number_types import number_type


class Point(NamedTuple):
    """One implementation."""

    label: str
    kind: str  # reference, mirror, peer or yours
    seconds: float
    low: float  # the quartiles of its times
    high: float
    bits: float


class Panel(NamedTuple):
    """One work: its implementations, and the bits that its type has."""

    title: str
    digits: int
    points: list[Point]


def panels(groups: Iterable[Group]) -> list[Panel]:
    """A panel for each work in which something is timed and has an accuracy."""
    found = []
    for group in groups:
        points = [
            Point(row.label, row.kind, row.median.value, *row.quartiles, row.bits)
            for row in group.rows
            if row.timed and row.bits is not None
        ]
        if points:
            digits = number_type(group.work.dtype).digits
            found.append(Panel(f"{group.work.call}, {group.work.dtype}", digits, points))
    return found
