"""For people who bring an implementation: declare its operator and what it supports, and judge it.

`implements` marks a function, `Budget` declares its accuracy, `check` judges it inside any test
suite.
"""

from collections.abc import Callable
from typing import Any

from refssm._declaration.implements import (
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
    allow_thin: bool = False,
    **declared: Any,
) -> None:
    """Judge `function` as an implementation of `name`; AssertionError with the report if it fails.

    The first line of the error has the worst failure; a line `again:` under each failure has the
    call that judges only that check.

    `vjp` is its gradient as a function, or True for the framework's autodiff; `checks` limits the
    run to some of the checks that `refssm show` lists. A check that could judge fewer than half of
    its cases is a failure too, unless `allow_thin`. Keywords of `implements` are accepted here
    too, and add to or replace what the function declares. It runs in this process, so a debugger
    can stop in it. Raises ValueError if nothing can be judged: no such operator, check or type, or
    all cases declined.

    >>> def test_my_scan():
    ...     check("linear_scan", my_scan, framework="torch", vjp=True)
    """
    from refssm.conformance.running.session import judged_in_process

    __tracebackhide__ = True  # pytest shows the test, not this function
    how = {"profile": profile, "seed": seed, "checks": tuple(checks), "allow_thin": allow_thin}
    given = {"vjp": vjp, "profile": profile, "seed": seed, "allow_thin": allow_thin, **declared}
    if isinstance(vjp, bool):
        declared, vjp = {**declared, "vjp": vjp}, None
    own = getattr(function, "__refssm__", None)
    if isinstance(own, Declaration):
        said = {f: getattr(own, f) for f in Declaration.__dataclass_fields__ if f != "name"}
        declared = {**said, **declared}
    try:
        own = declared_as(name, declared)
    except ValueError as error:
        raise ValueError(f"check: {f'{error}'.removeprefix('implements: ')}") from None
    judged_in_process(name, function, vjp, own, **how, given=given)
