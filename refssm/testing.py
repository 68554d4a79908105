"""For people who bring an implementation: which operator a function is, what it supports."""

from collections.abc import Callable, Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]
TYPES = ("float32", "float64", "complex64", "complex128")


def implements(
    name: str,
    *,
    only: Callable[[Arrays], Arrays | None] | None = None,
    dtypes: tuple[str, ...] = (),
):
    """Mark a function as an implementation of the operator `name`, whatever it is called.

    `only` takes the arguments of a case by name and returns those the kernel supports (a length
    cut to a multiple of 64, a decay made constant), or None to decline the case. Raising
    NotImplementedError in a call declines it too. `dtypes` are the types it is for; without them
    it is asked.

    >>> @implements("linear_scan", only=lambda x: x if x["a"].shape[-2] % 64 == 0 else None)
    ... def my_scan(a, b): ...
    """
    from refssm.catalog import OPERATORS  # the catalog loads every family

    if name not in {op.name for op in OPERATORS}:
        known = ", ".join(op.name for op in OPERATORS)
        raise ValueError(f"implements: `{name}` is no operator of the catalog ({known})")

    for dtype in dtypes:
        if dtype not in TYPES:
            raise ValueError(f"implements: no type {dtype!r} is judged ({', '.join(TYPES)})")

    def mark(function):
        function.__refssm__ = {"name": name, "only": only, "dtypes": tuple(dtypes)}
        return function

    return mark
