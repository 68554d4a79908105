"""Restarts of child processes: a verdict must not depend on which process restarted them."""

from __future__ import annotations

from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.piece import Piece
from refssm.conformance.checks.swept import Cases
from refssm.conformance.running.settings import Session


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
