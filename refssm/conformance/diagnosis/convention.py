"""The convention in which a function is right that is wrong in the operator's own.

A kernel that takes gates in base 2, or normalises its keys itself, is not wrong: it is another
function. The adapters of `refssm.adapters` are tried alone, then several together; and what no
adapter can say, since its arrays have other types or shapes, is tried by calling the function in
another way. For each of them cases are drawn anew, in its own parameters, and the function is
judged; the first case excludes nearly all. A convention is told only if the function is right at
every case, and if it is the only one; that q is divided by √n or that k is are one here, unless the
function returns states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.linalg import norm

from refssm._declaration.adapted import adapted, fits
from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.adapters import (
    Adapter,
    base_2,
    linear_gate,
    log_dt,
    log_sigmoid,
    neg_exp,
    neg_softplus,
    normalised,
    oldest_first,
    scaled,
    sigmoid,
    transposed,
)
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.checks.checks import PROFILES, STATE, VALUE, Check, checks_of
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.judging.result import RIGHT_SO
from refssm.conformance.usage_error import UsageError

SMALL = (3, 2, 2, 2)  # sizes of a first case
ENOUGH = 5  # cases that must have been judged
NEAR = 0.25  # of the norm of an output; a first case is benign, and 16-bit programs err by a few %
NORMS = (1e-6, 1e-5, 1e-8, 1e-12, 1e-24)  # ε below the roots of published code; 1e-24: max(‖k‖, ε)
Convention = tuple[Adapter, ...]
SCALED_KEYS = "; scaled('k') in place of scaled('q') is right as well, outputs do not show which"


class Turn(NamedTuple):
    """Another way to call a function, in the order of an operator's arguments."""

    words: str
    say: str  # what its author writes
    inwards: Callable[[list[np.ndarray]], list[np.ndarray]]  # the arguments, as it takes them
    outwards: Callable[[list, tuple], tuple]  # the outputs, from the operator's arguments and its


OF_ARGUMENT = {
    "log_g": (linear_gate, base_2, log_sigmoid, neg_exp, neg_softplus),
    "log_w": (linear_gate, base_2, log_sigmoid, neg_exp, neg_softplus),
    "log_a": (linear_gate, base_2, log_sigmoid, neg_exp, neg_softplus),
    "log_f": (linear_gate, base_2, log_sigmoid),
    "beta": (sigmoid,),
    "S0": (transposed,),
    "S": (transposed,),
    "dt": (log_dt,),
    "A": (neg_exp, neg_softplus),
    "w": (neg_exp, neg_softplus),
}
WORDS = {
    "linear_gate": "`{name}` is the gate itself, not its logarithm",
    "base_2": "`{name}` is a logarithm in base 2",
    "log_sigmoid": "`{name}` comes before the logistic function, the gate is 1/(1 + e^−{name})",
    "neg_exp": "`{name}` is a logarithm, the function takes −e^{name}",
    "neg_softplus": "`{name}` comes before a softplus, the function takes −log(1 + e^{name})",
    "sigmoid": "`{name}` comes before the logistic function, the function takes 1/(1 + e^−{name})",
    "scaled": "`{name}` comes unscaled, the function divides it by √n itself",
    "normalised": "`{name}` comes with any norm, the function divides it by √(Σ {name}² + {eps:g})",
    "oldest_first": "the taps `{name}` come in the other order, the oldest first",
    "transposed": "the state `{name}` is the transpose",
    "log_dt": "`{name}` is a logarithm, the function takes e^{name}",
}


def conventions(op: Operator) -> list[Convention]:
    """The conventions that fit an operator: those of one group of arguments, then of more."""
    fitting = ([c for c in group if all(fits(op, a) for a in c)] for group in _groups(op))
    made = [[of for of in chosen if of] for chosen in product(*([(), *group] for group in fitting))]
    made.sort(key=len)
    return [sum(chosen, ()) for chosen in made[1:]]


def _groups(op: Operator) -> Iterator[list[Convention]]:
    """What may differ of a gate, of β, of queries and keys, of taps, of a state, of dt and A."""
    for name, makers in OF_ARGUMENT.items():
        if name in op.inputs:
            yield [(make(name),) for make in makers]
    if {"q", "k"} <= {*op.inputs}:
        alone = [(scaled("q"),), (scaled("k"),)]
        alone += [(normalised(name, eps),) for name in "qk" for eps in NORMS]
        both = [(normalised("q", eps), normalised("k", eps)) for eps in NORMS]
        yield alone + both + [(scaled("q"), *one) for one in both]
    elif {"r", "k"} <= {*op.inputs}:
        yield [(scaled("r"),)]
    elif dict(zip(op.inputs, op.input_dims, strict=True)).get("k") == ("t",):
        yield [(oldest_first("k"),)]


def turns(op: Operator) -> list[Turn]:
    """The other ways to call an operator: numbers of sequences, states without the oldest input."""
    dims = dict(zip(op.inputs, op.input_dims, strict=True))
    found = [_numbered(i) for i, d in enumerate(op.inputs.values()) if d.kind == "flag"]
    if dims.get("s0", dims.get("s")) == ("t",) and op.form in ("stateful", "step"):
        found.append(_without_oldest([*op.inputs][-1], "l" in dims["u"]))
    return found


def _numbered(i: int) -> Turn:
    """Argument i, which marks first steps, as the number of each step's sequence."""

    def inwards(arrays):
        return [*arrays[:i], np.cumsum(arrays[i], axis=-1, dtype=np.int32), *arrays[i + 1 :]]

    words = "`resets` is taken as the number of each step's sequence (seq_idx)"
    return Turn(words, "pass np.cumsum(resets, -1) in its place", inwards, lambda arrays, y: y)


def _without_oldest(name: str, timed: bool) -> Turn:
    """A state of t − 1 inputs: the oldest of t is not used."""

    def outwards(arrays, outputs):
        u, state = arrays[0] if timed else arrays[0][..., None], arrays[-1]
        y, last = outputs
        batch, t = last.shape[:-1], state.shape[-1]
        try:
            past = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (state, u)]
        except ValueError:  # it returns another shape
            return outputs
        oldest = np.concatenate(past, axis=-1)[..., u.shape[-1] : u.shape[-1] + 1]
        return y, np.concatenate([oldest, last], axis=-1)[..., -t:] if t else last

    return Turn(
        f"the state `{name}` has t − 1 inputs, without the oldest",
        f"pass {name}[..., 1:] in its place, and return the last t inputs",
        lambda arrays: [*arrays[:-1], np.ascontiguousarray(arrays[-1][..., 1:])],
        outwards,
    )


class Turned(Candidate):
    """A candidate that is called in another way."""

    turn: Turn

    @classmethod
    def of(cls, candidate: Candidate, turn: Turn) -> Turned:
        """A copy of a candidate."""
        other = cls(candidate.op, candidate.worker, candidate.offer)
        vars(other).update(vars(candidate), turn=turn)
        return other

    def outcome(self, arrays, statics, *, name="", **how) -> Outcome:
        """The outcome of one call in that way."""
        made = super().outcome(self.turn.inwards(list(arrays)), statics, name=name, **how)
        usable = made.status == "ok" and all(isinstance(y, np.ndarray) for y in made.outputs)
        if not usable or len(made.outputs) != len(self.op.outputs):
            return made
        return replace(made, outputs=self.turn.outwards(list(arrays), made.outputs))


def right_convention(
    check: Check, candidate: Candidate, seed: int, over: Callable[[], bool] = lambda: False
) -> str:
    """The only convention in which the function is right, in words, or "".

    `check` is the one of its values that failed. No other is tried once `over()` is true.
    """
    if check.rule is not VALUE:
        return ""
    right: list = []
    tried = [*turns(candidate.op), *conventions(candidate.op)]
    for convention in sorted(tried, key=_differences):
        apart = right and _differences(convention) > _differences(right[0][0])
        if apart:  # more differences are tried if none is right
            break
        if over():
            return ""
        count = 0
        with suppress(UsageError, ValueError):  # `only` may not know arguments of another shape
            count = _right_cases(check, candidate, convention, seed)
        if count:
            right.append((convention, count))
        if len({_but_for_scaled_keys(one) for one, _ in right}) > 1:
            return ""
    return _told(*right[0]) + SCALED_KEYS * (len(right) > 1) if right else ""


def _but_for_scaled_keys(convention: Convention | Turn) -> Convention | Turn:
    """The convention with `q` in place of `k` as what is divided by √n: only states show which."""
    if isinstance(convention, Turn):
        return convention
    return tuple(scaled("q") if adapter == scaled("k") else adapter for adapter in convention)


def _differences(convention: Convention | Turn) -> int:
    """In how many ways a convention differs from the operator's."""
    return 1 if isinstance(convention, Turn) else len(convention)


def _in(convention: Convention | Turn, candidate: Candidate) -> Candidate:
    """The candidate in a convention."""
    if isinstance(convention, Turn):
        return Turned.of(candidate, convention)
    other = copy(candidate)
    other.op = adapted(candidate.op, convention)
    other.offer = candidate.offer._replace(adapters=(*candidate.offer.adapters, *convention))
    return other


def _right_cases(check: Check, candidate: Candidate, convention, seed: int) -> int:
    """How many cases were judged, if the function is right at all of them; else 0."""
    other = _in(convention, candidate)
    made = checks_of(other.op, PROFILES["quick"], [check.dtype], vjp=False)
    counts = []
    for one in (c for c in made if c.rule in (VALUE, STATE)):
        counts.append(_judged(one, other, seed))
        if counts[-1] < ENOUGH:
            return 0
    return min(counts)


def _judged(check: Check, candidate: Candidate, seed: int) -> int:
    """How many cases of a check were judged, if the candidate is right at all of them; else 0."""
    judge_case = check.judging(candidate)
    first = ordinary_case(candidate.op, check.dtype, SMALL, between=candidate.between)
    with suppress(Declined):
        if _far(candidate, first) or not judge_case(first).ok:
            return 0
    drawing = check.cases(between=candidate.between)
    swept = sweep(drawing, judge_case, count=check.count, seed_=seed, several=False)
    return 0 if swept.failures else swept.judged


def _far(candidate: Candidate, case: Case) -> bool:
    """True if an output is nowhere near the right one, whatever its rounding errors.

    Bounds of these take thirty times as long, and there are hundreds of conventions.
    """
    try:
        arrays, statics, outputs = candidate.answer(case)
    except Broken:
        return True
    wider = [a if a.dtype.kind in "biu" else a.astype(np.result_type(a, "f8")) for a in arrays]
    with np.errstate(all="ignore"):
        wanted = several(candidate.op.reference(*wider, **statics))
        apart = [(norm(y - w), norm(w)) for y, w in zip(outputs, wanted, strict=True)]
    return any(0 < size < np.inf and not error <= NEAR * size for error, size in apart)


def _told(convention: Convention | Turn, count: int) -> str:
    if isinstance(convention, Turn):
        return f"{convention.words}{RIGHT_SO} in {count} of {count} cases; {convention.say}"
    words = "; ".join(WORDS[a.name].format(name=a.argument, eps=a.eps) for a in convention)
    adapters = ", ".join(map(repr, convention)) + "," * (len(convention) == 1)
    return f"{words}{RIGHT_SO} in {count} of {count} cases; declare adapters=({adapters})"
