"""Honest implementations: right, each computed in another way; the judge must never reject one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from refssm._implements import Budget, Declaration
from refssm.catalog import families
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

    def found(self) -> Found:
        """As if it had been found in somebody's file."""
        declared = Declaration(only=self.only, accuracy=self.accuracy or Budget())
        return Found(operator_named(self.op), self.forward, self.vjp, declared=declared)

    @property
    def absent(self) -> bool:
        """Whether the library it needs is not installed."""
        return bool(self.needs) and find_spec(self.needs) is None

    def __str__(self):
        return f"{self.op}-{self.name}"


def implementations() -> list[Honest]:
    """All of them, family by family."""
    modules = (import_module(f"{__name__}.{family}") for family in families())
    return [honest for module in modules for honest in module.IMPLEMENTATIONS]
