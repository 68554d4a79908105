"""Run one check over many cases with Hypothesis: fixed count, one seed, shrinking, no database."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.internal.conjecture import providers

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.piece import Piece, key_of
from refssm.conformance.judging.verdict import Verdict, worst_of

SHRINK_TRIES = 80  # a fixed number, so that machines agree; the time limit ends slow runs
SHRINK_SECONDS = 6.0
ENOUGH = 64  # entries of an output that are enough to show a pattern
UNMUTATED = 10  # after ten examples, half of Hypothesis' next ones are near copies


@dataclass
class Swept:
    """The result of a sweep: the worst passing verdict, or the smallest failure."""

    examples: int = 0
    declined: int = 0
    verdict: Verdict = field(default_factory=lambda: Verdict("-"))
    case: Case | None = None  # the smallest failing case
    first: Verdict | None = None  # the verdict on the first failing case, before shrinking


Cases = tuple[tuple[str, Verdict | None], ...]  # key and verdict of drawn cases; None if declined


class _Failed(Exception):
    def __init__(self, case: Case, verdict: Verdict):
        super().__init__(verdict.message)
        self.case, self.verdict = case, verdict


class _Sweep:
    """A sweep in progress: verdicts by case, the result so far, and the limits of shrinking.

    Verdicts are cached, so a non-deterministic implementation gets one consistent report. After
    `SHRINK_TRIES` new cases or `SHRINK_SECONDS`, shrinking tries no new case.
    """

    def __init__(self, judge_case: Callable[[Case], Verdict], tick: Callable[[int], None]):
        self.judge_case, self.tick = judge_case, tick
        self.swept = Swept()
        self.verdicts: dict[str, Verdict] = {}
        self.drawn: list[tuple[str, Verdict | None]] = []  # cases of the current piece
        self.first: Verdict | None = None  # the first failure; shrinking keeps its kind of verdict
        self.tries, self.deadline = 0, 0.0  # both for shrinking

    def observe(self, case: Case) -> None:
        """Judge one case; raises _Failed if it fails; in shrinking, if it fails like the first."""
        searching = self.first is None
        try:
            verdict = self._verdict(case)
        except Declined:
            verdict = None
        if searching:
            self._count(key_of(case), verdict)
        verdict = verdict or Verdict("-")
        if searching:
            if verdict.ok:
                return
            self.first = verdict
            self.deadline = time.perf_counter() + SHRINK_SECONDS * (not process_died(verdict))
        if self.first is not None and not verdict.ok and verdict.verdict == self.first.verdict:
            raise _Failed(case, verdict)

    def take(self, piece: Piece) -> bool:
        """Count a piece that another process judged; False if it failed and must be drawn here.

        A case that this sweep has already judged keeps its verdict, as in a run with one process,
        but failures always count.
        """
        for key, verdict in piece.cases:
            if verdict is not None and not (verdict.ok and key in self.verdicts):
                self.verdicts[key] = verdict
        if piece.failed:
            return False
        for key, verdict in piece.cases:
            self._count(key, self.verdicts.get(key, verdict))
        return True

    def _count(self, key: str, verdict: Verdict | None) -> None:
        """Count one more example; None if it was declined."""
        swept = self.swept
        swept.examples += 1
        swept.declined += verdict is None
        self.tick(0)
        self.drawn.append((key, verdict))
        verdict = verdict or Verdict("-")
        if verdict.ok:
            swept.verdict = worst_of([swept.verdict, verdict])

    def _over(self) -> bool:
        self.tries += 1
        return self.tries > SHRINK_TRIES or time.perf_counter() > self.deadline

    def _verdict(self, case: Case) -> Verdict:
        key = key_of(case)
        if key not in self.verdicts:
            if self.first is not None:
                if self._over():
                    return Verdict("-")
                self.tick(self.tries)
            self.verdicts[key] = self.judge_case(case)
        return self.verdicts[key]


def sweep(
    strategy,
    judge_case: Callable[[Case], Verdict],
    *,
    count: int,
    seed_: int,
    shrink: bool = True,
    tick: Callable[[int], None] = lambda tries: None,
    ready: Callable[[int], Piece | None] = lambda part: None,
    keep: Callable[[int, Cases], None] = lambda part, cases: None,
) -> Swept:
    """Judge `count` cases and shrink the first failure, to cases with the same kind of verdict.

    `tick` is called for each case, with the number of shrinking steps so far. `ready(part)` returns
    the piece that starts with case `part` if another process judged it; `keep(part, cases)`
    receives the verdicts of a piece judged here.
    """
    state = _Sweep(judge_case, tick)
    swept = state.swept
    with _no_hypothesis_folder(), _no_constants():
        try:
            for part in range(0, count, UNMUTATED):
                piece, state.drawn = ready(part), []
                if piece is not None and state.take(piece):
                    continue
                with _kept(state, part, keep):
                    _draw(strategy, state, min(UNMUTATED, count - part), seed_ + part, shrink)
                if piece is not None:
                    raise RuntimeError(
                        f"seed {seed_ + part} gives other cases here than in the worker process"
                    )
        except _Failed as failed:
            notes = (*swept.verdict.notes, *failed.verdict.notes)
            swept.verdict = replace(failed.verdict, notes=tuple(dict.fromkeys(notes)))
            swept.case, swept.first = failed.case, state.first
    return swept


def widest(strategy, judge_case: Callable[[Case], Verdict], first: Verdict, seed_: int) -> Verdict:
    """Of `first` and a few more failures of the same check, the one with the largest output.

    For pictures: the first failing case is often the simplest one, a single number.
    """
    found = [first]

    def look(case: Case) -> Verdict:
        verdict = judge_case(case)
        if not verdict.ok and _entries(verdict) > _entries(found[-1]):
            found.append(verdict)
        return Verdict("-")

    if not first.error and _entries(first) < ENOUGH:
        sweep(strategy, look, count=UNMUTATED, seed_=seed_, shrink=False)
    return found[-1]


def _entries(verdict: Verdict) -> int:
    return verdict.damage.ratio.size if verdict.damage is not None else 0


@contextmanager
def _kept(state: _Sweep, part: int, keep: Callable[[int, Cases], None]) -> Iterator[None]:
    """Pass what was drawn to `keep`, also after a failure, but not after an interruption."""
    try:
        yield
    except _Failed:
        keep(part, tuple(state.drawn))
        raise
    keep(part, tuple(state.drawn))


def sweep_piece(
    strategy, judge_case: Callable[[Case], Verdict], *, count: int, seed_: int, part: int
) -> Cases:
    """The verdicts of one piece, up to the first failure."""
    state = _Sweep(judge_case, lambda tries: None)
    with _no_hypothesis_folder(), _no_constants(), suppress(_Failed):
        _draw(strategy, state, min(UNMUTATED, count - part), seed_ + part, False)
    return tuple(state.drawn)


def _draw(strategy, state: _Sweep, count: int, seed_: int, shrink: bool) -> None:
    """One run of Hypothesis."""
    run = given(strategy)(lambda case: state.observe(case))
    run = settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )(run)
    seed(seed_)(run)()


def process_died(verdict: Verdict) -> bool:
    """True if the call ended the child process: another try would cost another process."""
    return verdict.error and not verdict.message.startswith("raised")


@contextmanager
def _no_constants() -> Iterator[None]:
    """Keep Hypothesis from drawing numbers found in loaded modules: they depend on imports."""
    provider: Any = getattr(providers, "HypothesisProvider", None)
    drawn = getattr(provider, "_maybe_draw_constant", None)  # missing in older versions
    if drawn is not None:
        provider._maybe_draw_constant = lambda *_, **__: None
    try:
        yield
    finally:
        if drawn is not None:
            provider._maybe_draw_constant = drawn


@contextmanager
def _no_hypothesis_folder() -> Iterator[None]:
    """Let Hypothesis write its caches to a folder that is deleted afterwards."""
    here: Any = storage_directory(intent_to_write=False)
    before = getattr(here, "home_directory", here)  # older versions return the path itself
    with tempfile.TemporaryDirectory(prefix="refssm-hypothesis-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(before)
