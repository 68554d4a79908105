"""For people who bring an implementation: which operator a function is, what it supports."""

from collections.abc import Callable, Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]


def implements(name: str, *, only: Callable[[Arrays], Arrays | None] | None = None):
    """Mark a function as an implementation of the operator `name`, whatever it is called.

    `only` takes the arguments of a case by name and returns those the kernel supports (a length
    cut to a multiple of 64, a decay made constant), or None to decline the case. Raising
    NotImplementedError in a call declines it too.

    >>> @implements("linear_scan", only=lambda x: x if x["a"].shape[-2] % 64 == 0 else None)
    ... def my_scan(a, b): ...
    """
    from refssm.catalog import OPERATORS  # the catalog loads every family

    if name not in {op.name for op in OPERATORS}:
        known = ", ".join(op.name for op in OPERATORS)
        raise ValueError(f"implements: `{name}` is no operator of the catalog ({known})")

    def mark(function):
        function.__refssm__ = {"name": name, "only": only}
        return function

    return mark
