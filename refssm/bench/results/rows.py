"""One row of a run: an implementation at one size, with its times and what follows from them.

A picture of a run shows, for each work, the implementations by time and correct bits. These are the
bits of the largest entry, −log₂(largest error / largest entry): the judge's bits are all those of
the type as soon as no error is above u·K0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import NamedTuple

from refssm.bench.measuring import timing
from refssm.bench.measuring.timing import Interval
from refssm.conformance.number_types import number_type

TIMED, REFUSED, FAILED, SKIPPED = "timed", "refused", "failed", "skipped"
MIRRORS = ("GPU mirror", "mirror")  # kinds of rows; the first that is there is the base


@dataclass(frozen=True)
class Work:
    """What is timed: an operator, or later a layer, at a size; the forward call or the VJP."""

    name: str
    size: Mapping[str, int | float]
    dtype: str
    vjp: bool
    bytes: int = 0  # of inputs and outputs
    copied: int = 0  # bytes of the largest output
    flops: float | None = None

    @property
    def title(self) -> str:
        """Name, type and size in one line."""
        letters = " ".join(f"{k}={v}" for k, v in self.size.items())
        return f"{self.call} {self.dtype}   {letters}"

    @property
    def call(self) -> str:
        """The name of the function."""
        return f"{self.name}_vjp" if self.vjp else self.name


@dataclass(frozen=True)
class Row:
    """An implementation in one work."""

    label: str
    kind: str  # reference, mirror, GPU mirror, peer, yours
    library: str
    status: str = TIMED
    message: str = ""  # why it is not timed; else the judge's line
    seconds: tuple[float, ...] = ()  # of one call, by round
    repeats: int = 1  # calls in each timing
    copies: int = 1  # of the inputs, used in turn
    peak: int | None = None  # bytes of one call, outputs included
    ratio: float | None = None  # the largest error in units of u·K0
    bits: float | None = None
    relative: float | None = None  # the largest error, relative to the largest entry
    accuracy_at: str = ""  # on which part of the inputs it was measured
    notes: tuple[str, ...] = field(default=())
    device: str = ""  # "cuda", or the processor
    latency: float | None = None  # seconds on a card, from Python until the result is there

    @property
    def timed(self) -> bool:
        """True if it has times."""
        return self.status == TIMED and bool(self.seconds)

    @property
    def median(self) -> Interval:
        """The median of its times."""
        return timing.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and third quartile of its times."""
        return timing.quartiles(self.seconds)


@dataclass(frozen=True)
class WorkRows:
    """All rows of one work."""

    work: Work
    rows: Sequence[Row]

    @property
    def base(self) -> Row | None:
        """The row to which the others are compared: a mirror, else the first that is timed.

        The mirror on the GPU comes before the one on the processor.
        """
        timed = [row for row in self.rows if row.timed]
        mirrors = (row for kind in MIRRORS for row in timed if row.kind == kind)
        return next(mirrors, timed[0] if timed else None)

    @property
    def on_card(self) -> bool:
        """True if some row is of a card."""
        return any(row.device for row in self.rows)

    def times_base(self, row: Row) -> Interval | None:
        """How many times as long as the mirror a row takes."""
        base = self.base
        if base is None or not row.timed or row is base:
            return None
        return timing.ratio(row.seconds, base.seconds)


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
