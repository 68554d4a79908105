"""Processes that outlive what started them: found by a mark in their environment, in /proc."""

import contextlib
import os
import secrets
import signal
import time
from pathlib import Path

MARK = "REFSSM_TEST_MARK"
PATIENCE = 20.0  # seconds until a process that must end counts as left


class Marked:
    """A mark for the environment of all that is started from now on."""

    def __init__(self, monkeypatch):
        self.value = f"{MARK}={secrets.token_hex()}"
        monkeypatch.setenv(*self.value.split("="))

    def running(self):
        """Commands of the processes that have the mark, by number; zombies have none."""
        found = {}
        for place in Path("/proc").iterdir():
            if place.name.isdigit() and int(place.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if self.value.encode() in (place / "environ").read_bytes():
                        found[int(place.name)] = (place / "cmdline").read_text("utf-8").split("\0")
        return found

    def soon(self):
        """The same, as soon as there are none, or after a while."""
        until = time.monotonic() + PATIENCE
        while (found := self.running()) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def kill(self):
        """Kill them: a test that fails must not leave them."""
        for process in self.running():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
