"""`--resume`: a record of finished pieces, from which a killed run can continue.

One line per piece, in `.refssm/run-<hash of all that decides it>.jsonl`. A run that ends deletes
it. Where the disk is full, the run goes on without its record.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from refssm.conformance.calling.fingerprint import versions_here
from refssm.conformance.checks.piece import Piece, from_record
from refssm.conformance.running.settings import Session
from refssm.conformance.usage_error import UsageError


class Journal:
    """The record of one run; `lost` says why it has no later pieces."""

    def __init__(self, path: Path):
        self.path, self.lost = path, ""
        try:
            if not path.parent.exists():
                path.parent.mkdir()
                (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
            self.pieces = _read(path)
            self._lines = path.open("a", encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"--resume cannot use its record {path}: {reason}") from None

    def write(self, key: tuple[str, int], piece: Piece) -> None:
        """Add a piece, or nothing after a piece that could not be added."""
        if self.lost:  # a piece after half a line could not be read
            return
        told = {"check": key[0], "part": key[1], **piece.record()}
        try:
            self._lines.write(json.dumps(told) + "\n")
            self._lines.flush()
        except OSError as error:
            reason = error.strerror or error
            self.lost = f"{self.path} has only the first part of this run: {reason}"

    def close(self) -> None:
        """Close the file and keep it."""
        with suppress(OSError):  # `lost` already tells of a full disk
            self._lines.close()


def _read(path: Path) -> dict[tuple[str, int], Piece]:
    """The pieces of a record; an incomplete last line is cut off, invalid lines are skipped."""
    written = path.read_bytes() if path.exists() else b""
    whole = written.rfind(b"\n") + 1
    if whole < len(written):
        os.truncate(path, whole)
    pieces = {}
    for line in written[:whole].splitlines():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            told = json.loads(line)
            pieces[str(told["check"]), int(told["part"])] = from_record(told)
    return pieces


class KeptRecords:
    """The records of a command, one per target; they stay until the whole command is done."""

    def __init__(self, folder: Path):
        self.folder, self.journals = folder, []

    def open(self, session: Session) -> Journal:
        """The record of a session: of these sources, this target and these options."""
        journal = Journal(self.folder / f"run-{_digest(session)}.jsonl")
        self.journals.append(journal)
        return journal

    def discard(self) -> None:
        """Delete the records: the command is done."""
        for journal in self.journals:
            journal.path.unlink(missing_ok=True)


def _digest(session: Session) -> str:
    """A hash of all that decides the result of a piece."""
    told: list = [versions_here(), session.settings.of_verdicts]
    for worker in session.children:
        told += [worker.target, worker.name, worker.timeout, worker.told, worker.sources()]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]
