"""Pieces of checks, in the order in which one process would have judged them.

The first piece that fails decides, and is shrunk here. A piece is judged again here if its result
might depend on how often the other process had restarted its child.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.checks.checks import AGAINST, Check
from refssm.conformance.checks.piece import Piece
from refssm.conformance.checks.sweep import Cases, sweep_piece
from refssm.conformance.running.settings import Session
from refssm.conformance.running.source import Keep, Learned, Ready, Source
from refssm.conformance.running.sweeping import first_seed
from refssm.conformance.running.trial import Trial
from refssm.conformance.spreading.journal import Journal
from refssm.conformance.spreading.losses import Losses

Key = tuple[str, int]  # a check's id and the index of the piece's first case


def learn(trial: Trial) -> Learned | None:
    """Probe and certify, for another process; None if a child process died meanwhile."""
    losses, probe = Losses(trial.session), trial.probe
    refused = probe.refused  # first, because it decides whether calls are slice by slice
    learned = Learned(refused, trial.candidate.sliced, probe.mixed, probe.doubt)
    return learned if losses.intact else None


def piece_of(trial: Trial, check: Check, part: int) -> Piece | None:
    """A piece of a check, for another process; None if that must judge it itself."""
    settings, beside = trial.session.settings, beside_of(check, trial.probe.older)
    if beside:
        beside.open(check.dtype)
    losses = Losses(trial.session)
    drawn = check.cases(mixed=trial.probe.mixed, between=settings.where.sizes)
    judge_case = check.judging(trial.candidate.judged_in(check.dtype))
    how = {"count": check.count, "seed_": first_seed(check, settings.seed), "part": part}
    return losses.piece(sweep_piece(drawn, judge_case, **how), check, beside)


def beside_of(check: Check, old: Beside | None) -> Beside | None:
    """The old implementation if the check compares with it, else None."""
    return old if check.rule is AGAINST else None


class Pieces(Source):
    """Provides pieces from other processes and from the record; adds new ones to the record."""

    def __init__(
        self,
        session: Session,
        journal: Journal | None = None,
        planned: Set[Key] = frozenset(),
        arriving: Iterator[tuple[str, int, Piece | None]] | None = None,
    ):
        self.session, self.journal, self.planned = session, journal, planned
        self.arriving = arriving or iter(())
        self.arrived: dict[Key, Piece | None] = {}
        self.failed: set[str] = set()  # checks with a failure: no further piece is needed
        self.over = False  # the implementation is not called again: no piece is needed

    @contextmanager
    def of(self, check: Check, beside: Beside | None) -> Iterator[tuple[Ready, Keep]]:
        """The pieces of one check in order; after a failure, restart counts match its judge's."""
        losses, beside, last = Losses(self.session), beside_of(check, beside), []

        def ready(part: int) -> Piece | None:
            losses.begin()
            piece = self._piece((check.id, part)) if losses.alive else None
            self.over |= losses.over
            if piece and beside:
                beside.take(check.dtype, piece.compared, piece.closed)
            last[:] = [piece] if piece else []
            return piece

        def keep(part: int, cases: Cases) -> None:
            if self.journal is not None and not last:
                self._record((check.id, part), losses.piece(cases, check, beside))

        yield ready, keep
        if last and last[0].failed:
            losses.repeat(last[0])

    def _piece(self, key: Key) -> Piece | None:
        if self.journal is not None and key in self.journal.pieces:
            return self.journal.pieces[key]
        while key in self.planned and key not in self.arrived:
            came = next(self.arriving, None)
            if came is None:
                return None
            name, part, piece = came
            self.arrived[name, part] = piece
            self.failed |= {name} if piece and piece.failed else set()
            self._record((name, part), piece)
        return self.arrived.pop(key, None)

    def _record(self, key: Key, piece: Piece | None) -> None:
        if self.journal is not None and piece is not None:
            self.journal.write(key, piece)
