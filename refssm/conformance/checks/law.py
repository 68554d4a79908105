"""What a check asks of an implementation, as records: everything the judge knows of one rule.

To add a law, write its function and its record in one file, and list the record in `laws.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np

from refssm._operator import Operator
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.ranges import Where
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.judging.verdict import Verdict

Judge = Callable[[Candidate, Case], Verdict]
JudgeArrays = Callable[[Candidate, list[np.ndarray], dict], Verdict]
Arguments = tuple[list[np.ndarray], dict]
NOTHING = Verdict("-")  # where a law has nothing to look at


def no_arguments(op: Operator) -> Collection[str]:
    """None: the law calls with the arguments of the case, or with parts of them."""
    del op
    return ()


def no_other(op: Operator) -> str:
    """None: the law calls no other operator."""
    del op
    return ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a check asks of an implementation, whatever the operator and the type."""

    name: str
    sentence: str  # what it asks, as the documentation prints it
    at: JudgeArrays | None = None  # judges one call on given arrays, where one call is enough
    failing: Callable[[Candidate, Case], Arguments] = Candidate.given  # the arguments that fail
    exact: bool = False  # also asks for exact integers
    special: bool = False  # calls with NaN and infinity, where no entry has an allowed error
    of_gradient: bool = False  # judges the VJP
    of_memory: bool = False  # asks where arrays lie in memory, which no file can tell
    between_calls: bool = False  # looks for results that change from call to call

    def missing(self, op: Operator, found: Iterable[str]) -> str:
        """Why it cannot run where only the operators `found` are implemented, or ""."""
        del op, found
        return ""

    def left_by(self, op: Operator, where: Where) -> str:
        """Why it would leave the ranges that the author narrowed, or ""."""
        del op, where
        return ""


@dataclass(frozen=True, kw_only=True)
class Graded(Rule):
    """The rule that outputs, or gradients, are near enough to the true ones."""

    hold: Judge


@dataclass(frozen=True, kw_only=True)
class Conduct(Rule):
    """A rule about how a function treats its arguments; one ordinary case is enough."""

    hold: Judge
    without_arguments: bool = False  # applies also to an operator that takes no arrays


@dataclass(frozen=True, kw_only=True)
class Law(Rule):
    """A rule that follows from an operator's traits, without knowing the values."""

    hold: Judge
    owed: Callable[[Operator], bool]  # whether an operator must obey it
    tame: bool = False  # draws cases without extremes only
    touches: Callable[[Operator], Collection[str]] = no_arguments  # gets other values from the law
    cuts: bool = False  # shortens the leading size
    halves: tuple[str, ...] = ()  # the 16-bit types in which it is not asked
    needs: Callable[[Operator], str] = no_other  # the other operator that it calls

    def missing(self, op: Operator, found: Iterable[str]) -> str:
        """Why it cannot run where only the operators `found` are implemented, or ""."""
        other = self.needs(op)
        return f"needs {other}" if other and other not in found else ""

    def left_by(self, op: Operator, where: Where) -> str:
        """Why it would leave the ranges that the author narrowed, or ""."""
        touched = self.touches(op)
        inside = [argument for argument in op.inputs if argument in where.values]
        others = [argument for argument in where.values if argument not in op.inputs]
        for argument in [*inside, *others]:  # the others belong to an operator that the law calls
            if argument in touched:
                return f"tries other values of `{argument}`, which `where` limits"
        if self.cuts and op.leading in where.sizes:
            return f"tries other sizes {op.leading}, which `where` limits"
        return ""


def hold(rule: Law | Conduct, candidate: Candidate, case: Case) -> Verdict:
    """The verdict of a law or a conduct check; a call without a result is its verdict."""
    try:
        return rule.hold(candidate, case)
    except Broken as broken:
        return broken.verdict
