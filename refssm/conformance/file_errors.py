"""What can be wrong with a file: it cannot be read, it has no end, or it cannot be written."""

import errno
import os
import stat
import struct
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from refssm.conformance.usage_error import UsageError

# NumPy and zipfile raise these when they read files that are not arrays
UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, MemoryError, OverflowError, SyntaxError),
    *(KeyError, RuntimeError, TokenError, BadZipFile, zlib.error, struct.error),
)  # RuntimeError: an encrypted archive, or an unknown compression
SETTINGS = 2**22  # bytes: the largest file of settings; a list of 3000 known failures has 2**20
DOCUMENT = 2**28  # bytes: the largest JSON document
ARRAYS = 2**30  # bytes: the largest arrays of one file; the judge needs many times that memory
MAGIC = {b"\x93NUMP": "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}


def opened(path: Path) -> BinaryIO:
    """A file opened for reading; OSError for anything that is no regular file.

    Opening a pipe would wait, and a device may have no end.
    """
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:  # a NUL in its name
        raise OSError(errno.EINVAL, str(error)) from None
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "a pipe or a device, wanted a file")
    return path.open("rb")


def contents(path: Path, most: int) -> bytes:
    """The bytes of a regular file; OSError if it has more than `most`."""
    with opened(path) as file:
        large = os.fstat(file.fileno()).st_size > most
        data = b"" if large else file.read(most + 1)  # a file in /proc says that it is empty
    if large or len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB")
    return data


def arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or of an .npy file as ""; one of UNREADABLE else."""
    with opened(path) as file:  # NumPy would leave an invalid file open
        start = file.read(5)
        kind = next((MAGIC[m] for m in MAGIC if start.startswith(m)), "")
        if not kind:
            raise ValueError("its first bytes are those of no array" if start else "it is empty")
        size = os.fstat(file.fileno()).st_size
        if kind == "npz":
            with ZipFile(file) as archive:
                size = max(size, sum(member.file_size for member in archive.infolist()))
        if size > ARRAYS:
            raise ValueError(f"its arrays are larger than {ARRAYS >> 20} MiB")
        file.seek(0)
        # NumPy multiplies sizes that overflow, and warns of headers by Python 2, which it reads
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            loaded = np.load(file, allow_pickle=False)
            return dict(loaded) if isinstance(loaded, NpzFile) else {"": np.asarray(loaded)}


def make_folder(folder: Path) -> None:
    """Make a folder that git ignores, if it is not there; OSError if it cannot be made."""
    if not folder.is_dir():
        folder.mkdir()
        with suppress(OSError):  # a full disk: what cannot be written next is said
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place at the end; removed if anything is raised."""
    partial = path.with_name(f"{path.stem}.partial{path.suffix}")
    try:
        yield partial
        os.replace(partial, path)
    finally:  # also after Ctrl-C
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _beside(path: Path, option: str) -> Iterator[Path]:
    """A temporary file in the same folder, removed at the end; UsageError if there can be none."""
    partial = None
    try:
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=".refssm-", dir=path.parent)
        os.close(handle)
        partial = Path(name)
        yield partial
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def check_writable(path: Path, option: str) -> None:
    """UsageError, before a long run, if the file of an option cannot be written."""
    with _beside(path, option):  # raises UsageError if the folder accepts no new file
        there = path.exists()
    if there and not path.is_file():
        raise UsageError(f"{option} {path}: wanted a file to write, got something else")
    if there and not os.access(path, os.W_OK):
        raise UsageError(f"{option} {path}: Permission denied")


def write_whole(path: Path, option: str, text: str) -> None:
    """Write a file so that it is complete or absent."""
    with _beside(path, option) as partial:
        partial.write_text(text, encoding="utf-8")
        os.chmod(partial, 0o644)
        os.replace(partial, path)
