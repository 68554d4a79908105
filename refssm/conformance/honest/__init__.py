"""Honest implementations: right, each computed in another way; the judge must never reject one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from refssm._operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.plugin import Found

FAMILIES = ("cauchy", "scan")


@dataclass(frozen=True)
class Honest:
    """One honest implementation of one operator."""

    op: str
    name: str
    forward: Callable
    vjp: Callable | None = None

    def found(self) -> Found:
        """As if it had been found in somebody's file."""
        return Found(operator(self.op), self.forward, self.vjp)

    def __str__(self):
        return f"{self.op}-{self.name}"


def operator(name: str) -> Operator:
    """The catalog's operator of that name."""
    return next(op for op in OPERATORS if op.name == name)


def implementations() -> list[Honest]:
    """All of them, family by family."""
    modules = (import_module(f"{__name__}.{family}") for family in FAMILIES)
    return [honest for module in modules for honest in module.IMPLEMENTATIONS]
