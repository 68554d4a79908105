"""What a terminal or a pipe may do to a run: Ctrl-C, SIGTERM, an output that is closed or full.

Importing refssm takes seconds, and a document of `--json` can be printed only after its options
are read. Until then the first signal is remembered, so that the results so far can be printed; a
second one interrupts at once.

Standard output and error may also be pipes that nobody reads. What cannot be printed is lost; the
command goes on, and its exit code is that of its verdict.
"""

import codecs
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # SIGTERM too: `timeout 60 refssm verify`, a CI limit


class _Held:
    """The handler of signals that wait."""

    def __init__(self):
        self.came = False

    def __call__(self, number, frame):
        if self.came:
            signal.default_int_handler(number, frame)
        self.came = True


def hold() -> None:
    """Let the first signal wait for `release`; one that the caller ignores stays ignored."""
    handler = _Held()
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, handler)


def release() -> None:
    """Let signals raise KeyboardInterrupt from now on, and raise it if one has come."""
    came = False
    for number in SIGNALS:
        held = signal.getsignal(number)
        if isinstance(held, _Held):
            signal.signal(number, signal.default_int_handler)
            came = came or held.came
    if came:
        raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Let signals wait until the end of the block: what it prints is printed whole."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    later, waits = _Held(), []
    try:
        for number in SIGNALS:
            if before[number] is signal.default_int_handler:
                waits.append(number)
                signal.signal(number, later)
        yield
    finally:
        for number in waits:
            signal.signal(number, before[number])
    if later.came:
        raise KeyboardInterrupt


def end() -> None:
    """The result is printed: Ctrl-C changes nothing any more, and SIGTERM ends at once."""
    for number, last in zip(SIGNALS, (signal.SIG_IGN, signal.SIG_DFL), strict=True):
        ours = signal.getsignal(number)
        if ours is signal.default_int_handler or isinstance(ours, _Held):
            signal.signal(number, last)


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
