"""What the C++ compiler makes is kept on disk: a machine compiles each instance once.

    <cache>/host/<hash of sources, compiler and flags>/

As for the CPU mirrors: made under a lock in a folder with a temporary name, which is renamed when
it is whole; `REFSSM_CACHE_DIR` says where `<cache>` is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

UNUSED = 30 * 24 * 3600  # seconds after which a folder that nobody used is removed


def kept(parts: Iterable[str], make: Callable[[Path], None]) -> Path:
    """The folder that these texts decide; `make` fills it if it does not exist."""
    folder = _root() / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    if not folder.is_dir():
        with FileLock(f"{folder}.lock"):  # the system opens the lock of a killed process
            if not folder.is_dir():
                _fill(folder, make)
    os.utime(folder)
    return folder


def _fill(folder: Path, make: Callable[[Path], None]) -> None:
    for left in folder.parent.glob(f"{folder.name}.*.part"):
        shutil.rmtree(left)  # by a killed process: whoever fills one has the lock
    part = Path(tempfile.mkdtemp(".part", f"{folder.name}.", folder.parent))
    try:
        make(part)
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _root() -> Path:
    given = os.environ.get("REFSSM_CACHE_DIR")
    return _tidied(Path(given) if given else user_cache_path("refssm", appauthor=False))


@cache  # once in a process
def _tidied(place: Path) -> Path:
    root = place.absolute() / "host"
    root.mkdir(parents=True, exist_ok=True)
    for old in root.iterdir():
        with suppress(FileNotFoundError):  # another process renamed or removed it meanwhile
            if time.time() - old.stat().st_mtime > UNUSED:
                shutil.rmtree(old, ignore_errors=True)
    return root
