"""The bars of the mirrors: how many times as fast as the fastest peer, and met or missed.

We set them for ourselves, so they are no part of `refssm bench`: `docs/benchmarks.md` has them. On
the GPU they are against NumPy, a copy on the same card, and other kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refssm.bench.measuring.timing import Interval, Rates
from refssm.bench.results.rows import Row, Work, WorkRows
from refssm.bench.work.sizes import USUALLY, Size, size_of
from refssm.bench.work.steps import WITH_PEER
from refssm.conformance.calling.finding import operator_named


@dataclass(frozen=True)
class Bar:
    """What the mirror must reach: how many times as fast as the fastest of some libraries."""

    forward: float
    vjp: float
    error: float = 0.0  # the largest error of the value, relative to its largest entry; 0: any
    copies: float = 0.0  # the largest time, in copies of the output; 0: any
    libraries: tuple[str, ...] = ("jax", "torch")
    significant: bool = False  # True: missed only if the whole interval is below
    formulas: tuple[str, ...] = ()  # peers that compute the formula as it stands; (): all do
    floor: float = 0.0  # the least ratio, forward and VJP, where the bar is a hope; 0: none

    def least(self, vjp: bool) -> float:
        """The ratio to reach, of the forward call or of the VJP; 0: there is no bar."""
        return self.vjp if vjp else self.forward


# bars are about the formula, left to the compiler; peers with a faster method have rows, too
BARS = {
    "vandermonde_kernel_real": Bar(20, 8, error=3e-7, formulas=("vandermonde_formula",)),
    # the formulas of JAX and of PyTorch
    "resolvent_at_roots": Bar(8, 8, formulas=("resolvent_formula", "resolvent_at_roots")),
    "cauchy_kernel": Bar(8, 8, formulas=("cauchy_formula", "cauchy_kernel")),
    "dplr_kernel": Bar(6, 4, error=1e-5, formulas=("dplr_resolvents",)),
    "linear_scan": Bar(6, 6, copies=2),
    "selective_scan": Bar(3, 6),
    "mamba_scan": Bar(3, 6),
    "ssd_chunked": Bar(2.5, 2.5),
    "short_convolution": Bar(4, 4),
    "causal_convolution": Bar(1, 1, libraries=("jax", "torch", "scipy"), significant=True),
    # PyTorch: Horner, half of the nodes
    "hope_transfer": Bar(40, 20, error=1e-6, formulas=("hope_formula",)),
    "gated_delta_rule_chunked": Bar(4, 4, floor=2.5),
    "kimi_delta_rule_chunked": Bar(4, 4, floor=2.5),
    "gated_delta_step": Bar(4, 0),
    "kimi_delta_step": Bar(4, 0),
}
BESIDE = {"mamba2_scan": ("ssd_chunked", 1.3)}  # another mirror, and how many times its time
OF_STEPS = {  # beside compiled JAX
    "s5": Bar(3, 0, libraries=("jax",)),
    "mamba": Bar(2, 0, libraries=("jax",)),
}


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
    peer = fastest(group, bar.libraries, bar.formulas)
    came = group.times_base(peer) if peer else None
    if peer is None or came is None:
        return None
    least = bar.least(work.vjp)
    reached = came.high if bar.significant else came.value
    met = not reached < least
    return Standing(bar, least, peer.label, came, met, tuple(_others(group, bar, rates)))


@dataclass(frozen=True)
class Compared:
    """The time of a mirror beside that of another one in the same run."""

    other: WorkRows
    most: float  # the largest ratio that meets the bar
    came: float

    @property
    def word(self) -> str:
        """met or missed."""
        return "met" if self.came <= self.most else "missed"


def beside(group: WorkRows, groups: Sequence[WorkRows]) -> Compared | None:
    """The forward call of a mirror beside another mirror; None without a bar or the other one."""
    name, most = BESIDE.get(group.work.name, ("", 0.0))
    if not name or group.work.vjp or not _at_paper(group):
        return None
    for other in groups:
        if other.work.name == name and not other.work.vjp and _at_paper(other):
            (one, two) = group.base, other.base
            if one and two and one.timed and two.timed and one.kind == two.kind == "mirror":
                return Compared(other, most, one.median.value / two.median.value)
    return None


def bar_of(group: WorkRows) -> Bar | None:
    """The bar of an operator or a training step, at the size and type for which it has one."""
    work = group.work
    if work.name not in BARS:
        return next((bar for layer, bar in OF_STEPS.items() if _is_step(layer, group)), None)
    bar = BARS[work.name]
    return bar if bar.least(work.vjp) and _at_paper(group) else None


def _at_paper(group: WorkRows) -> bool:
    """True if a group is of the size and type that has the bar."""
    return _timed_at(group.work, size_of(operator_named(group.work.name), "paper"))


def fastest(group: WorkRows, libraries: Sequence[str], functions: Sequence[str] = ()) -> Row | None:
    """The fastest peer of some libraries; among these functions if there are any."""
    timed = [
        r
        for r in group.rows
        if r.timed and r.kind == "peer" and r.library in libraries
        and (not functions or r.label.partition(": ")[2] in functions)
    ]  # fmt: skip
    return min(timed, key=lambda row: row.median.value, default=None)


def _is_step(layer: str, group: WorkRows) -> bool:
    """True if a group is of the training step of this layer, at the size that has the bar."""
    setting = WITH_PEER[layer]
    return (setting.name, setting.letters) == (group.work.name, dict(group.work.size))


def _others(group: WorkRows, bar: Bar, rates: Rates | None):
    """The parts of a bar that are no ratio; they are for the forward call."""
    base = group.base
    first = fastest(group, bar.libraries)
    came = group.times_base(first) if first else None
    if came is not None and first and bar.formulas:
        yield f"the fastest peer, whatever its method: {first.label}, {came.value:.2f}×"
    if came is not None and bar.floor:
        yield f"floor {bar.floor:g}×: {'missed' if came.value < bar.floor else 'met'}"
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
    for name in USUALLY:
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
    return _timed_at(work, size)


def _timed_at(work: Work, size: Size) -> bool:
    """True if a run is of this size; an axis that its operator had not then, as groups, is 1."""
    alone = dict.fromkeys(size.letters, 1)
    return alone | dict(work.size) == size.letters and work.dtype == size.dtype


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
