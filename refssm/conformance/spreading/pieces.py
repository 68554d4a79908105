"""Pieces of checks put together in the order in which one process would have judged them.

The first piece that fails decides, and is shrunk here. Where the process of the implementation was
lost in a way that the other process's budget of restarts decided, the piece is judged again here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from refssm.conformance.calling.worker import Worker
from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.piece import Piece
from refssm.conformance.checks.sweep import Cases, sweep_piece

if TYPE_CHECKING:
    from refssm.conformance.running.session import Session
    from refssm.conformance.running.trial import Trial
    from refssm.conformance.spreading.journal import Journal

Key = tuple[str, int]  # a check's id, and the number of the piece's first case
Ready = Callable[[int], Piece | None]
Keep = Callable[[int, Cases], None]


class Learned(NamedTuple):
    """What is found out of an implementation before its checks."""

    refused: dict[str, str]
    sliced: bool
    mixed: bool
    doubt: str  # why our reference cannot be trusted


def learn(trial: Trial) -> Learned | None:
    """Probe and certify, for another process; None where it must do so itself: a child was lost."""
    losses = Losses(trial.session)
    refused = trial.refused  # first: the probe learns whether it is called slice by slice
    learned = Learned(refused, trial.candidate.sliced, trial.mixed, trial.doubt)
    return learned if losses.intact else None


def piece_of(trial: Trial, check: Check, part: int) -> Piece | None:
    """Some cases of a check, for another process; None where it must judge them itself."""
    beside = _beside(trial, check)
    if beside:
        beside.open(check.dtype)
    losses = Losses(trial.session)
    drawn = check.cases(mixed=trial.mixed, between=trial.session.where.sizes)
    judge_case = check.judging(trial.candidate.judged_in(check.dtype))
    settings = {"count": check.count, "seed_": trial.seed(check), "part": part}
    return losses.piece(sweep_piece(drawn, judge_case, **settings), check, beside)


def children(session: Session) -> list[Worker]:
    """The processes of the implementation, and of the old one where there is one."""
    return [w for w in (session.worker, session.against) if isinstance(w, Worker)]


class Losses:
    """What a stretch of calls cost in processes, of the implementation and of the old one."""

    def __init__(self, session: Session):
        self.workers = children(session)
        self.begin()

    def begin(self) -> None:
        """Count from here."""
        self.restarts = [w.restarts for w in self.workers]

    @property
    def alive(self) -> bool:
        """Whether no process waits for a restart."""
        return all(w.alive for w in self.workers)

    @property
    def over(self) -> bool:
        """Whether one is gone for good."""
        return any(w.restarts and not w.alive for w in self.workers)

    @property
    def intact(self) -> bool:
        """Whether nothing was lost."""
        return self.alive and self.restarts == [w.restarts for w in self.workers]

    def piece(self, cases: Cases, check: Check, beside: Beside | None) -> Piece | None:
        """The piece, unless another budget of restarts might have made it another one."""
        first, second = [*("" if w.alive else w.death for w in self.workers), ""][:2]
        compared, closed = beside.of_piece(check.dtype, cases) if beside else ({}, False)
        piece = Piece(cases, (first, second), compared, closed)
        same = self.restarts == [w.restarts for w in self.workers]
        return piece if same and (self.alive or piece.failed) else None

    def repeat(self, piece: Piece) -> None:
        """Lose here what was lost elsewhere."""
        for worker, death in zip(self.workers, piece.lost, strict=False):
            if death and worker.alive:
                worker.lose(death)


class Source:
    """Where pieces come from that are not judged here: nowhere."""

    def of(self, trial: Trial, check: Check) -> AbstractContextManager[tuple[Ready, Keep]]:
        """What has its pieces, and what keeps those that are judged here."""
        del trial, check
        return nullcontext((lambda part: None, lambda part, cases: None))


def here_alone(session: Session) -> AbstractContextManager[Source]:
    """A session that judges everything itself."""
    del session
    return nullcontext(Source())


class Pieces(Source):
    """Pieces that other processes judge, and those that are on record; what comes is recorded."""

    def __init__(
        self,
        journal: Journal | None = None,
        planned: Set[Key] = frozenset(),
        arriving: Iterator[tuple[str, int, Piece | None]] | None = None,
    ):
        self.journal, self.planned, self.arriving = journal, planned, arriving or iter(())
        self.arrived: dict[Key, Piece | None] = {}
        self.failed: set[str] = set()  # checks of which no further piece is needed
        self.over = False  # none is needed at all: the implementation is not called again

    @contextmanager
    def of(self, trial: Trial, check: Check) -> Iterator[tuple[Ready, Keep]]:
        """The pieces of one check in order; then what its failure cost is lost here, too."""
        losses, beside, last = Losses(trial.session), _beside(trial, check), []

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


def _beside(trial: Trial, check: Check) -> Beside | None:
    return trial.beside if check.name == "against" else None
