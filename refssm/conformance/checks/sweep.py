"""Run one check over many cases with Hypothesis: a search, then each kind of failure made smaller.

The search goes on after a failure, so that the verdict is on the worst case drawn and distinct
failures are found. Cases that are declined are drawn again.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.internal.conjecture import providers

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.drawing import UNMUTATED, Drawing
from refssm.conformance.checks.piece import Piece, key_of
from refssm.conformance.checks.swept import Cases, Failure, Swept, Tally
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.usage_error import UsageError

SHRINK_TRIES = 80  # a fixed number, so that machines agree; the time limit ends slow runs
SHRINK_SECONDS = 6.0  # for all failures of a check together
MORE = 40  # after the first failure, so many cases are drawn to find other failures
MORE_SECONDS = 6.0
REDRAWS = 20  # at most so many times the wanted number of cases, if cases are declined
REDRAW_SECONDS = 0.1  # for each wanted case
ENOUGH = 64  # entries of an output that are enough to show a pattern


class _Sweep:
    """A sweep in progress: verdicts by case, and the result so far.

    Verdicts are cached, so a non-deterministic implementation gets one consistent report.
    """

    def __init__(
        self,
        judge_case: Callable[[Case], Verdict],
        tick: Callable[[int], None],
        several: bool,
    ):
        self.judge_case, self.tick, self.several = judge_case, tick, several
        self.tally = Tally()
        self.verdicts: dict[str, Verdict | None] = {}
        self.drawn: list[tuple[str, Verdict | None]] = []  # cases of the current piece
        self.part = 0  # the current piece
        self.refusal: UsageError | None = None  # an `only` that cannot be relied on
        self.ended = False  # a case ended the search

    def judge(self, cases: list[Case], redrawn: bool = False) -> None:
        """Judge and count the cases of a piece, up to one that ends the search.

        Cases that are drawn in place of declined ones count until enough were judged.
        """
        for case in cases:
            swept, key = self.tally.swept, key_of(case)
            if redrawn and (swept.judged >= swept.wanted or key in swept.keys):
                continue
            verdict = self.verdict_on(key, case)
            self.drawn.append((key, verdict))
            self.count(key, verdict)
            if verdict is not None and self.ends(verdict):
                self.ended = True
                return

    def ends(self, verdict: Verdict) -> bool:
        """True if the search ends with this verdict."""
        return not verdict.ok and (not self.several or verdict.died)

    def verdict_on(self, key: str, case: Case) -> Verdict | None:
        """The verdict on a case; None if it is declined."""
        if self.refusal is not None:  # Hypothesis calls again and wants the same exception
            raise self.refusal
        if key not in self.verdicts:
            try:
                self.verdicts[key] = self.judge_case(case)
            except Declined:
                self.verdicts[key] = None
            except UsageError as error:
                self.refusal = error
                raise
        return self.verdicts[key]

    def count(self, key: str, verdict: Verdict | None) -> None:
        """Count a case of the current piece."""
        self.tally.count(self.part, key, verdict)
        self.tick(0)

    def take(self, piece: Piece, redrawn: bool) -> None:
        """Count a piece that another process judged.

        A case that this sweep has already judged keeps its verdict, as in a run with one process,
        but a failure replaces a verdict that is none: the first failure of a case is kept.
        """
        swept = self.tally.swept
        for key, verdict in piece.cases:
            if redrawn and (swept.judged >= swept.wanted or key in swept.keys):
                continue
            if key not in self.verdicts or (_fails(verdict) and not _fails(self.verdicts[key])):
                self.verdicts[key] = verdict
            verdict = self.verdicts[key]
            self.count(key, verdict)
            if verdict is not None and self.ends(verdict):
                self.ended = True
                return


def _fails(verdict: Verdict | None) -> bool:
    return verdict is not None and not verdict.ok


class _Search:
    """Draws the pieces of a sweep one after the other."""

    def __init__(self, state: _Sweep, drawing: Drawing, count: int, seed_: int, ready, keep):
        self.state, self.drawing, self.count, self.seed = state, drawing, count, seed_
        self.ready, self.keep = ready, keep
        self.pieces: dict[int, tuple] = {}  # the size and the strategy of each piece drawn
        self.first: tuple[int, float] | None = None  # where the first failure is, and when it came

    def run(self, redraw: bool) -> None:
        """Draw all cases; then, with `redraw`, others in place of those that were declined."""
        swept = self.state.tally.swept
        for part, size, strategy in self.drawing.pieces(self.count):
            if self.over(part):
                return
            self._piece(part, size, strategy)
        if not (redraw and swept.declined) or self.state.tally.found:
            return
        swept.wanted = len(swept.keys)
        deadline = time.perf_counter() + REDRAW_SECONDS * swept.wanted
        short = replace(self.drawing, long=())  # long cases take long to be declined, too
        for turn in range(1, REDRAWS):
            for part, size, strategy in short.pieces(self.count):
                if swept.judged >= swept.wanted or self.over(part + turn * self.count):
                    return
                if time.perf_counter() > deadline:
                    seconds = REDRAW_SECONDS * swept.wanted
                    self.say(f"no more draws in place of declined cases after {seconds:g} s")
                    return
                self._piece(part + turn * self.count, size, strategy, redrawn=True)

    def over(self, part: int) -> bool:
        """True if the search ends before this piece."""
        state = self.state
        if state.ended:
            return True
        if not state.tally.found:
            return False
        if self.first is None:
            self.first = state.tally.found[0].part, time.perf_counter()
        if part >= self.first[0] + MORE:
            return True
        if time.perf_counter() > self.first[1] + MORE_SECONDS:
            self.say(f"the search for other failures ended after {MORE_SECONDS:g} s")
            return True
        return False

    def say(self, note: str) -> None:
        """Add a note to the verdict."""
        swept = self.state.tally.swept
        swept.verdict = replace(swept.verdict, notes=(*swept.verdict.notes, note))

    def _piece(self, part: int, size: int, strategy, redrawn: bool = False) -> None:
        state = self.state
        self.pieces[part] = size, strategy
        state.part, state.drawn, piece = part, [], self.ready(part)
        if piece is not None:
            state.take(piece, redrawn)
            return
        state.judge(drawn(strategy, size, self.seed + part), redrawn)
        self.keep(part, tuple(state.drawn))


class _Ended(Exception):
    """A case that fails like the one to be made smaller."""

    def __init__(self, case: Case, verdict: Verdict):
        super().__init__(verdict.message)
        self.case, self.verdict = case, verdict


class _Shrinking:
    """Makes the first case of one kind of failure smaller; it stays a failure of that kind.

    After `SHRINK_TRIES` new cases, or at the deadline, no new case is tried.
    """

    def __init__(self, state: _Sweep, failure: Failure, deadline: float):
        self.state, self.failure, self.tries = state, failure, 0
        self.deadline = 0.0 if failure.verdict.died else deadline
        self.found = False

    def observe(self, case: Case) -> None:
        """Raise _Ended for that case, then for each smaller one that fails like it."""
        key, verdicts = key_of(case), self.state.verdicts
        self.found |= key == self.failure.key
        if not self.found:
            return
        if key not in verdicts:
            self.tries += 1
            if self.tries > SHRINK_TRIES or time.perf_counter() > self.deadline:
                return
            self.state.tick(self.tries)
        verdict = self.state.verdict_on(key, case)
        if verdict is not None and verdict.failure == self.failure.verdict.failure:
            raise _Ended(case, verdict)


def sweep(
    drawing: Drawing,
    judge_case: Callable[[Case], Verdict],
    *,
    count: int,
    seed_: int,
    shrink: bool = True,
    redraw: bool = False,
    tick: Callable[[int], None] = lambda tries: None,
    ready: Callable[[int], Piece | None] = lambda part: None,
    keep: Callable[[int, Cases], None] = lambda part, cases: None,
) -> Swept:
    """Judge `count` cases, and make up to three distinct failures smaller.

    Without `shrink` the first failure ends the search and stays as it was drawn. With `redraw`,
    other cases are drawn in place of declined ones. `tick` is called for each case, with the number
    of shrinking steps so far. `ready(part)` returns the piece that starts with case `part` if
    another process judged it; `keep(part, cases)` receives the verdicts of a piece judged here.
    """
    state = _Sweep(judge_case, tick, several=shrink)
    with repeatable():
        search = _Search(state, drawing, count, seed_, ready, keep)
        search.run(redraw)
        deadline = time.perf_counter() + SHRINK_SECONDS
        for failure in state.tally.settle():
            shrinking = _Shrinking(state, failure, deadline)
            size, strategy = search.pieces[failure.part]
            try:
                draw(strategy, shrinking.observe, size, seed_ + failure.part, shrink)
            except _Ended as ended:
                failure.case, failure.smallest = ended.case, ended.verdict
            else:
                raise RuntimeError(
                    f"seed {seed_ + failure.part} gives other cases here than in the search"
                )
    return state.tally.swept


def widest(
    drawing: Drawing, judge_case: Callable[[Case], Verdict], first: Verdict, seed_: int
) -> Verdict:
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
        sweep(drawing, look, count=UNMUTATED, seed_=seed_, shrink=False)
    return found[-1]


def _entries(verdict: Verdict) -> int:
    return verdict.damage.ratio.size if verdict.damage is not None else 0


def sweep_piece(
    drawing: Drawing,
    judge_case: Callable[[Case], Verdict],
    *,
    count: int,
    seed_: int,
    part: int,
    several: bool,
) -> Cases:
    """The verdicts of one piece; without `several`, up to the first failure."""
    state = _Sweep(judge_case, lambda tries: None, several)
    size, strategy = {start: rest for start, *rest in drawing.pieces(count)}[part]
    with repeatable():
        state.judge(drawn(strategy, size, seed_ + part))
    return tuple(state.drawn)


def drawn(strategy, count: int, seed_: int) -> list[Case]:
    """At most `count` cases of a strategy, the same for the same seed."""
    cases: list[Case] = []
    draw(strategy, cases.append, count, seed_, shrink=False)
    return cases


def draw(strategy, observe: Callable[[Case], None], count: int, seed_: int, shrink: bool) -> None:
    """One run of Hypothesis; with `shrink`, it makes the first case smaller that raises."""
    run = given(strategy)(lambda case: observe(case))
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


@contextmanager
def repeatable() -> Iterator[None]:
    """Hypothesis without numbers from loaded modules and without a folder of its own."""
    with _no_hypothesis_folder(), _no_constants():
        yield


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
