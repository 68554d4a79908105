"""Honest implementations: right, each computed in another way; the judge must reject none."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from refssm._declaration.implements import Budget, Declaration
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS, families
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found


@dataclass(frozen=True)
class Honest:
    """One honest implementation of one operator."""

    op: str
    name: str
    forward: Callable
    vjp: Callable | None = None
    only: Callable | None = None  # projects a case onto what the method is for
    needs: str = ""  # a library that may be absent
    accuracy: Budget | None = None  # what its method is declared to attain
    mirror: bool = False  # whether it is refssm's own, compiled
    ftz: bool = False  # whether it flushes subnormal numbers to zero

    def found(self) -> Found:
        """The implementation as if it had been found in a file."""
        declared = Declaration(only=self.only, accuracy=self.accuracy or Budget(), ftz=self.ftz)
        return Found(operator_named(self.op), self.forward, self.vjp, declared=declared)

    @property
    def absent(self) -> bool:
        """True if the library that it needs is not installed."""
        return bool(self.needs) and find_spec(self.needs) is None

    def __str__(self):
        return f"{self.op}-{self.name}"


@cache
def reference(op: Operator) -> Honest:
    """The reference itself, as the judge calls it."""
    return Honest(op.name, "reference", op.reference, op.bare_vjp if op.differentiable else None)


@cache
def mirror(op: Operator, name: str = "numba") -> Honest:
    """The mirror of `refssm.jit` as an `Honest`, its library as name; imported at first use."""
    return Honest(
        op.name,
        name,
        lambda *args, **statics: op.implementation("jit")(*args, **statics),
        lambda *args, **statics: op.vjp("jit")(*args, **statics),
        mirror=True,
    )


def implementations() -> list[Honest]:
    """All of them by operator: the reference, the mirror, and those of the family's file.

    A family lists a mirror only to give it another name than Numba's.
    """
    listed = defaultdict(list)
    for family in families():
        for honest in import_module(f"{__name__}.{family}").IMPLEMENTATIONS:
            listed[honest.op].append(honest)
    return [honest for op in OPERATORS for honest in _of_operator(op, listed[op.name])]


def _of_operator(op: Operator, listed: list[Honest]) -> list[Honest]:
    no_row = "jit" in op.lacks or any(honest.mirror for honest in listed)
    return [reference(op), *([] if no_row else [mirror(op)]), *listed]
