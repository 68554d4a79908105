"""The bars of the mirrors: how many times as fast as the fastest peer, and met or missed."""

from __future__ import annotations

from dataclasses import dataclass

from refssm.bench.measuring.machine import Rates
from refssm.bench.measuring.timing import Interval
from refssm.bench.results.rows import WorkRows
from refssm.bench.work import steps
from refssm.bench.work.sizes import BARS, Bar, size_of
from refssm.conformance.calling.finding import operator_named


@dataclass(frozen=True)
class Standing:
    """A bar, the peer that it is measured against, and what came."""

    bar: Bar
    least: float
    against: str  # the label of the fastest peer
    came: Interval
    met: bool
    others: tuple[str, ...]  # what else the bar asks for, each with "met" or "missed"

    @property
    def word(self) -> str:
        """met or missed."""
        return "met" if self.met else "missed"


def standing(group: WorkRows, rates: Rates | None = None) -> Standing | None:
    """Where the mirror stands; None without a bar at this size, a mirror, or a peer."""
    work, base = group.work, group.base
    bar = bar_of(group)
    if bar is None or base is None or base.kind != "mirror":
        return None
    peer = group.fastest(bar.libraries, bar.formulas)
    came = group.times_base(peer) if peer else None
    if peer is None or came is None:
        return None
    least = bar.least(work.vjp)
    reached = came.high if bar.significant else came.value
    met = not reached < least
    return Standing(bar, least, peer.label, came, met, tuple(_others(group, bar, rates)))


def bar_of(group: WorkRows) -> Bar | None:
    """The bar of an operator or a training step, at the size and type for which it has one."""
    work = group.work
    if work.name not in BARS:
        return steps.bar_of(work.name, work.size)
    size = size_of(operator_named(work.name), "paper")
    wanted = {**size.batch, **size.core, **size.given}
    fits = dict(work.size) == wanted and work.dtype == size.dtype
    return BARS[work.name] if fits else None


def _others(group: WorkRows, bar: Bar, rates: Rates | None):
    """The parts of a bar that are no ratio; they are for the forward call."""
    base = group.base
    fastest = group.fastest(bar.libraries)
    came = group.times_base(fastest) if fastest else None
    if came is not None and fastest and bar.formulas:
        yield f"the fastest peer, whatever its method: {fastest.label}, {came.value:.2f}×"
    if base is None or group.work.vjp:
        return
    if bar.error and base.relative is not None:
        word = "met" if base.relative <= bar.error else "missed"
        yield f"error ≤ {bar.error:g}: {base.relative:.1e}, {word}"
    if bar.copies and rates is not None:
        copies = base.median.value * rates.copy / (2 * group.work.copied)
        word = "met" if copies <= bar.copies else "missed"
        yield f"≤ {bar.copies:g} copies: {copies:.1f}, {word}"
