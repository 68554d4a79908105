"""What can be wrong with a file: exceptions when it is read, and files that cannot be written."""

import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

from refssm.conformance.usage_error import UsageError

# NumPy and zipfile raise these when they read files that are not arrays
UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, MemoryError, OverflowError, SyntaxError),
    *(KeyError, RuntimeError, TokenError, BadZipFile, zlib.error, struct.error),
)  # RuntimeError: an encrypted archive, or an unknown compression


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
