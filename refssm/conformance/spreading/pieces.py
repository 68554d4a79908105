"""Pieces of checks, in the order in which one process would have judged them.

Failures are made smaller here. A verdict must not depend on which process restarted its child: a
piece is judged again here if its result might depend on how often the other process had done so.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.checks.checks import COMPARING, Check
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.piece import Piece
from refssm.conformance.checks.sweep import MORE, sweep_piece
from refssm.conformance.checks.swept import Cases
from refssm.conformance.running.session import Trial
from refssm.conformance.running.settings import Session
from refssm.conformance.running.source import Keep, Learned, Ready, Source
from refssm.conformance.running.sweeping import first_seed
from refssm.conformance.spreading.journal import Journal


class Losses:
    """How often a session's child processes were restarted since `begin`."""

    def __init__(self, session: Session):
        self.workers = session.children
        self.begin()

    def begin(self) -> None:
        """Remember the current restart counts."""
        self.restarts = [w.restarts for w in self.workers]

    @property
    def alive(self) -> bool:
        """True if every child process runs."""
        return all(w.alive for w in self.workers)

    @property
    def over(self) -> bool:
        """True if one child process died and cannot be restarted."""
        return any(w.spent and not w.alive for w in self.workers)

    @property
    def intact(self) -> bool:
        """True if no child process died since `begin`."""
        return self.alive and self.restarts == [w.restarts for w in self.workers]

    def piece(self, cases: Cases, check: Check, beside: Beside | None) -> Piece | None:
        """The piece of these cases; None if other restart counts might have changed it."""
        first, second = [*("" if w.alive else w.death for w in self.workers), ""][:2]
        compared = beside.of_piece(check.id, cases) if beside else {}
        piece = Piece(cases, (first, second), compared)
        same = self.restarts == [w.restarts for w in self.workers]
        return piece if same and (self.alive or piece.died) else None

    def repeat(self, piece: Piece) -> None:
        """Kill this process's child too, so restart counts match those of the piece's judge."""
        for worker, death in zip(self.workers, piece.lost, strict=False):
            if death and worker.alive:
                worker.lose(death)


Key = tuple[str, int]  # a check's id and the index of the piece's first case


def learn(trial: Trial) -> Learned | None:
    """The first calls, for another process; None if a child process died meanwhile.

    Another task certifies the reference.
    """
    losses, probe = Losses(trial.session), trial.probe
    refused = probe.refused  # first, because it decides whether calls are slice by slice
    learned = Learned(refused, trial.candidate.sliced, probe.mixed, misfit=probe.misfit)
    return learned if losses.intact else None


def piece_of(trial: Trial, check: Check, part: int) -> Piece | None:
    """A piece of a check, for another process; None if that must judge it itself."""
    settings, beside = trial.session.settings, beside_of(check, trial.probe.older)
    losses = Losses(trial.session)
    judge_case = check.judging(trial.candidate.judged_in(check.dtype))
    several = trial.scope.shrink
    how = {"count": check.count, "seed_": first_seed(check, settings.seed), "part": part}
    cases = sweep_piece(drawn_by(trial, check), judge_case, several=several, **how)
    return losses.piece(cases, check, beside)


def drawn_by(trial: Trial, check: Check) -> Drawing:
    """What a check of a trial draws, the same in each process."""
    settings = trial.session.settings
    return check.cases(
        mixed=trial.probe.mixed, between=settings.where.sizes, preset=settings.preset
    )


def beside_of(check: Check, old: Beside | None) -> Beside | None:
    """The old implementation if the check compares with it, else None."""
    return old if check.rule in COMPARING else None


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
        self.last: dict[str, int] = {}  # of checks with a failure: the last piece that is needed
        self.over: set[str] = set()  # operators not called again: no piece of them is needed

    def lacks(self, name: str, part: int) -> bool:
        """True if the piece of a check may still be needed."""
        return part <= self.last.get(name, part)

    @contextmanager
    def of(self, check: Check, beside: Beside | None) -> Iterator[tuple[Ready, Keep]]:
        """The pieces of one check in order; after a death, restart counts match its judge's."""
        losses, beside, last = Losses(self.session), beside_of(check, beside), []

        def ready(part: int) -> Piece | None:
            losses.begin()
            piece = self._piece((check.id, part)) if losses.alive else None
            if losses.over:
                self.over.add(check.op.name)
            if piece and beside:
                beside.take(check.id, piece.compared)
            last[:] = [piece] if piece else []
            if piece and piece.died:
                losses.repeat(piece)
            return piece

        def keep(part: int, cases: Cases) -> None:
            if self.journal is not None and not last:
                self._record((check.id, part), losses.piece(cases, check, beside))

        yield ready, keep

    def _piece(self, key: Key) -> Piece | None:
        if self.journal is not None and key in self.journal.pieces:
            return self.journal.pieces[key]
        while key in self.planned and key not in self.arrived:
            came = next(self.arriving, None)
            if came is None:
                return None
            name, part, piece = came
            self.arrived[name, part] = piece
            if piece and piece.failed:
                more = MORE - 1 if self.session.settings.shrinks else 0
                self.last[name] = min(self.last.get(name, part + more), part + more)
            self._record((name, part), piece)
        return self.arrived.pop(key, None)

    def _record(self, key: Key, piece: Piece | None) -> None:
        if self.journal is not None and piece is not None:
            self.journal.write(key, piece)
