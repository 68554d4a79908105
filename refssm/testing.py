"""For people who bring an implementation: which operator a function is, what it supports.

`implements` marks a function, `Budget` says how exact it means to be, `check` judges it inside
anybody's test suite.
"""

from collections.abc import Callable
from typing import Any

from refssm._implements import (
    ARITHMETICS,
    FRAMEWORKS,
    TYPES,
    Arrays,
    Budget,
    Declaration,
    Marked,
    declared_as,
    implements,
)

__all__ = [
    "ARITHMETICS",
    "FRAMEWORKS",
    "TYPES",
    "Arrays",
    "Budget",
    "Declaration",
    "Marked",
    "check",
    "implements",
]


def check(
    name: str,
    function: Callable,
    *,
    vjp: Callable | bool | None = None,
    profile: str = "default",
    seed: int = 0,
    checks: tuple[str, ...] = (),
    **declared: Any,
) -> None:
    """Judge `function` as an implementation of `name`; AssertionError with the report if it fails.

    `vjp` is its gradient by hand, or True for that of the framework's autodiff; `checks` narrows to
    some of `refssm show`'s checks. What `implements` takes may be said here too, and is added to
    what the function declares. It runs in this process, so a debugger stops in it.
    ValueError where nothing can be judged: no such operator, check or type, all cases declined.

    >>> def test_my_scan():
    ...     check("linear_scan", my_scan, framework="torch", vjp=True)
    """
    from refssm.conformance.running.in_process import judged_in_process

    __tracebackhide__ = True  # pytest shows the test, not us
    if isinstance(vjp, bool):
        declared, vjp = {**declared, "vjp": vjp}, None
    own = getattr(function, "__refssm__", None)
    if isinstance(own, Declaration):
        said = {f: getattr(own, f) for f in Declaration.__dataclass_fields__ if f != "name"}
        declared = {**said, **declared}
    own = declared_as(name, declared)
    judged_in_process(name, function, vjp, own, profile=profile, seed=seed, checks=tuple(checks))
