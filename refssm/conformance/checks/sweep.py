"""Run one check over many cases: the search for failures.

The search goes on after a failure, so that the verdict is on the worst case drawn and distinct
failures are found. Cases that are declined are drawn again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.sampling import Sample
from refssm.conformance.checks.drawing import PIECE, Drawing, Draws
from refssm.conformance.checks.piece import Piece, key_of
from refssm.conformance.checks.swept import Cases, Swept, Tally
from refssm.conformance.judging.verdict import Verdict

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
        tick: Callable[[], None],
        several: bool,
    ):
        self.judge_case, self.tick, self.several = judge_case, tick, several
        self.tally = Tally()
        self.verdicts = self.tally.swept.verdicts
        self.drawn: list[tuple[str, Verdict | None]] = []  # cases of the current piece
        self.part = 0  # the current piece
        self.ended = False  # a case ended the search

    def judge(self, samples: list[Sample], redrawn: bool = False) -> None:
        """Judge and count the cases of a piece, up to one that ends the search."""
        cases = ((key_of(sample.case), sample.case) for sample in samples)
        self._count(((key, partial(self._judged, key, case)) for key, case in cases), redrawn)

    def take(self, piece: Piece, redrawn: bool) -> None:
        """Count a piece that another process judged, up to a case that ends the search."""
        cases = ((key, partial(self._taken, key, verdict)) for key, verdict in piece.cases)
        self._count(cases, redrawn)

    def _count(
        self, cases: Iterable[tuple[str, Callable[[], Verdict | None]]], redrawn: bool
    ) -> None:
        """Count cases; those drawn in place of declined ones only until enough were judged."""
        swept = self.tally.swept
        for key, verdict_of in cases:
            if redrawn and (swept.judged >= swept.wanted or key in swept.keys):
                continue
            verdict = verdict_of()
            self.drawn.append((key, verdict))
            self.tally.count(self.part, key, verdict)
            self.tick()
            if verdict is not None and not verdict.ok and (not self.several or verdict.died):
                self.ended = True
                return

    def _judged(self, key: str, case: Case) -> Verdict | None:
        """The verdict on a case; None if it is declined."""
        if key not in self.verdicts:
            try:
                self.verdicts[key] = self.judge_case(case)
            except Declined:
                self.verdicts[key] = None
        return self.verdicts[key]

    def _taken(self, key: str, verdict: Verdict | None) -> Verdict | None:
        """The verdict of another process, or the one that this sweep already has.

        So it is in a run with one process. But a failure replaces a verdict that is none: the first
        failure of a case is kept.
        """
        if key not in self.verdicts or (_fails(verdict) and not _fails(self.verdicts[key])):
            self.verdicts[key] = verdict
        return self.verdicts[key]


def _fails(verdict: Verdict | None) -> bool:
    return verdict is not None and not verdict.ok


class _Search:
    """Draws the pieces of a sweep one after the other."""

    def __init__(self, state: _Sweep, drawing: Drawing, count: int, seed_: int, ready, keep):
        self.state, self.drawing, self.count, self.seed = state, drawing, count, seed_
        self.ready, self.keep = ready, keep
        self.pieces: dict[int, Draws] = {}  # by the index of their first case
        self.first: tuple[int, float] | None = None  # where the first failure is, and when it came

    def run(self, redraw: bool) -> None:
        """Draw all cases; then, with `redraw`, others in place of those that were declined."""
        swept = self.state.tally.swept
        for piece in self.drawing.all_pieces(self.count):
            if self.over(piece.start):
                return
            self._judge(piece)
        if not (redraw and swept.declined) or self.state.tally.found:
            return
        swept.wanted = len(swept.keys)
        deadline = time.perf_counter() + REDRAW_SECONDS * swept.wanted
        short = replace(self.drawing, long=())  # long cases take long to be declined, too
        for turn in range(1, REDRAWS):
            for piece in short.pieces(self.count, turn):
                if swept.judged >= swept.wanted or self.over(piece.start):
                    return
                if time.perf_counter() > deadline:
                    seconds = REDRAW_SECONDS * swept.wanted
                    self.say(f"no more draws in place of declined cases after {seconds:g} s")
                    return
                self._judge(piece, redrawn=True)

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

    def _judge(self, piece: Draws, redrawn: bool = False) -> None:
        state, part = self.state, piece.start
        self.pieces[part] = piece
        state.part, state.drawn, judged = part, [], self.ready(part)
        if judged is not None:
            state.take(judged, redrawn)
            return
        state.judge(piece.samples(self.seed), redrawn)
        self.keep(part, tuple(state.drawn))

    def sample(self, part: int, key: str) -> Sample:
        """The sample of a case that this sweep or another process judged."""
        for sample in self.pieces[part].samples(self.seed):
            if key_of(sample.case) == key:
                return sample
        raise RuntimeError(f"seed {self.seed} gives other cases here than in another process")


def sweep(
    drawing: Drawing,
    judge_case: Callable[[Case], Verdict],
    *,
    count: int,
    seed_: int,
    several: bool = True,
    redraw: bool = False,
    tick: Callable[[], None] = lambda: None,
    ready: Callable[[int], Piece | None] = lambda part: None,
    keep: Callable[[int, Cases], None] = lambda part, cases: None,
) -> Swept:
    """Judge `count` cases, and find up to three distinct failures.

    Without `several` the first failure ends the search. With `redraw`, other cases are drawn in
    place of declined ones. `tick` is called for each case. `ready(part)` returns the piece that
    starts with case `part` if another process judged it; `keep(part, cases)` receives the verdicts
    of a piece judged here.
    """
    state = _Sweep(judge_case, tick, several)
    search = _Search(state, drawing, count, seed_, ready, keep)
    search.run(redraw)
    for failure in state.tally.settle():
        failure.sample = search.sample(failure.part, failure.key)
    return state.tally.swept


def widest(
    drawing: Drawing, judge_case: Callable[[Case], Verdict], first: Verdict, seed: int
) -> Verdict:
    """Of `first` and a few more failures of the same check, the one with the largest output.

    For pictures: the first failing case is often the simplest one, a single number.
    """
    largest = first
    if first.error or _entries(first) >= ENOUGH:
        return first
    for case in drawing.cases(PIECE, seed):
        try:
            verdict = judge_case(case)
        except Declined:
            continue
        if not verdict.ok and _entries(verdict) > _entries(largest):
            largest = verdict
    return largest


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
    state = _Sweep(judge_case, lambda: None, several)
    piece = next(piece for piece in drawing.all_pieces(count) if piece.start == part)
    state.judge(piece.samples(seed_))
    return tuple(state.drawn)
