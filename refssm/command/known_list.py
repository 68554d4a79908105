"""The list of known failures of a run: read before it, written after it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from refssm.command.asked import Asked


def of(asked: Asked):
    """The list of known failures; empty if there is none."""
    from refssm.conformance.project.known_failures import Known, read
    from refssm.conformance.usage_error import UsageError

    path = asked.option("known")
    if path is not None and asked.own_data:
        raise UsageError(
            "--known is about generated cases, --inputs is your own: leave --known out"
        )
    return Known() if path is None else read(Path(path))


def check_new(path: Path | None) -> None:
    """UsageError, before the run, if the new list cannot be written."""
    from refssm.conformance.usage_error import UsageError

    if path is not None and path.exists():
        raise UsageError(f"{path} already exists: --write-known wants the name of a new file")
    if path is not None and not path.parent.is_dir():
        raise UsageError(f"{path}: No such file or directory")


def write(path: Path, results) -> None:
    """Write the failures to a new list; the file is complete or absent."""
    from refssm.conformance.project.known_failures import skeleton
    from refssm.conformance.usage_error import UsageError

    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(skeleton(results), encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    finally:  # remove an incomplete file
        with suppress(OSError):
            partial.unlink()
