"""The list of known failures of a run: read before it, written after it."""

from __future__ import annotations

import os
from pathlib import Path

from refssm.command.asked import Asked


def of(asked: Asked):
    """The list of known failures; empty if there is none."""
    from refssm.conformance.project.known_failures import KnownFailures, read
    from refssm.conformance.usage_error import UsageError

    path = asked.option("known")
    if path is not None and asked.own_data:
        raise UsageError(
            "--known is about generated cases, --inputs is your own: leave --known out"
        )
    return KnownFailures() if path is None else read(Path(path))


def check_new(path: Path | None) -> None:
    """UsageError, before the run, if the new list cannot be written."""
    from refssm.conformance.file_errors import check_writable
    from refssm.conformance.usage_error import UsageError

    if path is not None and os.path.lexists(path):
        raise UsageError(f"{path} already exists: --write-known wants the name of a new file")
    if path is not None:
        check_writable(path, "--write-known")


def write(path: Path, results) -> None:
    """Write the failures to a new list; the file is complete or absent."""
    from refssm.conformance.file_errors import write_whole
    from refssm.conformance.project.known_failures import skeleton

    write_whole(path, "--write-known", skeleton(results))
