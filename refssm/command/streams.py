"""Standard output and error, also closed, full, or a pipe that nobody reads.

What cannot be printed is lost; the command goes on, and its exit code is that of its verdict.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys

NAMES = ("stdin", "stdout", "stderr")


class Lossy(io.RawIOBase):
    """A stream that drops what cannot be written; `lost` is the first error."""

    def __init__(self, raw):
        super().__init__()
        self.raw, self.lost = raw, None

    def write(self, data) -> int | None:
        """Write bytes; None if a stream that does not wait accepts none, as in `io`."""
        if self.lost is None:
            try:
                return self.raw.write(data)
            except BlockingIOError:
                raise
            except OSError as error:
                self.lost = error
        return len(data)

    def writable(self) -> bool:
        """It can be written."""
        return True

    def fileno(self) -> int:
        """The number of the file."""
        return self.raw.fileno()

    def isatty(self) -> bool:
        """True for a terminal."""
        return self.raw.isatty()


def prepare() -> None:
    """Open what is closed, and let the streams drop what cannot be written."""
    for number, name in enumerate(NAMES):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file would get its number, and our text
            os.open(os.devnull, os.O_RDWR)
            mode = "r" if number == 0 else "w"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, f"__{name}__", stream)  # kept: `Lossy` writes to its file
            setattr(sys, name, stream)
    for name in NAMES[1:]:
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = getattr(stream.buffer, "raw", stream.buffer)
            lossy = io.TextIOWrapper(
                io.BufferedWriter(Lossy(raw)),
                encoding=stream.encoding,
                errors=stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, lossy)


def encode() -> None:
    """Text in UTF-8 where the locale has only ASCII (LC_ALL=POSIX), as Click decides."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_only = codecs.lookup(stream.encoding).name == "ascii"
            encoding = "utf-8" if ascii_only else stream.encoding
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def lost() -> str:
    """Why output was lost, in a sentence; "" if nothing was, or if nobody wanted it."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    error = raw.lost if isinstance(raw, Lossy) else None
    if error is None or error.errno == errno.EPIPE:
        return ""
    return f"the output could not be written: {error.strerror}"
