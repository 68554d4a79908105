"""The child process that runs an implementation: it answers requests over a pipe until that closes.

`python -m refssm.conformance.calling.child READ WRITE LOG`: file descriptors of the requests, of
the answers, and of a file for all that the implementation prints. With one number it is the
port of a socket: see `links`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection

from refssm.conformance.calling import links
from refssm.conformance.calling.calls.attempt import Attempt, Function, attempt, functions_of
from refssm.conformance.calling.finding import find, loaded, looking, sentence
from refssm.conformance.calling.fingerprint import Sources, imported
from refssm.conformance.calling.implementation import Found, Offer
from refssm.conformance.calling.narrowing import narrowed
from refssm.conformance.calling.one_call import Outcome, call
from refssm.conformance.usage_error import Several, UsageError

WATCH_SECONDS = 1.0


class Server:
    """The implementations of one target, and the requests that call them."""

    def __init__(self):
        self.found: dict[str, Found] = {}
        self.plain: dict[str, Callable] = {}  # all names of a target

    def load(self, target: str, name: str | None, told: dict | None) -> list[Offer]:
        """Find the implementations of a target; return an offer for each."""
        with looking(target):
            return self.take(find(target, name, told))

    def take(self, found: Iterable[Found]) -> list[Offer]:
        """Store implementations by operator name and return their offers."""
        self.found = {f.op.name: f for f in found}
        return [f.offer for f in self.found.values()]

    def functions(self, target: str) -> list[Function]:
        """The public functions of a target, for the doctor."""
        with looking(target):
            module = loaded(target)
            self.plain = vars(module)
            return functions_of(module)

    def attempt(self, tried: Attempt, arrays, statics, **how) -> Outcome:
        """Call a function of the target through a wrapper of the doctor's."""
        return attempt(self.plain, tried, arrays, statics, **how)

    def sources(self) -> Sources:
        """Fingerprints of all that this process has imported."""
        return imported()

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Call one implementation or its VJP."""
        return call(self.found[name], arrays, statics, **how)

    def narrow(self, name: str, arrays, statics):
        """Project a case by the implementation's `only`: see `narrowing.narrowed`."""
        found = self.found[name]
        assert found.declared.only is not None
        return narrowed(found.declared.only, found.op, arrays, statics)


def serve(requests: Connection, answers: Connection) -> None:
    """Answer requests until the parent closes the pipe."""
    server = Server()
    while True:
        try:
            number, method, args, kwargs = requests.recv()
        except EOFError:
            return
        try:
            answer = ("ok", getattr(server, method)(*args, **kwargs))
        except Several as error:
            answer = ("several", (str(error), error.parts))
        except UsageError as error:
            answer = ("usage", str(error))
        except Exception as error:
            answer = ("failed", sentence(error))
        answers.send((number, *answer))


def main() -> None:
    """Join the judge, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    requests, answers = links.join(sys.argv[1:])
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    serve(requests, answers)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, even during a call: a killed parent cannot.

    On Windows a parent's number stays: a child in the middle of a call goes on to its end.
    """
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


if __name__ == "__main__":
    main()
