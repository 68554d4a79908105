"""A model of how fast kernels that mostly move memory will be. Nothing of it was measured.

A kernel reads and writes each of its arrays once. Threads keep a number of bytes under way
(in_flight, see flight.py); by Little's law a card that answers after LATENCY then delivers

    rate(blocks) = min(bandwidth, blocks · threads · in_flight / LATENCY · moved / read)

as long as so many blocks run; stores are not waited for. Blocks come in waves of as many as the
multiprocessors hold at a time, and the last wave is smaller. An operator's share of bandwidth is
the time that its inputs and outputs alone need at full bandwidth over the time of its launches.

A launch that computes marked rows only (`Marked` in the kernel's declaration) is not counted: a
usual call marks none, and the launch returns at once.

Left out: arithmetic, shared memory, barriers, arrays that a kernel reads twice or only in part,
what the second-level cache keeps between launches, the time between launches, and all array code
around them. So a share is a bound for what memory allows, on the peak bandwidth of a data sheet;
copies themselves reach about nine tenths of that. It says little about a call with a kernel that
something else bounds, such as arithmetic: `Expected.bound` has what each kernel declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpu.gate.compiled import Compiled
from gpu.gate.occupancy import CARDS, Card, Occupancy, occupancy
from gpu.gate.recording import Launch, instance_of, recorded

from refssm_gpu._launching.kernel import BOUNDS

NOTE = "a model, nothing was measured"
# Seconds from a load to its data under load: an assumption for all three cards. Published
# latencies of idle memory are 0.25 to 0.4 µs, and queues add as much again.
LATENCY = 650e-9


@dataclass(frozen=True)
class Expected:
    """One call on one card."""

    card: Card
    needed: int  # bytes of the call's inputs and outputs
    launches: tuple[Launch, ...]
    seconds: float  # of the counted launches

    @property
    def counted(self) -> tuple[Launch, ...]:
        """The launches that a usual call needs: all but those for marked rows."""
        return tuple(launch for launch in self.launches if not launch.for_marked)

    @property
    def moved(self) -> int:
        """Bytes that the counted launches read and write."""
        return sum(launch.moved for launch in self.counted)

    @property
    def share(self) -> float:
        """Of the peak bandwidth, counting only the bytes needed; 0 if no launch is counted."""
        return self.needed / (self.card.bandwidth * self.seconds) if self.counted else 0.0

    @property
    def bound(self) -> str:
        """What bounds the call: "memory" if it bounds each kernel, else the first in BOUNDS."""
        declared = {launch.kernel.bound for launch in self.counted}
        return next((b for b in BOUNDS[1:] if b in declared), BOUNDS[0])


def expected(function: Callable, arguments: Sequence[Any], statics: dict, card: Card) -> Expected:
    """The model for one call of a launcher with NumPy arrays, whose values do not matter."""
    with recorded(card) as launches:
        result = function(*arguments, **statics)
    outputs = result if isinstance(result, tuple) else (result,)
    arrays = [x for x in (*arguments, *outputs) if isinstance(x, np.ndarray)]
    seconds = sum(time_of(launch, card) for launch in launches if not launch.for_marked)
    return Expected(card, sum(x.nbytes for x in arrays), tuple(launches), seconds)


def time_of(launch: Launch, card: Card) -> float:
    """Seconds of one launch."""
    made = instance_of(launch.kernel, launch.instance, card.architecture)
    at_once = resident(launch, made, card).blocks * card.multiprocessors
    if not at_once:
        raise ValueError(f"{made.expression}: no block fits into a multiprocessor of {card.name}")
    waves, rest = divmod(launch.blocks, at_once)
    each = launch.moved / launch.blocks
    full = at_once * each / rate(at_once, launch, made, card)
    last = rest * each / rate(rest, launch, made, card) if rest else 0.0
    return waves * full + last


def rate(blocks: int, launch: Launch, made: Compiled, card: Card) -> float:
    """Bytes a second while so many blocks run."""
    if not (launch.read and made.in_flight):
        return card.bandwidth
    under_way = blocks * launch.kernel.block * made.in_flight
    return min(card.bandwidth, under_way / LATENCY * launch.moved / launch.read)


def resident(launch: Launch, made: Compiled, card: Card) -> Occupancy:
    """How many of its blocks a multiprocessor holds."""
    return occupancy(card, made.registers, launch.kernel.block, made.shared + launch.shared)


__all__ = ["CARDS", "LATENCY", "NOTE", "Expected", "expected", "rate", "resident", "time_of"]
