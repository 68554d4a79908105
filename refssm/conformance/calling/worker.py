"""The parent's side of the child process: requests with a time limit; crashes become outcomes.

One child process runs the implementation for all requests, so a segmentation fault, an abort or an
endless loop in it only causes a restart.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from refssm.conformance.calling import links
from refssm.conformance.calling.child import Server
from refssm.conformance.calling.finding import find, looking
from refssm.conformance.calling.fingerprint import Sources
from refssm.conformance.calling.implementation import Found, Offer
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.usage_error import Several, UsageError

NOT_CALLED = "not called again"
FIRST_CALL = 5  # times the limit: the first call imports and compiles


class Gone(Exception):
    """The child process crashed or hung; the message says how."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


class Worker:
    """An implementation in a child process, which is restarted at most once."""

    def __init__(
        self,
        target: str,
        name: str | None = None,
        timeout: float = 60.0,
        told: dict | None = None,
        folder: str | None = None,
    ):
        self.target, self.name, self.timeout, self.told = target, name, timeout, told
        self.restarts, self.death, self._folder = 0, "", folder
        self._first, self._number = True, 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (has no name: none is left behind)
        self._start()
        try:
            self.found: list[Offer] = self._load()
        except BaseException:
            self.close()
            raise

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Call the implementation; a crash or a hang is an outcome too."""
        try:
            if self._process is None:
                self._restart()
            outcome = self._ask("call", name, arrays, statics, **how)
            if outcome.status == "crashed":  # the child lives, but has lost its device
                self.lose(outcome.message)
            return outcome
        except Gone as gone:
            return Outcome(gone.status, message=str(gone))

    def narrow(self, name: str, arrays, statics):
        """Project a case by the implementation's `only`; a crash or a hang is an outcome too."""
        try:
            if self._process is None:
                self._restart()
            return self._ask("narrow", name, arrays, statics)
        except Gone as gone:
            return Outcome(gone.status, message=str(gone))

    @property
    def alive(self) -> bool:
        """True if the child process runs, so that the next call needs no restart."""
        return self._process is not None

    def lose(self, death: str) -> None:
        """Kill the child: it lost its device, or the same call killed another process's child."""
        self._stop()
        self.death = death

    def sources(self) -> Sources:
        """Fingerprints of what the child has imported."""
        return self._ask("sources")

    def close(self) -> None:
        """End the child process."""
        self._stop()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def printed(self) -> str:
        """All that the implementation has printed so far."""
        return links.printed(self._log)

    def _start(self):
        self._process, self._requests, self._answers = links.start(self._log, self._folder)

    def _load(self) -> Any:
        try:
            answer = self._ask("load", self.target, self.name, self.told)
        except Gone as gone:
            raise UsageError(f"{self.target}: importing it {gone}") from None
        if isinstance(answer, Outcome):
            raise UsageError(f"{self.target}: inspecting it {answer.message}")
        return answer

    def _restart(self):
        if self.restarts:
            raise Gone("crashed", f"{NOT_CALLED}: an earlier call {self.death}")
        self.restarts += 1
        self._start()
        self._first = True  # importing takes as long as at first
        try:
            self._load()
        except UsageError as error:  # the first import worked, this one failed
            raise Gone("crashed", f"{self.death}; then {error}") from None
        finally:
            self._first = False

    def _ask(self, method, *args, **kwargs) -> Any:
        limit = self.timeout * (FIRST_CALL if self._first else 1)
        process, expired = self._process, threading.Event()
        assert process is not None

        def expire():
            expired.set()
            process.kill()

        # One timer for sending, waiting and receiving: the child may stop during each of them.
        watch = threading.Timer(limit, expire)
        watch.start()
        self._number += 1
        try:
            self._requests.send((self._number, method, args, kwargs))
            number = 0
            while number != self._number:  # a fork of the child may answer too
                number, status, answer = self._answers.recv()
        except (OSError, EOFError, pickle.UnpicklingError, ValueError, TypeError):
            self.death = f"did not return within {limit:g} s"
            if not expired.is_set():
                self.death = self._how_it_died()
            self._stop()
            raise Gone("hung" if expired.is_set() else "crashed", self.death) from None
        finally:
            watch.cancel()
        self._first = self._first and method != "call"
        if status == "several":
            raise Several(*answer)
        if status == "usage":
            raise UsageError(answer)
        if status == "failed":
            return Outcome("raised", message=f"raised {answer}")
        return answer

    def _how_it_died(self) -> str:
        process = self._process
        assert process is not None
        try:
            code = process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:  # it closed the pipe and is still running
            return "closed the pipe to the judge"
        last = [line for line in self.printed().splitlines() if line.strip()][-1:]
        printed = f" (it printed: {last[0].strip()[:200]})" if last else ""
        if code < 0:
            return f"killed the process by {signal.Signals(-code).name}{printed}"
        return f"ended the process with exit code {code}{printed}"

    def _stop(self):
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._requests.close()
        self._answers.close()
        self._process = None


class InProcess:
    """The interface of `Worker` without a child, for debuggers; saves inputs before each call."""

    def __init__(self, found: Iterable[Found], folder: Path | None = None):
        self._server, self._folder = Server(), folder
        self.found = self._server.take(found)

    @classmethod
    def at(cls, target: str, name: str | None, told: dict | None, folder: Path | None = None):
        """The implementations of a target, imported in this process."""
        with looking(target):
            return cls(find(target, name, told), folder)

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Save the inputs and call the implementation in this process."""
        if self._folder is not None:
            numbered = {f"arg{i}": a for i, a in enumerate(arrays)}
            with suppress(OSError):  # a full disk: the call is judged all the same
                self._folder.mkdir(exist_ok=True)
                np.savez(self._folder / f"{name}-last.npz", **numbered)  # pyright: ignore[reportArgumentType]
        return self._server.call(name, [a.copy() for a in arrays], statics, **how)

    def narrow(self, name: str, arrays, statics):
        """Project a case by the implementation's `only`."""
        return self._server.narrow(name, [a.copy() for a in arrays], statics)

    def printed(self) -> str:
        """Always "": the implementation prints to this process's output."""
        return ""

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
