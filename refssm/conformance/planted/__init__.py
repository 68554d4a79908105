"""Planted bugs, one per class of mistake seen in public code; each names the check that sees it.

They judge the judge: a deviation that its check lets pass is a defect of the judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from refssm.catalog import families
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found


@dataclass(frozen=True)
class Deviation:
    """One wrong implementation, and the single check that catches it."""

    op: str
    name: str
    caught_by: str  # "value[float32]": check and type
    what: str  # in a few words, as a report may say it
    forward: Callable
    vjp: Callable | None = None

    def found(self) -> Found:
        """As if it had been found in somebody's file."""
        return Found(operator_named(self.op), self.forward, self.vjp)

    def __str__(self):
        return f"{self.op}-{self.name}"


def deviations() -> list[Deviation]:
    """All of them, family by family."""
    modules = (import_module(f"{__name__}.{family}") for family in families())
    return [deviation for module in modules for deviation in module.DEVIATIONS]
