"""The end of what a program prints: read at once, so that it never waits; the rest is dropped."""

import contextlib
import os
import threading

KEPT = 65536  # bytes
LONGEST = 200  # characters of a line in a report
SECONDS = 1.0


class Tail:
    """A pipe whose end `write` is the output of a program."""

    def __init__(self):
        self._read, self.write = os.pipe()
        self._kept = b""
        self._thread = threading.Thread(target=self._reads, daemon=True)

    def start(self) -> None:
        """Begin to read; the program has its end by now."""
        os.close(self.write)
        self._thread.start()

    def last_line(self) -> str:
        """The last line, shortened, in brackets; "" if there is none."""
        self._thread.join(SECONDS)  # longer only if a process escaped that has the pipe open
        lines = [x.strip() for x in self._kept.decode(errors="replace").splitlines() if x.strip()]
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in (lines or [""])[-1])
        return f" (it printed: {text[:LONGEST]})" if text else ""

    def _reads(self) -> None:
        with contextlib.closing(os.fdopen(self._read, "rb", buffering=0)) as pipe:
            while part := pipe.read(KEPT):
                self._kept = (self._kept + part)[-KEPT:]
