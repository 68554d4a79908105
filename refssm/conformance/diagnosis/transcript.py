"""What an implementation answered, call by call, while a check ran: for others to be tried on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.candidate import LOST, Broken, Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.judging.verdict import Verdict

CASES = 25  # as many as the check of a result has
ENOUGH = 6  # failing ones: further cases of the same check seldom tell more, but between two bugs


@dataclass(frozen=True)
class Call:
    """One call and what it came to; `arguments` are cotangents and arrays."""

    arguments: list[np.ndarray]
    statics: dict
    vjp: bool
    view: str
    again: bool
    outcome: Outcome


@dataclass(frozen=True)
class Episode:
    """The calls of one case, and the verdict of the check on it."""

    verdict: Verdict
    calls: list[Call]


class Listening:
    """A worker that keeps what it was asked and what was answered."""

    def __init__(self, worker, name: str):
        self.worker, self.name, self.calls = worker, name, []
        self.found = worker.found

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """The answer of the worker; calls of other operators are not kept."""
        outcome = self.worker.call(name, arrays, statics, **how)
        if name == self.name:
            kept = {key: how.get(key, usual) for key, usual in HOW.items()}
            self.calls.append(Call(list(arrays), dict(statics), **kept, outcome=outcome))
        return outcome

    def narrow(self, name: str, arrays, statics):
        """What the implementation makes of a case."""
        return self.worker.narrow(name, arrays, statics)


HOW: dict[str, Any] = {"vjp": False, "view": "", "again": False}


def episode(check: Check, candidate: Candidate, case: Case) -> Episode:
    """Judge one case once more, listening."""
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
    """The failing case, and the check's own cases until enough of them have failed.

    In a process that was lost nothing more is called.
    """
    heard = [episode(check, candidate, case)]
    lost = any(call.outcome.status in LOST for call in heard[0].calls)
    if check.strategy is None or lost:
        return heard

    def listen(drawn: Case) -> Verdict:
        if sum(not e.verdict.ok for e in heard) <= enough:
            heard.append(episode(check, candidate, drawn))
        return Verdict("-")

    sweep(strategy, listen, count=CASES, seed_=seed, shrink=False)
    return heard
