"""Arguments that a program keeps within a limit of its own, found by calling it.

If an argument above c gives what c gives, then cutting it off at any t ≥ c changes no bit of the
outputs. Bisection finds the smallest such t. The limit is told only if the reference, with the
argument so cut off, gives the recorded outputs, as for a planted bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from refssm._adapted import adapters_of
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.limits import may_hold
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.diagnosis.suspects import distance, everywhere
from refssm.conformance.diagnosis.transcript import Call, Episode, gave_arrays, refused
from refssm.conformance.planted import PlantedBug

TRIED = 3  # failing calls, the smallest first
LARGEST = 100_000  # numbers in a call: each limit takes about a hundred calls
DOUBLINGS = 40  # how far from its largest number an argument may be cut off
HALVINGS = 64


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


def _size(call: Call) -> int:
    return sum(a.size for a in call.arguments)


def _limits(check: Check, candidate: Candidate, call: Call) -> Iterator[PlantedBug]:
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


def _limit(candidate: Candidate, call: Call, i: int, change, extreme, side: Side) -> float | None:
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
