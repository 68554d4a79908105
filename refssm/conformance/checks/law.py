"""Rules as records: all that the judge knows of one check, for any operator and type.

To add a law, decorate its function with `law`, and list it in `laws.py`.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.ranges import Where
from refssm.conformance.judging.verdict import Verdict

Judge = Callable[[Candidate, Case], Verdict]
JudgeArrays = Callable[[Candidate, list[np.ndarray], dict], Verdict]
Arguments = tuple[list[np.ndarray], dict]
NOTHING = Verdict("-")  # the verdict where a law does not apply


def no_arguments(op: Operator) -> Collection[str]:
    """No arguments: the law uses those of the case or parts of them."""
    del op
    return ()


def no_other(op: Operator) -> str:
    """No other operator: the law calls none."""
    del op
    return ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One requirement on implementations, for any operator and type."""

    name: str
    sentence: str  # the requirement, as the documentation prints it
    at: JudgeArrays | None = None  # judges one call on given arrays, if one call is enough
    failing: Callable[[Candidate, Case], Arguments] = Candidate.given  # the arguments that fail
    exact: bool = False  # also requires exact results for exact integers
    special: bool = False  # calls with NaN and infinity: single entries have no tolerance
    of_gradient: bool = False  # judges the VJP
    of_memory: bool = False  # about memory addresses, unknown for results from files
    of_presets: bool = False  # draws presets too
    between_calls: bool = False  # finds results that change between calls

    def missing(self, op: Operator, found: Iterable[str]) -> str:
        """Why the rule cannot run if only the operators `found` are implemented, or ""."""
        del op, found
        return ""

    def left_by(self, op: Operator, where: Where) -> str:
        """Why the rule would leave the ranges of `--where`, or ""."""
        del op, where
        return ""


@dataclass(frozen=True, kw_only=True)
class Graded(Rule):
    """A rule that compares outputs or gradients with the exact ones."""

    hold: Judge


@dataclass(frozen=True, kw_only=True)
class Conduct(Rule):
    """A rule about how a function treats its arguments; one ordinary case is enough."""

    hold: Judge
    without_arguments: bool = False  # also for operators without array inputs
    owed: Callable[[Operator], bool] = lambda op: True  # True for operators to which it applies
    every_type: bool = False  # in later types with a small case: their kernels are others


@dataclass(frozen=True, kw_only=True)
class Law(Rule):
    """A rule that follows from an operator's traits and needs no exact values."""

    hold: Judge
    owed: Callable[[Operator], bool]  # True for operators to which the law applies
    tame: bool = False  # draws only cases without extreme values
    # arguments whose values the law changes
    touches: Callable[[Operator], Collection[str]] = no_arguments
    cuts: bool = False  # shortens the leading size
    halves: tuple[str, ...] = ()  # 16-bit types in which it is not checked
    needs: Callable[[Operator], str] = no_other  # the other operator that the law calls, or ""
    most: int = 99  # cases at most: those of a profile, if they are fewer

    def missing(self, op: Operator, found: Iterable[str]) -> str:
        """Why the law cannot run if only the operators `found` are implemented, or ""."""
        other = self.needs(op)
        return f"needs {other}" if other and other not in found else ""

    def left_by(self, op: Operator, where: Where) -> str:
        """Why the law would leave the ranges of `--where`, or ""."""
        touched = self.touches(op)
        inside = [argument for argument in op.inputs if argument in where.values]
        others = [argument for argument in where.values if argument not in op.inputs]
        for argument in [*inside, *others]:  # the others are arguments of `needs`
            if argument in touched:
                return f"tries other values of `{argument}`, which `where` limits"
        if self.cuts and op.leading in where.sizes:
            return f"tries other sizes {op.leading}, which `where` limits"
        return ""


def law(**how) -> Callable[[Judge], Law]:
    """A decorator: a law with the function's name, whose sentence begins its docstring."""
    return lambda hold: Law(**_told(hold), **how)


def conduct(**how) -> Callable[[Judge], Conduct]:
    """The same for a rule about arguments."""
    return lambda hold: Conduct(**_told(hold), **how)


def _told(hold: Judge) -> dict[str, Any]:
    sentence = (getdoc(hold) or "").partition("\n\n")[0]
    return {"name": hold.__name__, "sentence": " ".join(sentence.split()), "hold": hold}


def hold(rule: Law | Conduct, candidate: Candidate, case: Case) -> Verdict:
    """The verdict of a law or a conduct check; a failed call becomes its verdict."""
    try:
        return rule.hold(candidate, case)
    except Broken as broken:
        return broken.verdict
