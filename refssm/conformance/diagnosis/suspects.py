"""Find planted bugs, which are implementations themselves, with the outputs of a failed one.

A bug is named only if, within the judge's tolerances, it gives the recorded outputs in every call
of every recorded case, right and wrong ones; if the judge refuses it on one of them; and if those
outputs are at least twice as near to the bug's as to the right ones. Rounding errors of an honest
program are about as far from both.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np

from refssm._declaration.adapted import adapted, adapters_of, through
from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.checks.checks import Check, rule_named
from refssm.conformance.checks.law import Conduct
from refssm.conformance.diagnosis.likeness import between_calls, distance, everywhere, largest_error
from refssm.conformance.diagnosis.transcript import (
    Episode,
    SpokenCall,
    episode,
    gave_arrays,
    refused,
    worker_of,
)
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.planted import PlantedBug, bugs_of
from refssm.conformance.planted.planting import Epsilon, instead

NOT_DONE = {"scaled": "is not scaled", "normalised": "is not normalised"}
AFRESH = 3  # calls; of a bug that comes and goes, one of them is right


@cache
def bugs_of_operator(name: str, family: str) -> tuple[PlantedBug, ...]:
    """The planted bugs of one operator; imports only its family."""
    return tuple(d for d in bugs_of(family) if d.op == name)


@cache
def bugs_in(op: Operator) -> tuple[PlantedBug, ...]:
    """The planted bugs of an operator, for the parameters that it takes, and without an adapter."""
    planted = (_of_parameters(d, op) for d in bugs_of_operator(op.name, op.family))
    return (*planted, *_without_adapters(op))


def _of_parameters(bug: PlantedBug, op: Operator) -> PlantedBug:
    """The bug behind the operator's adapters."""
    if not adapters_of(op):
        return bug

    def behind(program):
        def wrong(right, *arrays, **statics):
            def planted(*natural, **statics):
                return program(right, *natural, **statics)

            return through(op, planted, bug.of_gradient)(*arrays, **statics)

        return wrong

    wrong = bug.wrong.after(behind) if isinstance(bug.wrong, Epsilon) else behind(bug.wrong)
    return replace(bug, wrong=wrong)


def _without_adapters(op: Operator) -> Iterator[PlantedBug]:
    """The operator without one of its adapters, forward and backward: parameters as they come."""
    declared = adapters_of(op)
    for i, adapter in enumerate(declared):
        other = adapted(operator_named(op.name), (*declared[:i], *declared[i + 1 :]))
        lacking = NOT_DONE.get(adapter.name, "is used as it comes")
        what = f"`{adapter.argument}` {lacking}, but the function declares {adapter!r}"
        programs = {"value": other.reference, "gradient": other.bare_vjp}
        for check, program in programs.items():
            yield PlantedBug(
                op.name, f"{adapter.name}_missing", f"{check}[]", what, instead(program)
            )


def answering_alike(
    check: Check,
    candidate: Candidate,
    heard: list[Episode],
    among=(),
    where=everywhere,
    over: Callable[[], bool] = lambda: False,
) -> list[PlantedBug]:
    """The planted bugs with the same outputs: the nearest first, then those of this check.

    `where` leaves out entries that say nothing. Once `over()` is true, no other bug is compared.
    """
    op, vjp = candidate.op, check.rule.of_gradient
    known = list(among) or [d for d in bugs_in(op) if d.of_gradient == vjp]
    if check.rule.between_calls and always_wrong(candidate, heard[0]):
        return []  # it is wrong without another call, too
    answered = all(call.outcome.status == "ok" for e in heard for call in e.calls)
    # a bug with random errors resembles any error of its size; others answer equal calls alike
    if answered or not check.rule.between_calls:
        known = [d for d in known if between_calls(d) == check.rule.between_calls]
    if any(call.outcome.changed or call.outcome.aliased for call in heard[0].calls):
        known = [d for d in known if _of_conduct(d)]  # what only computes has its own memory
    wanted = f"{check.name}[{check.dtype}]"
    known.sort(key=lambda d: (d.caught_by != wanted, d.caught_by.split("[")[0] != check.name))
    failing = sorted(heard, key=_telling)  # the first ones exclude most bugs
    calls = [call for e in failing for call in e.calls if call.vjp == vjp]
    error = largest_error(candidate, calls)
    told = [(d, distance(d, candidate, calls, where, error)) for d in known if not over()]
    return [d for d, ratio in sorted(((d, r) for d, r in told if r is not None), key=_second)]


def _of_conduct(d: PlantedBug) -> bool:
    """True if the bug is about memory or calls, and not about numbers."""
    return isinstance(rule_named(d.caught_by.partition("[")[0]), Conduct)


def _telling(e: Episode) -> tuple[bool, int]:
    """Failing cases before others, small ones before large ones: they are compared sooner."""
    return e.verdict.ok, sum(a.size for call in e.calls for a in call.arguments)


def always_wrong(candidate: Candidate, e: Episode) -> bool:
    """True if the values of a refused call are wrong whenever the function gets its arguments.

    They come contiguous, and after a call with other numbers: what was kept is then of no use.
    """
    bad = (call for call in e.calls if gave_arrays(call.outcome))
    call = next((c for c in bad if refused(candidate, c, _values(c.outcome))), None)
    return call is not None and all(_wrong_afresh(candidate, call) for _ in range(AFRESH))


def _values(outcome: Outcome) -> Outcome:
    return replace(outcome, changed=(), aliased=())


def _wrong_afresh(candidate: Candidate, call: SpokenCall) -> bool:
    """True if the call is refused after another one."""
    outcomes = [
        candidate.outcome(arguments, call.statics, vjp=call.vjp)
        for arguments in (_other_numbers(call.arguments), call.arguments)
    ]
    return refused(candidate, replace(call, view="", after=None), _values(outcomes[1]))


def _other_numbers(arguments) -> list[np.ndarray]:
    return [
        a if a.dtype.kind in "bi" else np.where(a == 0, a.dtype.type(0.25), a / 2).astype(a.dtype)
        for a in arguments
    ]


def misbehaving(check: Check, candidate: Candidate, case, heard: list[Episode]) -> list[PlantedBug]:
    """The planted bugs that this check finds with the same message, numbers aside."""
    op, told = candidate.op, _words(heard[0].verdict)
    if always_wrong(candidate, heard[0]):
        return []  # of values, and not of what this check looks at
    found = []
    for d in bugs_in(op):
        if d.caught_by.split("[")[0] == check.name:
            other = copy(candidate)
            other.worker, other.sliced = worker_of(d, candidate), False
            other.offer = other.worker.found[0]
            if _words(episode(check, other, case).verdict) == told:
                found.append(d)
    return found


def _words(verdict: Verdict) -> str:
    """A message up to the first "got", without digits."""
    return "".join(c for c in verdict.message.split("got")[0] if not c.isdigit())


def _second(pair):
    return pair[1]
