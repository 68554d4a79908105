"""Fingerprints of what a verdict depends on besides the arrays: sources and library versions."""

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
# files that cannot change a verdict: reports, pictures, code under test
LEFT_OUT = (
    "bench",
    "command",
    "gallery",
    "experiments",
    "conformance/report",
    "conformance/planted",
    "subjects",
)
LIBRARIES = ("numpy", "scipy", "mpmath")


class Sources(NamedTuple):
    """Two hashes of what a process has imported."""

    own: str  # the author's files, by content
    installed: str  # files of libraries, by size and modification time


def digest(root: Path = ROOT) -> str:
    """A hash of those refssm sources that can change a verdict."""
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
    """Versions that must be equal on two machines for identical verdicts, digit by digit."""
    versions = {"Python": platform.python_version()} | {n: version(n) for n in LIBRARIES}
    return versions | {"refssm": digest()}


def imported() -> Sources:
    """Hashes of this process's imports, without the standard library and the files of `digest`."""
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
    """The folder of the standard library, then those of installed libraries."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return [Path(path).resolve() for path in paths]
