"""Constants of a program's own: a limit of an argument, or a small number that it adds.

If an argument above c gives what c gives, then cutting it off at any t ≥ c changes no bit of the
outputs. Calls of the program find the smallest such t, by bisection. A number ε is found without
calls: it is the one with which the outputs of a planted bug are nearest to the recorded ones.
Either is reported only if the reference with this mistake gives the recorded outputs, as for a
planted bug.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from refssm._declaration.adapted import adapters_of
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined, InProcess
from refssm.conformance.cases.limits import may_hold
from refssm.conformance.checks.checks import Check
from refssm.conformance.diagnosis.suspects import bugs_in, distance, everywhere, outcome_of
from refssm.conformance.diagnosis.transcript import (
    Episode,
    SpokenCall,
    expected,
    gave_arrays,
    refused,
)
from refssm.conformance.gauges.gauge import wide
from refssm.conformance.planted import PlantedBug
from refssm.conformance.planted.planting import Epsilon, in_words

TRIED = 3  # failing calls: the smallest for a limit, the largest for an ε
LARGEST = 100_000  # numbers in a call: each limit takes about a hundred calls
DOUBLINGS = 40  # how far from its largest number an argument may be cut off
HALVINGS = 64
QUICK = 10_000  # numbers in a call: each ε takes about 80 runs of our own program
DIGITS = 1, 2, 3  # significant digits of a reported ε, fewest first


class Side(NamedTuple):
    """One side of a limit: how it cuts, what it is called, and the numbers beyond it."""

    cut: Callable
    words: str
    extreme: Callable
    toward: float  # where stricter limits lie


SIDES = (
    Side(np.minimum, "at or below", np.max, -np.inf),
    Side(np.maximum, "at or above", np.min, np.inf),
)


def clamped(check: Check, candidate: Candidate, heard: list[Episode]) -> list[PlantedBug]:
    """The limit of one argument that explains all recorded outputs: none or one."""
    if adapters_of(candidate.op):
        return []
    calls = sorted((call for e in heard for call in e.calls if not call.vjp), key=_size)
    failing = [call for call in calls if refused(candidate, call, call.outcome)]
    if not all(gave_arrays(call.outcome) for call in failing):
        return []
    for call in (call for call in failing[:TRIED] if _size(call) <= LARGEST):
        for bug in _limits(check, candidate, call):
            if distance(bug, candidate, calls, everywhere) is not None:
                return [bug]
    return []


def _size(call: SpokenCall) -> int:
    return sum(a.size for a in call.arguments)


def _limits(check: Check, candidate: Candidate, call: SpokenCall) -> Iterator[PlantedBug]:
    """The limits that this call shows, as bugs in the reference."""
    op = candidate.op
    for i, name in enumerate(op.inputs):
        a = call.arguments[i]
        if a.dtype.kind not in "fc" or not a.size or not np.isfinite(a).all():
            continue
        for part in ("real", "imag") if a.dtype.kind == "c" else ("real",):
            for side in SIDES:
                change = partial(_cut, part=part, side=side)
                limit = _limit(candidate, call, i, change, side.extreme(getattr(a, part)), side)
                if limit is not None:
                    called = f"`{name}`" if a.dtype.kind == "f" else f"the {part} part of `{name}`"
                    what = f"{called} kept {side.words} {limit:.4g}"
                    yield _bug(check, op, i, partial(change, limit=limit), what)


def _cut(a: np.ndarray, limit, part: str, side: Side) -> np.ndarray:
    """The numbers with one part cut off at a limit."""
    limit = np.finfo(a.dtype).dtype.type(limit)
    if a.dtype.kind != "c":
        return side.cut(a, limit)
    cut = a.copy()
    setattr(cut, part, side.cut(getattr(a, part), limit))
    return cut


def _limit(
    candidate: Candidate, call: SpokenCall, i: int, change, extreme, side: Side
) -> float | None:
    """The strictest limit in the domain that changes no bit of the outputs; None if each does."""
    domain = [*candidate.op.inputs.values()][i]

    def same(limit) -> bool:
        arguments = [*call.arguments]
        arguments[i] = change(arguments[i], limit=limit)
        if not may_hold(domain, arguments[i], call.arguments[i]):
            return False  # nothing is called outside of the domain, or of `--where`
        try:
            outputs = candidate.outputs(candidate.admitted(arguments, call.statics), call.statics)
        except (Broken, Declined):
            return False
        return all(np.array_equal(y, z) for y, z in zip(outputs, call.outcome.outputs, strict=True))

    kind = extreme.dtype.type
    if not same(np.nextafter(extreme, kind(side.toward))):
        return None
    lost = extreme or kind(np.copysign(np.ldexp(1.0, -DOUBLINGS // 2), side.toward))
    kept, outward = extreme, 2.0 if (lost < 0) == (side.toward < 0) else 0.5
    for _ in range(DOUBLINGS):
        if not same(lost):
            break
        kept, lost = lost, kind(lost * outward)
    else:
        return None  # the argument has no effect
    for _ in range(HALVINGS):
        middle = kind((kept + lost) / 2)
        if middle in (kept, lost):
            break
        kept, lost = (middle, lost) if same(middle) else (kept, middle)
    return float(kept)


def _bug(check: Check, op, i: int, change: Callable, what: str) -> PlantedBug:
    """The reference with one argument changed, as a planted bug."""

    def wrong(right, *arrays, **statics):
        return right(*(change(a) if k == i else a for k, a in enumerate(arrays)), **statics)

    return PlantedBug(op.name, "clamped", f"{check.name}[{check.dtype}]", what, wrong)


def with_epsilon(candidate: Candidate, heard: list[Episode]) -> list[PlantedBug]:
    """The planted bugs whose small number, chosen again, explains all recorded outputs."""
    bugs = [bug for bug in bugs_in(candidate.op) if isinstance(bug.wrong, Epsilon)]
    calls = sorted((call for e in heard for call in e.calls), key=_size)
    if not bugs or any(call.vjp for call in calls):
        return []
    failing = [call for call in calls if refused(candidate, call, call.outcome)]
    if not all(gave_arrays(call.outcome) for call in failing):
        return []
    shown = [call for call in failing if _size(call) <= QUICK and _fits(candidate, call)]
    shown = shown[: -TRIED - 1 : -1]
    found = (_at_its_epsilon(bug, candidate, shown, calls) for bug in bugs)
    return [bug for bug in found if bug is not None]


def _fits(candidate: Candidate, call: SpokenCall) -> bool:
    """True if the outputs have the right number and shapes."""
    right = expected(candidate, call)
    return [y.shape for y in call.outcome.outputs] == [g.value.shape for g in right]


def _at_its_epsilon(bug, candidate: Candidate, shown, calls) -> PlantedBug | None:
    """The bug with the number that one of the calls shows, if it explains all calls."""
    for call in shown:
        epsilon = _nearest(bug, candidate, call)
        for digits in DIGITS if epsilon else ():
            number = float(f"{epsilon:.{digits - 1}e}")
            what = bug.what.replace(in_words(bug.wrong.number), in_words(number))
            told = replace(bug, what=what, wrong=bug.wrong.at(number))
            if distance(told, candidate, calls, everywhere) is not None:
                return told
    return None


def _nearest(bug: PlantedBug, candidate: Candidate, call: SpokenCall) -> float:
    """The ε with which the bug's outputs are nearest to the recorded ones; 0 if none is nearer."""
    from scipy.optimize import minimize_scalar  # a sixth of the imports of every process

    arguments = wide(call.arguments, np.float64)
    right = [g.value for g in expected(candidate, call)]

    def apart(exponent) -> float:
        """The mean distance from the bug's outputs over that from the right ones, at most 1."""
        other = replace(bug, wrong=bug.wrong.at(10.0**exponent))
        outputs = outcome_of(InProcess([other.found()]), bug.op, call, arguments, candidate).outputs
        if [np.shape(y) for y in outputs] != [y.shape for y in right]:
            return 1.0
        each = zip(call.outcome.outputs, outputs, right, strict=True)
        wrong = [(y, own, g, np.isfinite(y) & (y != g)) for y, own, g in each]
        shares = [(np.abs(y - own) / np.abs(y - g))[at] for y, own, g, at in wrong]
        shares = np.minimum(1, np.nan_to_num(np.concatenate(shares), nan=1.0))
        return float(shares.mean()) if shares.size else 1.0

    exponents = np.arange(-14, -1, 0.25)
    far = [apart(exponent) for exponent in exponents]
    best = int(np.argmin(far))
    if not far[best] < 1:
        return 0.0
    around = exponents[max(0, best - 1)], exponents[min(best + 1, len(far) - 1)]
    nearest: Any = minimize_scalar(apart, bounds=around, method="bounded")
    return 10.0 ** float(nearest.x)
