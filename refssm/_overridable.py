"""Functions for which another array type may bring its own rule, by NumPy's protocol (NEP 18)."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def overridable(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, unless an argument is an array of another library's, whose own rule then runs.

    The judge's tracked arrays bring error bounds in this way, where those of the operations one by
    one would be far too large.
    """

    @wraps(function)
    def unless_overridden(*args: P.args, **keywords: P.kwargs) -> R:
        for x in (*args, *keywords.values()):
            own_rule = getattr(x, "__array_function__", None)
            if own_rule is not None and not isinstance(x, np.ndarray):
                return own_rule(unless_overridden, (type(x),), args, keywords)
        return function(*args, **keywords)

    return unless_overridden
