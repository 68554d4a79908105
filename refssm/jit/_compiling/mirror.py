"""The decorator of every mirror in `refssm.jit`."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from refssm._declaration.operator import COMPILED_TYPES, Operator

P = ParamSpec("P")
R = TypeVar("R")


def mirror(op: Operator) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function the mirror of `op`, or of its VJP: arguments are checked as the reference's.

    The docstring says of which function it is the mirror; what the function itself says follows.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        op.describe_mirror(function)
        check = op.checked if function.__name__ == op.name else op.checked_vjp
        return check(function, COMPILED_TYPES)

    return decorate
