"""The files of `refssm verify`: the page of `--html`, and the list of known failures.

The page with its pictures is complete or absent. The list is read before the run, written after it.
"""

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from refssm.command.options import Asked

DRAWN = 40  # failures that get pictures: each needs half a second
SMALLEST, FOUND = "The case above.", "A random case, before it was made smaller."


def pictures_asked(path: Path | None) -> bool:
    """True if a page is requested; UsageError, before the run, if it cannot be written."""
    from refssm.conformance.file_errors import check_writable
    from refssm.conformance.usage_error import UsageError

    if path is None:
        return False
    absent = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if absent:
        raise UsageError(f"--html needs {' and '.join(absent)}: pip install {' '.join(absent)}")
    check_writable(path, "--html")
    return True


def write_page(
    path: Path | None, verdict, results: list, headers: Iterable[str], seconds: float
) -> tuple[str, ...]:
    """Write the page, if requested; returns one line that says so."""
    if path is None:
        return ()
    from refssm.conformance.file_errors import write_whole
    from refssm.conformance.report.page import page

    text = page(verdict, results, headers, seconds, _shown(results))
    write_whole(path, "--html", text)
    return (f"page written: {path}",)


def _shown(results: list) -> dict:
    """The pictures of the failures, by position, or the reason why there are none."""
    from refssm.conformance.report.page import Shown

    failed = [i for i, result in enumerate(results) if result.failed]
    shown = {i: _pictures(results[i].evidence, f"p{i + 1}") for i in failed[:DRAWN]}
    why = f"only the first {DRAWN} failures have one; select failures by --check and --dtype"
    return shown | {i: Shown(without=why) for i in failed[DRAWN:]}


def _pictures(evidence, name: str):
    """The pictures of one failure."""
    from refssm.conformance.report.page import DrawnPicture, Shown
    from refssm.gallery import damage as gallery

    if evidence is None:
        return Shown(without="the function was not called")
    drawn = []
    for i, (title, damage) in enumerate(((SMALLEST, evidence.damage), (FOUND, evidence.found))):
        view = damage and gallery.seen(damage.ratio, damage.axes, damage.allowed)
        if view is None:
            continue
        told = f"{damage.output}: {damage.unit}. {gallery.told(view)}"
        drawn.append(DrawnPicture(title, told, gallery.picture(view, f"{name}{'ab'[i]}")))
    if drawn:
        return Shown(tuple(drawn))
    return Shown(without=evidence.without or "the output is a single number")


def known_failures(asked: Asked):
    """The list of known failures; empty if there is none."""
    from refssm.conformance.project.known_failures import KnownFailures, read
    from refssm.conformance.usage_error import UsageError

    path = asked.option("known")
    if path is not None and asked.own_data:
        raise UsageError(
            "--known is about generated cases, --inputs is your own: leave --known out"
        )
    return KnownFailures() if path is None else read(Path(path))


def check_new_list(path: Path | None) -> None:
    """UsageError, before the run, if the new list cannot be written."""
    from refssm.conformance.file_errors import check_writable
    from refssm.conformance.usage_error import UsageError

    if path is not None and os.path.lexists(path):
        raise UsageError(f"{path} already exists: --write-known wants the name of a new file")
    if path is not None:
        check_writable(path, "--write-known")


def write_known(path: Path, results) -> None:
    """Write the failures to a new list; the file is complete or absent."""
    from refssm.conformance.file_errors import write_whole
    from refssm.conformance.project.known_failures import skeleton

    write_whole(path, "--write-known", skeleton(results))
