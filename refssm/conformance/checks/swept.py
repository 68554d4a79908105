"""What the search of a check has found: verdicts by case, and distinct failures, worst first."""

from dataclasses import dataclass, field, replace

from refssm.conformance.cases.sampling import Sample
from refssm.conformance.judging.verdict import Verdict, worst_of

LISTED = 3  # the largest number of distinct failures of one check
WORST = ("wrong", "error", "inaccurate")  # what fails in silence is worse than what raises

Cases = tuple[tuple[str, Verdict | None], ...]  # key and verdict of drawn cases; None if declined


@dataclass
class Failure:
    """One way in which a check fails."""

    part: int  # the piece that drew the first such case
    key: str  # of that case
    smallest: Verdict  # on `sample`
    verdict: Verdict  # on the worst case that was drawn
    cases: int = 1  # how many drawn cases fail in this way
    sample: Sample | None = None  # the first such case, then a smaller one


@dataclass
class Swept:
    """The result of a sweep; `verdict` is the one on the worst case that was drawn."""

    examples: int = 0
    declined: int = 0
    verdict: Verdict = field(default_factory=lambda: Verdict("-"))
    failures: list[Failure] = field(default_factory=list)  # distinct ones, the worst first
    keys: set[str] = field(default_factory=set)  # all drawn cases
    wanted: int = 0  # of judged cases, if others are drawn in place of declined ones; else 0
    judged: int = 0  # distinct cases that were not declined
    lengths: set[int] = field(default_factory=set)  # their leading sizes, after `only`
    verdicts: dict[str, Verdict | None] = field(default_factory=dict)  # by key; None if declined
    cut: bool = False  # the clock ended it before all cases were judged

    @property
    def few(self) -> bool:
        """True if fewer than half of the wanted cases could be judged, but some."""
        return 0 < 2 * self.judged < self.wanted


class Tally:
    """Counts drawn cases; a case that is drawn twice keeps its first verdict."""

    def __init__(self):
        self.swept = Swept()
        self.found: list[Failure] = []  # one for each failing case, in the order of drawing

    def count(self, part: int, key: str, verdict: Verdict | None) -> None:
        """Count one drawn case; None if it was declined."""
        swept = self.swept
        swept.examples += 1
        swept.declined += verdict is None
        new = key not in swept.keys
        swept.keys.add(key)
        if verdict is None:
            return
        if new:
            swept.judged += 1
            swept.lengths |= {verdict.length} - {0}
        if not verdict.ok:
            self.found.append(Failure(part, key, verdict, verdict))
        else:
            swept.verdict = worst_of([swept.verdict, verdict])

    def settle(self) -> list[Failure]:
        """Decide: at most three distinct failures, and the verdict on the worst of all cases."""
        swept = self.swept
        swept.failures = distinct(self.found)[:LISTED]
        if swept.failures:
            worst = swept.failures[0].verdict
            notes = (*swept.verdict.notes, *worst.notes)
            swept.verdict = replace(worst, notes=tuple(dict.fromkeys(notes)))
        return swept.failures


def distinct(found: list[Failure]) -> list[Failure]:
    """The worst failing case of each kind with the number of such cases; the worst kind first.

    An inaccurate value beside a wrong value of the same output is the same failure.
    """
    kinds: dict[tuple[str, str], list[Failure]] = {}
    wrong = {one.verdict.failure for one in found if one.verdict.verdict == "wrong"}
    for one in found:
        same = ("wrong", one.verdict.failure[1])
        kind = same if one.verdict.verdict != "error" and same in wrong else one.verdict.failure
        kinds.setdefault(kind, []).append(one)
    return sorted((_together(of) for of in kinds.values()), key=_order)


def _together(same: list[Failure]) -> Failure:
    """The worst verdict of some cases, with the first of them that fails in just this way."""
    worst = min(same, key=_order).verdict
    first = next(one for one in same if one.verdict.failure == worst.failure)
    return replace(first, verdict=worst, cases=len(same))


def _order(one: Failure) -> tuple:
    return WORST.index(one.verdict.verdict), -one.verdict.ratio
