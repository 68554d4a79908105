"""The parent's side of the child process: requests with a time limit; crashes become outcomes.

One child process runs the implementations for all requests, so a segmentation fault, an abort or an
endless loop in it only causes a restart: one for each implementation, `RESTARTS` for all.
"""

import signal
import time
from contextlib import suppress
from typing import Any, NoReturn

from refssm.conformance.calling import links
from refssm.conformance.calling.fingerprint import Sources
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Closed, Outcome
from refssm.conformance.calling.processes.channel import Foreign
from refssm.conformance.usage_error import Several, UsageError

NOT_CALLED = "not called again"
RESTARTS = 6  # each lost call may have waited for the time limit
FIRST_CALL = 5  # times the limit: the first call imports and compiles


class ChildGone(Exception):
    """The child process crashed or hung; the message says how."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


class Worker(Closed):
    """Implementations in a child process, which is restarted at most once for each of them."""

    def __init__(
        self,
        target: str,
        name: str | None = None,
        timeout: float = 60.0,
        told: dict | None = None,
        folder: str | None = None,
    ):
        self.target, self.name, self.timeout, self.told = target, name, timeout, told
        self.restarts, self.spent, self.death, self._folder = 0, False, "", folder
        self._first, self._number = True, 0
        self._link: links.Link | None = links.start(folder)
        try:
            self.found: list[Offer] = self._load()
        except BaseException:
            self.close()
            raise

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Call the implementation; a crash or a hang is an outcome too."""
        try:
            if self._link is None:
                self._restart()
            outcome = self._ask("call", name, arrays, statics, **how)
            if outcome.status == "crashed":  # the child lives, but has lost its device
                self.lose(outcome.message)
            return outcome
        except ChildGone as gone:
            return Outcome(gone.status, message=str(gone))

    def narrow(self, name: str, arrays, statics):
        """Project a case by the implementation's `only`; a crash or a hang is an outcome too."""
        try:
            if self._link is None:
                self._restart()
            return self._ask("narrow", name, arrays, statics)
        except ChildGone as gone:
            return Outcome(gone.status, message=str(gone))

    @property
    def alive(self) -> bool:
        """True if the child process runs, so that the next call needs no restart."""
        return self._link is not None

    def begin_another(self) -> None:
        """Let another implementation begin with a child that runs, and a restart of its own."""
        self.spent = self.restarts >= RESTARTS
        if not self.alive and not self.spent:
            with suppress(ChildGone):
                self._restart()
            self.spent = self.restarts >= RESTARTS

    def lose(self, death: str) -> None:
        """Kill the child: it lost its device, or the same call killed another process's child."""
        self._stop()
        self.death = death

    def sources(self) -> Sources:
        """Fingerprints of what the child has imported."""
        return self._ask("sources")

    def close(self) -> None:
        """End the child process, with all that it started."""
        self._stop()

    def attempt(self, tried, arrays, statics, **how) -> Outcome:
        """Call a function through a wrapper; a crash or a hang is an outcome too."""
        try:
            return self._ask("attempt", tried, arrays, statics, **how)
        except ChildGone as gone:
            return Outcome(gone.status, message=str(gone))

    def _load(self) -> Any:
        try:
            answer = self._ask("load", self.target, self.name, self.told)
        except ChildGone as gone:
            raise UsageError(f"{self.target}: importing it {gone}") from None
        if isinstance(answer, Outcome):
            raise UsageError(f"{self.target}: inspecting it {answer.message}")
        return answer

    def _restart(self):
        if self.spent:
            raise ChildGone("crashed", f"{NOT_CALLED}: an earlier call {self.death}")
        self.restarts, self.spent = self.restarts + 1, True
        self._link = links.start(self._folder)
        self._first = True  # importing takes as long as at first
        try:
            self._load()
        except UsageError as error:  # the first import worked, this one failed
            raise ChildGone("crashed", f"{self.death}; then {error}") from None
        finally:
            self._first = False

    def _ask(self, method, *args, **kwargs) -> Any:
        limit = self.timeout * (FIRST_CALL if self._first else 1)
        link, deadline = self._link, time.monotonic() + limit
        assert link is not None
        self._number += 1
        number = 0
        try:
            link.channel.send((self._number, method, args, kwargs), deadline)
            while number != self._number:  # one that was given up may be answered still
                number, status, answer = link.channel.receive(deadline)
        except TimeoutError:
            self._lost("hung", f"did not return within {limit:g} s")
        except (Foreign, TypeError, ValueError):
            self._lost("crashed", "wrote to the connection to the judge, which is not its own")
        except (OSError, EOFError):
            self._lost("crashed", _how_it_died(link))
        self._first = self._first and method not in ("call", "attempt")
        if status == "several":
            raise Several(*answer)
        if status == "usage":
            raise UsageError(answer)
        if status == "failed":
            return Outcome("raised", message=f"raised {answer}")
        return answer

    def _lost(self, status: str, death: str) -> NoReturn:
        self.lose(death)
        raise ChildGone(status, death) from None

    def _stop(self):
        if self._link is not None:
            self._link.close()
            self._link = None


def _how_it_died(link: links.Link) -> str:
    code = link.process.wait(1.0)
    if code is None:  # it closed the connection and is still running
        return "closed the connection to the judge"
    printed = link.printed.last_line()
    if link.process.lost:
        return f"lost the process that would end what it starts{printed}"
    if code < 0:
        return f"killed the process by {signal.Signals(-code).name}{printed}"
    return f"ended the process with exit code {code}{printed}"


class Plain(Worker):
    """The functions of a target in a child process, of whatever operator: `functions`.

    After a crash or a hang it is not started again.
    """

    def __init__(self, target: str, timeout: float):
        super().__init__(target, timeout=timeout)

    def begin(self) -> None:
        """Allow the next call more time: another function imports and compiles."""
        self._first = True

    def _load(self) -> Any:
        try:
            self.functions = self._ask("functions", self.target)
        except ChildGone as gone:
            raise UsageError(f"{self.target}: importing it {gone}") from None
        return []
