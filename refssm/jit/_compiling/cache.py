"""Compiled mirrors are kept on disk: a machine compiles each function once.

    <cache>/mirrors/<hash of the sources and versions>/<module>.<function>/

A function is compiled under a lock, into a folder with a temporary name, which is renamed when
it is whole. So a process sees a whole folder or none, and a killed one leaves nothing that another
would read. Numba's own cache folder does not promise this: two processes that compile different
types of a function may both call their file `….1.nbc`, and the index then names the wrong one.

The environment variable `REFSSM_CACHE_DIR` says where `<cache>` is.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba
import numpy as np
from filelock import FileLock
from numba.core.registry import cpu_target
from platformdirs import user_cache_path

PACKAGE = Path(__file__).parents[2]
# nothing compiled reads these: they may change and the compiled functions stay
APART = (
    "bench", "command", "conformance", "enclosure", "experiments", "gallery", "initial.py",
    "layers", "oracle", "presets", "training",
)  # fmt: skip
UNUSED = 30 * 24 * 3600  # seconds after which the functions of other sources are removed


def kept(compile: Callable[[], tuple[Any, bytes]], load: Callable[[bytes], Any], name: str) -> Any:
    """`load` of what is kept under this name; else what `compile` returns, and its bytes are kept
    where something can be written."""
    try:
        with whole(of_these_sources() / name) as place:
            file = place / "compiled"
            if file.exists():
                return load(file.read_bytes())
            made, state = compile()
            file.write_bytes(state)
            return made
    except OSError:  # no room, no right to write, or removed at this moment
        return compile()[0]
    except (EOFError, UnpicklingError):  # a damaged disk or a copy that was cut off
        shutil.rmtree(of_these_sources() / name, ignore_errors=True)
        return compile()[0]


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """This folder if it exists; else one to fill, which gets its name if nothing is raised."""
    if not folder.is_dir():
        with FileLock(f"{folder}.lock"):  # the system opens the lock of a killed process
            if not folder.is_dir():
                for left in folder.parent.glob(f"{folder.name}.*.part"):
                    shutil.rmtree(left)  # by a killed process: whoever fills one has the lock
                part = tempfile.mkdtemp(".part", f"{folder.name}.", folder.parent)
                try:
                    yield Path(part)
                    os.rename(part, folder)
                finally:
                    shutil.rmtree(part, ignore_errors=True)
                return
    yield folder


@cache
def of_these_sources() -> Path:
    """The folder for these sources, versions and this processor; old ones of others are removed."""
    given, usual = os.environ.get("REFSSM_CACHE_DIR"), user_cache_path("refssm", appauthor=False)
    if not given and not usual.is_absolute():  # "~/.cache": this user has no home
        raise FileNotFoundError(usual)
    mirrors = Path(given or usual).absolute() / "mirrors"
    folder = mirrors / _state()
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for other in mirrors.iterdir():
            with suppress(FileNotFoundError):  # another process removed it meanwhile
                if time.time() - other.stat().st_mtime > UNUSED:
                    shutil.rmtree(other, ignore_errors=True)
    os.utime(folder)
    return folder


def _of_code(name: str) -> bool:
    """True for Numba's settings, except those of threads and folders, which joblib sets."""
    return name.startswith("NUMBA_") and "THREAD" not in name and "CACHE" not in name


def _state() -> str:
    """A hash of what decides the machine code: sources, versions, processor, Numba's settings."""
    decides = [
        sys.version,
        np.__version__,
        numba.__version__,
        *cpu_target.target_context.codegen().magic_tuple(),  # as Numba's own index has it
        *(f"{k}={v}" for k, v in sorted(os.environ.items()) if _of_code(k)),
    ]
    state = hashlib.sha256("\n".join(decides).encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in APART:
            # not where a file is, nor how old: clones of the same sources share what they compile
            place = path.relative_to(PACKAGE).as_posix()
            state.update(f"{place} {path.stat().st_size}\n".encode() + path.read_bytes())
    return state.hexdigest()[:24]
