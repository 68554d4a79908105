"""Record the calls of an implementation during a check, and their outcomes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.judging.expected import hash_of
from refssm.conformance.judging.verdict import Verdict

CASES = 25  # as many as the check `value` has
ENOUGH = 6  # failing cases: more of them only help to choose between two bugs


@dataclass(frozen=True)
class Call:
    """One call and its outcome; `arguments` are the cotangents, if any, and the arrays.

    `after`: the values that the same arguments had in an earlier call, if there was one.
    """

    arguments: list[np.ndarray]
    statics: dict
    vjp: bool
    view: str
    after: list[np.ndarray] | None
    outcome: Outcome


def key_of_call(arguments, statics: Mapping, vjp: bool) -> Hashable:
    """The same for two calls only if they have the same arguments, static ones too."""
    return vjp, tuple(sorted(statics.items())), tuple(hash_of(a) for a in arguments)


@dataclass(frozen=True)
class Episode:
    """The calls of one case, and the check's verdict on it."""

    verdict: Verdict
    calls: list[Call]


class Listening:
    """A worker that records its calls and their outcomes."""

    def __init__(self, worker, name: str):
        self.worker, self.name, self.calls = worker, name, []
        self.found = worker.found

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Call the worker and record the outcome, unless it is of another operator."""
        outcome = self.worker.call(name, arrays, statics, **how)
        if name == self.name:
            kept = {key: how.get(key, usual) for key, usual in HOW.items()}
            self.calls.append(Call(list(arrays), dict(statics), **kept, outcome=outcome))
        return outcome

    def narrow(self, name: str, arrays, statics):
        """The case as the implementation's `only` projects it."""
        return self.worker.narrow(name, arrays, statics)


HOW: dict[str, Any] = {"vjp": False, "view": "", "after": None}


def episode(check: Check, candidate: Candidate, case: Case) -> Episode:
    """Judge one case once more and record its calls."""
    heard = copy(candidate)
    listening = heard.worker = Listening(candidate.worker, candidate.op.name)
    try:
        verdict = check.judge_case(heard, case)
    except Broken as broken:
        verdict = broken.verdict
    except Declined:
        verdict = Verdict("-")
    return Episode(verdict, listening.calls)


def episodes(
    check: Check, candidate: Candidate, case: Case, strategy, seed: int, enough=ENOUGH
) -> list[Episode]:
    """The failing case, and further cases of the check until enough of them have failed.

    If the child process died in the failing case, that is the only one.
    """
    heard = [episode(check, candidate, case)]
    lost = any(call.outcome.died for call in heard[0].calls)
    if check.strategy is None or lost:
        return heard

    def listen(drawn: Case) -> Verdict:
        if sum(not e.verdict.ok for e in heard) <= enough:
            heard.append(episode(check, candidate, drawn))
        return Verdict("-")

    sweep(strategy, listen, count=CASES, seed_=seed, shrink=False)
    return heard
