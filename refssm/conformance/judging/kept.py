"""Expected values and error bounds on disk: what one run computed the next run reads.

    <cache>/expected/<hash>

The hash is one of all that decides the values: the operator, its arguments, the standard, refssm's
sources, the versions of libraries, and the machine's type. A file is written under another name and
then renamed, so that a process sees a whole file or none. It begins with a hash of its own bytes: a
damaged file is removed and made anew. A process adds up all files at its first write, and again
after each `LOOK` bytes that it has written; it then removes those that were not read for the
longest time. So one process keeps to `ROOM` bytes; each further one at the same time may add `LOOK`
bytes, until the next adds up. Where nothing can be written, nothing is kept.

The environment variable `REFSSM_CACHE_DIR` says where `<cache>` is.
"""

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

PACKAGE = Path(__file__).parents[2]
# files that change no expected value: programs around the judge, code under test, compiled mirrors
APART = ("bench", "command", "experiments", "gallery", "jit", "subjects", "training")
APART_IN_JUDGE = ("exchange", "planted", "report", "spreading")
LIBRARIES = ("numpy", "scipy", "mpmath", "gmpy2", "python-flint")
ROOM = 2**29  # bytes of all files together, as far as one process knows
LOOK = ROOM // 8  # bytes that one process writes before it adds up the files again
DIGEST = 16
READING = 0.001, 5e-9  # seconds to read a file: of each, and of each byte
WORTH = 4  # kept is what takes this many times longer to make than to read

Arrays = Mapping[str, np.ndarray]
_keeping = 0
_written = LOOK  # bytes since the files were last added up; so at first write


@contextmanager
def keeping() -> Iterator[None]:
    """Context in which `KeptFile` uses the disk: for runs of the judge on unchanged refssm."""
    global _keeping
    _keeping += 1
    try:
        yield
    finally:
        _keeping -= 1


class KeptFile:
    """The file of one computation, if this run keeps any; else nothing is read or written."""

    def __init__(self, made_of: Callable[[], bytes]):
        self._place = place_of(made_of()) if _keeping else None
        self._started = 0.0

    def arrays(self) -> Arrays | None:
        """What an earlier computation of the same left; None if it must be computed now."""
        found = read(self._place) if self._place else None
        self._started = time.perf_counter()
        return found

    def keep(self, pack: Callable[[], Arrays | None]) -> None:
        """Write what was computed since `arrays`, if that took longer than to read it.

        `pack` returns None if the result cannot be written as arrays.
        """
        seconds = time.perf_counter() - self._started
        arrays = pack() if self._place else None
        if arrays is not None and self._place is not None:
            size = sum(a.nbytes for a in arrays.values())
            if seconds > WORTH * (READING[0] + READING[1] * size):
                write(self._place, arrays)


def place_of(made_of: bytes) -> Path | None:
    """The file for what is made of these bytes by this refssm; None if there is no folder."""
    folder = folder_of()
    name = blake2b(_state().encode() + made_of, digest_size=20).hexdigest()
    return folder / name if folder else None


def folder_of() -> Path | None:
    """The folder of the files, made if it can be."""
    given, usual = os.environ.get("REFSSM_CACHE_DIR"), user_cache_path("refssm", appauthor=False)
    if not given and not usual.is_absolute():  # "~/.cache": this user has no home
        return None
    try:
        folder = Path(given or usual).absolute() / "expected"  # raises in a removed directory
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def read(place: Path) -> Arrays | None:
    """The arrays of a file; None if there is none. A damaged file is removed."""
    try:
        content = place.read_bytes()
    except OSError:
        return None
    if blake2b(content[DIGEST:], digest_size=DIGEST).digest() != content[:DIGEST]:
        with suppress(OSError):
            place.unlink()
        return None
    with suppress(OSError):
        os.utime(place)  # now the last one to be removed
    head, _, data = content[DIGEST:].partition(b"\n")
    arrays, start = {}, 0
    for name, dtype, shape in json.loads(head):
        count, kind = prod(shape), np.dtype(dtype)
        arrays[name] = np.frombuffer(data, kind, count, start).reshape(shape).copy()
        start += count * kind.itemsize
    return arrays


def write(place: Path, arrays: Arrays) -> None:
    """Write the arrays to a file, which replaces one of the same name; nothing if that fails."""
    global _written
    head = json.dumps([(name, a.dtype.str, a.shape) for name, a in arrays.items()])
    content = b"\n".join([head.encode(), b"".join(a.tobytes() for a in arrays.values())])
    content = blake2b(content, digest_size=DIGEST).digest() + content
    if _written >= LOOK:
        _make_room(place.parent)
        _written = 0
    part = ""
    try:
        number, part = tempfile.mkstemp(".part", "", place.parent)
        with open(number, "wb") as file:
            file.write(content)
        os.replace(part, place)
        _written += len(content)
    except OSError:  # no room, no right to write, or another process reads it (Windows)
        with suppress(OSError):
            os.unlink(part)


def _make_room(folder: Path) -> None:
    """Remove the oldest files until the others, and `LOOK` more bytes, have room."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):  # another process removed it meanwhile
                seen = entry.stat()
                found.append((seen.st_mtime, seen.st_size, entry.path))
    left = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if left <= ROOM - LOOK:
            return
        with suppress(OSError):  # no right to remove it, or open elsewhere (Windows): it stays
            Path(path).unlink(missing_ok=True)
            left -= size


@cache
def _state() -> str:
    """A hash of what decides the values beside the arguments: sources, versions, machine."""
    machine = sys.platform, platform.machine(), *platform.libc_ver(), str(np.finfo(np.longdouble))
    state = blake2b("\n".join([sys.version, *machine, *_versions()]).encode(), digest_size=DIGEST)
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if decides(place):
            state.update(place.as_posix().encode() + b"\n" + path.read_bytes())
    return state.hexdigest()


def decides(place: Path) -> bool:
    """True if this file of refssm may decide expected values."""
    room = place.parts[1] if place.parts[0] == "conformance" else ""
    return place.parts[0] not in APART and room not in APART_IN_JUDGE


def _versions() -> Iterator[str]:
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"
