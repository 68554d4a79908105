"""The child process that runs an implementation: it answers requests until its socket closes.

`python -m refssm.conformance.calling.child SOCKET`: the descriptor of the socket. `child port PORT`
calls a port instead: see `links`.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable

from refssm.conformance.calling import links
from refssm.conformance.calling.calls.attempt import Attempt, Function, attempt, functions_of
from refssm.conformance.calling.finding import find, loaded, looking, sentence
from refssm.conformance.calling.fingerprint import Sources, imported
from refssm.conformance.calling.implementation import Found, Offer
from refssm.conformance.calling.one_call import Outcome, call, narrowed_by
from refssm.conformance.calling.processes.channel import Channel
from refssm.conformance.calling.processes.parent import end_with
from refssm.conformance.usage_error import Several, UsageError


class Server:
    """The implementations of one target, and the requests that call them."""

    def __init__(self):
        self.found: dict[str, Found] = {}
        self.plain: dict[str, Callable] = {}  # all names of a target

    def load(self, target: str, name: str | None, told: dict | None) -> list[Offer]:
        """Find the implementations of a target; return an offer for each."""
        try:
            with looking(target):
                return self.take(find(target, name, told))
        except KeyboardInterrupt as error:  # the author's: here Ctrl-C is ignored
            raise UsageError(f"{target}: importing it raised {sentence(error)}") from None

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
        """Project a case by the implementation's `only`: see `narrowing`."""
        return narrowed_by(self.found[name], arrays, statics)


def serve(judge: Channel) -> None:
    """Answer requests until the judge closes the connection."""
    server, own = Server(), os.getpid()
    while True:
        try:
            number, method, args, kwargs = judge.receive()
        except EOFError:
            return
        try:
            answer = ("ok", getattr(server, method)(*args, **kwargs))
        except Several as error:
            answer = ("several", (str(error), error.parts))
        except UsageError as error:
            answer = ("usage", str(error))
        except BaseException as error:  # the author's KeyboardInterrupt, too
            answer = ("failed", sentence(error))
        if os.getpid() != own:  # a call forked, and this process has no part in the judge
            os._exit(0)
        judge.send((number, *answer))


def main() -> None:
    """Join the judge, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    # threads of a library that wait actively take the cores from the others: beside two busy
    # processes on two cores a small scan in PyTorch takes 215 ms a call, with this 2 ms
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    judge = links.join(sys.argv[1:])
    end_with(os.getppid())
    try:
        serve(judge)
    except OSError as error:
        sys.exit(f"the connection to the judge was closed: {error.strerror}")


if __name__ == "__main__":
    main()
