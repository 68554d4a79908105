"""What a verdict depends on beside the arrays: our sources, the author's, versions of libraries."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import sysconfig
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# what only tells, shows, or is judged itself
LEFT_OUT = (
    "command",
    "gallery",
    "experiments",
    "conformance/report",
    "conformance/planted",
    "conformance/subjects",
)
LIBRARIES = ("numpy", "scipy", "mpmath", "hypothesis")


class Sources(NamedTuple):
    """What a process has imported, in a few bytes."""

    own: str  # files of the author, by their bytes
    installed: str  # files of libraries, by size and time


def digest(root: Path = ROOT) -> str:
    """Our sources that decide verdicts."""
    told = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if _counts(path, root):
            told.update(path.read_bytes())
    return told.hexdigest()[:12]


def _counts(path: Path, root: Path) -> bool:
    within = path.relative_to(root)
    return not any(within.is_relative_to(folder) for folder in LEFT_OUT)


@cache
def versions_here() -> dict[str, str]:
    """What two machines must have in common to come to the same verdict, digit by digit."""
    versions = {"Python": platform.python_version()} | {n: version(n) for n in LIBRARIES}
    return versions | {"refssm": digest()}


def imported() -> Sources:
    """What this process has imported beside the standard library and what `digest` covers."""
    own, installed = hashlib.sha256(), hashlib.sha256()
    standard, *libraries = _folders()
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(file, str) or not os.path.isfile(file):
            continue
        path = Path(file).resolve()
        if path.is_relative_to(ROOT) and _counts(path, ROOT):
            continue
        if any(path.is_relative_to(folder) for folder in libraries):
            seen = path.stat()
            installed.update(f"{name} {seen.st_size} {seen.st_mtime_ns}\n".encode())
        elif not path.is_relative_to(standard):
            own.update(path.read_bytes())
    return Sources(own.hexdigest()[:16], installed.hexdigest()[:16])


def _folders() -> list[Path]:
    """The standard library, then where libraries are installed."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return [Path(path).resolve() for path in paths]
