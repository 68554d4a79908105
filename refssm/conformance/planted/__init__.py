"""Planted bugs, one per kind of mistake in public code; each names the check that catches it.

They test the judge: if the check lets a bug pass, the judge has a defect. A run needs them, too: a
failure is compared with them, and the one with the same outputs is named in the report.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from refssm.catalog import families
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found


@dataclass(frozen=True)
class PlantedBug:
    """One mistake in one operator, and the single check that catches it."""

    op: str
    name: str
    caught_by: str  # "value[float32]": check and type
    what: str  # in a few words, as a report may say it
    wrong: Callable  # takes the right program, or the right VJP, and then its arguments

    @property
    def of_gradient(self) -> bool:
        """True if the VJP is wrong and the forward program right."""
        return self.caught_by.startswith("gradient")

    def make(self, right: Callable, right_vjp: Callable) -> tuple[Callable, Callable | None]:
        """The bug planted in an implementation: its forward program, and the VJP if it is wrong."""
        wrong = self.wrong

        def planted(*args, **statics):
            return wrong(right_vjp if self.of_gradient else right, *args, **statics)

        return (right, planted) if self.of_gradient else (planted, None)

    @cached_property
    def in_reference(self) -> tuple[Callable, Callable | None]:
        """The bug planted in the reference."""
        op = operator_named(self.op)
        return self.make(op.reference, op.bare_vjp if self.of_gradient else op.reference)

    @property
    def forward(self) -> Callable:
        """The forward program, with the bug unless the VJP is wrong."""
        return self.in_reference[0]

    @property
    def vjp(self) -> Callable | None:
        """The wrong VJP, or None."""
        return self.in_reference[1]

    def found(self) -> Found:
        """The bug in the reference, as if it had been found in a file."""
        return Found(operator_named(self.op), *self.in_reference)

    def __str__(self):
        return f"{self.op}-{self.name}"


def bugs_of(family: str) -> list[PlantedBug]:
    """The planted bugs of one family; imports no other family."""
    return import_module(f"{__name__}.{family}").BUGS


def planted_bugs() -> list[PlantedBug]:
    """All planted bugs, by family."""
    return [bug for family in families() for bug in bugs_of(family)]
