"""`refssm verify --html`: the page with its pictures; the file is complete or absent."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

DRAWN = 40  # failures that get pictures: each needs half a second
SMALLEST, FOUND = "The case above.", "A random case, before it was made smaller."


def asked(path: Path | None) -> bool:
    """True if a page is requested; UsageError, before the run, if it cannot be written."""
    from refssm.conformance.usage_error import UsageError

    if path is None:
        return False
    absent = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if absent:
        raise UsageError(f"--html needs {' and '.join(absent)}: pip install {' '.join(absent)}")
    with _beside(path):  # raises UsageError if the folder accepts no new file
        there = path.exists()
    if there and not path.is_file():
        raise UsageError(f"--html {path}: wanted a file to write, got something else")
    if there and not os.access(path, os.W_OK):
        raise UsageError(f"--html {path}: Permission denied")
    return True


def written(
    path: Path | None, results: list, headers: Iterable[str], started: float
) -> tuple[str, ...]:
    """Write the page, if requested; returns one line that says so."""
    if path is None:
        return ()
    from refssm.conformance.report.page import page

    text = page(results, headers, time.perf_counter() - started, _shown(results))
    with _beside(path) as partial:
        partial.write_text(text, encoding="utf-8")
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    return (f"page written: {path}",)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder, removed at the end."""
    from refssm.conformance.usage_error import UsageError

    partial = None
    try:
        handle, name = tempfile.mkstemp(suffix=".html", prefix=".refssm-", dir=path.parent)
        os.close(handle)
        partial = Path(name)
        yield partial
    except OSError as error:
        raise UsageError(f"--html {path}: {error.strerror}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _shown(results: list) -> dict:
    """The pictures of the failures, by position, or the reason why there are none."""
    from refssm.conformance.report.page import Shown

    failed = [i for i, result in enumerate(results) if result.failed]
    shown = {i: _pictures(results[i].evidence, f"p{i + 1}") for i in failed[:DRAWN]}
    why = f"only the first {DRAWN} failures have one; select failures by --check and --dtype"
    return shown | {i: Shown(without=why) for i in failed[DRAWN:]}


def _pictures(evidence, name: str):
    """The pictures of one failure."""
    from refssm.conformance.report.page import Drawn, Shown
    from refssm.gallery import damage as gallery

    if evidence is None:
        return Shown(without="the function was not called")
    drawn = []
    for i, (title, damage) in enumerate(((SMALLEST, evidence.damage), (FOUND, evidence.found))):
        view = damage and gallery.seen(damage.ratio, damage.axes, damage.allowed)
        if view is None:
            continue
        told = f"{damage.output}: {damage.unit}. {gallery.told(view)}"
        drawn.append(Drawn(title, told, gallery.picture(view, f"{name}{'ab'[i]}")))
    if drawn:
        return Shown(tuple(drawn))
    return Shown(without=evidence.without or "the output is a single number")
