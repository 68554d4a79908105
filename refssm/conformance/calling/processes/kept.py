"""Run a program through a keeper, which kills all that the program has started.

Where there are no process groups (Windows) programs run without one, and what a program has
started is looked for by `taskkill` while the program still runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from refssm.conformance.calling.processes import keeper

PROGRAM = Path(keeper.__file__)
GRACE = 4.0  # seconds for the keeper to kill everything
LOST = b"l"


class Running(Protocol):
    """A program that was started."""

    lost: bool  # True if it has killed its keeper: what it started may still run

    def wait(self, seconds: float) -> int | None:
        """Its exit code (of a signal, negative), or None if it does not end within the time."""
        ...

    def end(self) -> int:
        """Kill it, with all that it started; its exit code."""
        ...


class Runs(Protocol):
    """Runs programs, one at a time."""

    def start(self, words: Sequence[str], *descriptors: int) -> Running:
        """Start a program that prints into the first descriptor and gets the others as 3, 4, …

        OSError if it cannot be run.
        """
        ...

    def close(self) -> None:
        """End what runs."""
        ...


def has_groups() -> bool:
    """Whether this system has process groups and can pass descriptors to another process."""
    return hasattr(os, "killpg") and hasattr(socket, "send_fds")


def runs(folder: str | None = None) -> Runs:
    """What runs programs here, in a folder or the working directory."""
    return KeeperHandle(folder) if has_groups() else Alone(folder)


class KeeperHandle:
    """A keeper's other end; it ends with this object, or with this process."""

    def __init__(self, folder: str | None = None):
        here, there = socket.socketpair()
        with there:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM), str(there.fileno())],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=folder,
                start_new_session=True,
            )
        self.process, self.socket, self.lock = process, here, threading.Lock()
        self.close = weakref.finalize(self, _close, here, process, os.getpid())

    def start(self, words: Sequence[str], *descriptors: int) -> KeptProcess:
        """Start a program: see `Runs`."""
        body = b"\0".join(os.fsencode(word) for word in words)
        kept = KeptProcess(self)
        try:
            socket.send_fds(self.socket, [keeper.HEAD.pack(len(body))], descriptors)
            self.socket.sendall(body)
            what, number = self.reply(None)
            if what == keeper.STARTED:
                kept.process = number
                what, number = self.reply(None)
        except ConnectionError:
            what, number = LOST, -signal.SIGKILL
        except KeyboardInterrupt:  # it may run now, and nobody would end it
            self.close()
            raise
        if what == keeper.FAILED:
            raise OSError(number, os.strerror(number))
        if what == LOST:
            kept.give_up()
        return kept

    def reply(self, seconds: float | None) -> tuple[bytes, int]:
        """What the keeper says: b"" if nothing within so many seconds, LOST if it was killed."""
        self.socket.settimeout(seconds)
        try:
            told = self.socket.recv(keeper.REPLY.size)
        except TimeoutError:
            return b"", 0
        except OSError:
            told = b""
        return keeper.REPLY.unpack(told) if told else (LOST, -signal.SIGKILL)


def _close(here: socket.socket, process: subprocess.Popen, owner: int) -> None:
    """End a keeper and wait for it; a fork of its owner only forgets it."""
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            here.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    here.close()


class KeptProcess:
    """A program that a keeper runs."""

    def __init__(self, runs: KeeperHandle):
        self.runs, self.process, self.code, self.lost = runs, 0, None, False

    def wait(self, seconds: float) -> int | None:
        """See `Running`."""
        with self.runs.lock:
            if self.code is None:
                what, number = self.runs.reply(seconds)
                self.code = number if what else None
                if what == LOST:
                    self.give_up()
            return self.code

    def end(self) -> int:
        """See `Running`."""
        if self.code is None:
            with contextlib.suppress(OSError):
                self.runs.socket.sendall(keeper.HEAD.pack(0))
            if self.wait(GRACE) is None:  # somebody has stopped the keeper
                self.give_up()
        assert self.code is not None
        return self.code

    def give_up(self) -> None:
        """Kill the program's process group without the keeper, which does not answer."""
        self.code, self.lost = -signal.SIGKILL, True
        self.runs.process.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.process:  # 0 would be our own group
                os.killpg(self.process, signal.SIGKILL)


class Alone:
    """Runs programs without a keeper."""

    def __init__(self, folder: str | None = None):
        self.folder = folder

    def start(
        self, words: Sequence[str], *descriptors: int, more: Mapping[str, str] | None = None
    ) -> Single:
        """Start a program: see `Runs`; with more variables in its environment."""
        (output,) = descriptors
        return Single(
            subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, **(more or {})},
            )
        )

    def close(self) -> None:
        """Nothing to end."""


class Single:
    """A program without a keeper."""

    lost = False

    def __init__(self, process: subprocess.Popen):
        self.process = process

    def wait(self, seconds: float) -> int | None:
        """See `Running`."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> int:
        """See `Running`; what it started is found only while it runs."""
        if self.process.poll() is None:
            tree = ["taskkill", "/F", "/T", "/PID", str(self.process.pid)]
            with contextlib.suppress(OSError):
                subprocess.run(tree, capture_output=True, check=False)
            self.process.kill()
        return self.process.wait()
