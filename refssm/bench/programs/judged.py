"""Only what the judge accepts is timed: the verdict of a quick profile, once in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from refssm.bench.programs.program import MIRROR, ON_GPU, REFERENCE, Program
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.calling.worker import Worker
from refssm.conformance.checks.checks import GRADIENT, VALUE
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.result import Result
from refssm.conformance.report.lines import facts, word
from refssm.conformance.running.session import Trial
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.usage_error import UsageError

GRADIENTS = 5  # cases: the quick profile has none for gradients
TIMEOUT = 60.0


@dataclass(frozen=True)
class Judged:
    """Whether the judge accepts an implementation, and its line."""

    accepted: bool
    line: str
    sliced: bool = False  # it has no batch axes and is called slice by slice
    ratio: float = 0.0  # the largest error of the judge's cases, in units of u·K0
    bits: float = 0.0


class Judge:
    """The verdicts of one run, by implementation, type, and value or gradient."""

    def __init__(self, tick: Callable[[str, int, int], None] = lambda *what: None):
        self.tick = tick
        self.known: dict[tuple, Judged] = {}
        self.expected: dict = {}  # of one operator's cases, which are the same for all
        self.op = ""

    def verdict(self, program: Program, dtype: str, vjp: bool) -> Judged:
        """The verdict on the value, and for a VJP on the gradient, too."""
        value = self._of(program, dtype, False)
        if not value.accepted or not vjp:
            return value
        gradient = self._of(program, dtype, True)
        return replace(gradient, sliced=value.sliced)

    def _of(self, program: Program, dtype: str, vjp: bool) -> Judged:
        key = program.target, program.found.forward, dtype, vjp
        if key not in self.known:
            if self.op != program.op.name:
                self.op, self.expected = program.op.name, {}
            with remembering(self.expected):
                self.known[key] = self._judged(program, dtype, vjp)
        return self.known[key]

    def _judged(self, program: Program, dtype: str, vjp: bool) -> Judged:
        try:
            with _worker(program) as worker:
                results = list(_results(worker, program, dtype, vjp, self.tick))
        except UsageError as error:
            return Judged(False, str(error))
        bad = [r for r in results if r.verdict != "pass"]
        if bad or not results:
            return Judged(False, line(bad[0]) if bad else "the judge has no check for it")
        (first, *_) = results
        return Judged(True, line(first), first.sliced, first.ratio, first.bits)


def line(result: Result) -> str:
    """A result in one line, with what is wrong."""
    text = f"{word(result)} {result.id}: {facts(result)}"
    return f"{text}; {result.message}" if result.failed and result.message else text


def _results(worker, program, dtype, vjp, tick) -> Iterator[Result]:
    rule = GRADIENT if vjp else VALUE
    settings = Settings(
        profile="default" if vjp else "quick",
        cases=GRADIENTS if vjp else 0,
        types=(dtype,),
        only_checks=(rule.name,),
        shrink=False,
        folder=None,
        hints=False,
    )
    session = Session(worker, program.target, settings, tick=tick)
    for offer in worker.found:
        if offer.name == program.op.name and offer.judged:
            yield from Trial(session, offer).run()


@contextmanager
def _worker(program: Program) -> Iterator[InProcess | Worker]:
    """Our own code in this process; other people's in a child, which may crash or hang."""
    if program.kind in (REFERENCE, MIRROR, ON_GPU):
        yield InProcess([program.found])
    else:
        told = dict(program.told) or None
        with Worker(program.target, timeout=TIMEOUT, told=told) as worker:
            yield worker
