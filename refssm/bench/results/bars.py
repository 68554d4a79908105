"""The bars of the mirrors: how many times as fast as the fastest peer, and met or missed.

On the GPU they are against NumPy, a copy on the same card, and other kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from refssm.bench.measuring.machine import Rates
from refssm.bench.measuring.timing import Interval
from refssm.bench.results.rows import Row, WorkRows
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


NUMPY = 100.0  # times as fast as the reference, for every operator that has a bar
MET, MISSED, UNKNOWN = "met", "missed", "not measured"
NOBODY = "no comparable kernel was installed or measured"  # in place of a ratio


@dataclass(frozen=True)
class CardBar:
    """What the mirror on the GPU must reach at the size `large`."""

    copy: float = 0.0  # the share of the card's copy bandwidth of the forward call; 0: any
    library: str = ""  # whose kernels it is measured against; "": nobody's
    times: float = 0.0  # how many times as fast, forward and VJP


# S4's extension; its Cauchy sums are other work, so two of these bars have nothing to compare with
_EXTENSION = CardBar(library="structured-kernels", times=10)
CARD_BARS = {
    "linear_scan": CardBar(copy=0.8),
    "selective_scan": CardBar(copy=0.8, library="mamba-ssm", times=1),
    "cauchy_kernel": _EXTENSION,
    "vandermonde_kernel_real": _EXTENSION,
    "dplr_kernel": _EXTENSION,
}


@dataclass(frozen=True)
class Reached:
    """A bar in words, what came, and whether it is met."""

    wanted: str
    came: str  # the figure, or why there is none
    word: str


def standings(group: WorkRows, rates: Rates | None = None) -> list[Reached]:
    """Where the mirror on the GPU stands; [] without one, or at another size or type."""
    mirror = next((row for row in group.rows if row.kind == "GPU mirror"), None)
    if mirror is None or not _fits(group):
        return []
    bar = CARD_BARS.get(group.work.name, CardBar())
    return [_times(group, mirror, "numpy", NUMPY, "NumPy"), *_more(group, mirror, bar, rates)]


def wanted() -> Iterator[tuple[str, str]]:
    """Each operator that has bars, and its bars in words."""
    for name in BARS:
        bar = CARD_BARS.get(name, CardBar())
        words = [f"≥ {NUMPY:g} × NumPy"]
        words += [_share(bar)] if bar.copy else []
        words += [f"≥ {bar.times:g} × {bar.library}"] if bar.library else []
        yield name, "; ".join(words)


def _fits(group: WorkRows) -> bool:
    work = group.work
    if work.name not in BARS:
        return False
    size = size_of(operator_named(work.name), "large")
    return dict(work.size) == size.letters and work.dtype == size.dtype


def _more(group: WorkRows, mirror: Row, bar: CardBar, rates: Rates | None) -> Iterator[Reached]:
    if bar.copy and not group.work.vjp:
        card = rates.card if rates else None
        if card is None or not mirror.timed:
            yield Reached(_share(bar), "", UNKNOWN)
        else:
            came = group.work.bytes / mirror.median.value / card.copy
            yield Reached(_share(bar), f"{came:.0%}", MET if came >= bar.copy else MISSED)
    if bar.library:
        yield _times(group, mirror, bar.library, bar.times, bar.library)


def _share(bar: CardBar) -> str:
    return f"≥ {bar.copy:.0%} of the card's copy bandwidth"


def _times(group: WorkRows, mirror: Row, library: str, least: float, name: str) -> Reached:
    """How many times as fast as the fastest row of a library; NumPy's is the reference."""
    kind = "reference" if library == "numpy" else "peer"
    rows = [r for r in group.rows if r.timed and r.kind == kind and r.library == library]
    words = f"≥ {least:g} × {name}"
    if not mirror.timed:
        return Reached(words, "", UNKNOWN)
    if not rows:
        return Reached(words, "" if library == "numpy" else NOBODY, UNKNOWN)
    came = min(row.median.value for row in rows) / mirror.median.value
    return Reached(words, f"{came:.3g} ×", MET if came >= least else MISSED)
