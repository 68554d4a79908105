"""The convention in which a function is right that is wrong in the operator's own.

A kernel that takes gates in base 2, or normalises its keys itself, is not wrong: it is another
function. The adapters of `refssm.adapters` are tried alone, then several together. For each of
them cases are drawn anew, in its own parameters, and the function is judged; the first case
excludes nearly all. A convention is told only if the function is right at every case, and if it is
the only one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from itertools import product

from refssm._declaration.adapted import adapted, fits
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
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import PROFILES, VALUE, Check, checks_of
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.judging.result import RIGHT_SO

SECONDS = 10.0  # for all conventions
SMALL = (3, 2, 2, 2)  # sizes of a first case
ENOUGH = 5  # cases that must have been judged
NORMS = (1e-6, 1e-5, 1e-8, 1e-12, 1e-24)  # ε below the roots of published code; 1e-24: max(‖k‖, ε)
Convention = tuple[Adapter, ...]

OF_ARGUMENT = {
    "log_g": (linear_gate, base_2, log_sigmoid, neg_exp, neg_softplus),
    "log_a": (linear_gate, base_2, log_sigmoid, neg_exp, neg_softplus),
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
    elif dict(zip(op.inputs, op.input_dims, strict=True)).get("k") == ("t",):
        yield [(oldest_first("k"),)]


def right_convention(check: Check, candidate: Candidate, seed: int) -> str:
    """The only convention in which the function is right, in words, or "".

    `check` is the one of its values that failed.
    """
    if check.rule is not VALUE:
        return ""
    right, until = [], time.monotonic() + SECONDS
    for convention in conventions(candidate.op):
        apart = right and len(convention) > len(right[0][0])  # more are tried if none is right
        if apart or time.monotonic() > until:
            break
        if count := _right_cases(check, candidate, convention, seed):
            right.append((convention, count))
        if len(right) > 1:
            return ""
    return _told(*right[0]) if right else ""


def _right_cases(check: Check, candidate: Candidate, convention: Convention, seed: int) -> int:
    """How many cases were judged, if the function is right at all of them; else 0."""
    other = copy(candidate)
    other.op = adapted(candidate.op, convention)
    other.offer = candidate.offer._replace(adapters=(*candidate.offer.adapters, *convention))
    made = checks_of(other.op, PROFILES["quick"], [check.dtype], vjp=False)
    of_values = next(c for c in made if c.rule is VALUE)
    judge_case = of_values.judging(other)
    first = ordinary_case(other.op, check.dtype, SMALL, between=other.between)
    with suppress(Declined):
        if not judge_case(first).ok:
            return 0
    drawing = of_values.cases(between=other.between)
    how = {"count": of_values.count, "seed_": seed, "several": False}
    swept = sweep(drawing, judge_case, **how)
    return 0 if swept.failures or swept.judged < ENOUGH else swept.judged


def _told(convention: Convention, count: int) -> str:
    words = "; ".join(WORDS[a.name].format(name=a.argument, eps=a.eps) for a in convention)
    adapters = ", ".join(map(repr, convention)) + "," * (len(convention) == 1)
    return f"{words}{RIGHT_SO} in {count} of {count} cases; declare adapters=({adapters})"
