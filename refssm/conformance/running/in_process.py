"""Judge inside an author's test suite: `refssm.testing.check` and the pytest items."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from refssm._implements import Declaration
from refssm.catalog import resumed
from refssm.conformance.calling.attributes import marks_of, vars_of
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.worker import InProcess
from refssm.conformance.checks.checks import NAMES, PROFILES
from refssm.conformance.judging.certificate import refuse_if_wrong
from refssm.conformance.judging.result import Result
from refssm.conformance.report import lines
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.usage_error import UsageError


def judged_in_process(
    name: str,
    function: Callable,
    vjp: Callable | None,
    declared: Declaration,
    *,
    profile: str,
    seed: int,
    checks: tuple[str, ...],
    allow_thin: bool,
) -> None:
    """Judge one function in this process.

    Raises AssertionError if it fails, ValueError if nothing could be judged.
    """
    __tracebackhide__ = True
    try:
        session = session_of(name, function, vjp, declared, profile, seed, checks, (), allow_thin)
        results = list(results_of(session))
    except UsageError as error:
        raise ValueError(f"check: {error}") from None
    bad = [result for result in results if result.failed]
    if bad:
        raise AssertionError("\n" + text(bad))
    if not any(result.verdict == "pass" or result.tolerated for result in results):
        raise ValueError(f"check: nothing was judged\n{text(results)}")


def session_of(
    name: str,
    function: Callable,
    vjp: Callable | None,
    declared: Declaration,
    profile: str = "default",
    seed: int = 0,
    checks: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    allow_thin: bool = False,
) -> Session:
    """A session for one function of this process; UsageError for an unknown profile or check."""
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; wanted one of {', '.join(PROFILES)}")
    for check in checks:
        if check not in NAMES:
            raise UsageError(f"unknown check {check!r}; wanted one of {', '.join(NAMES)}")
    refuse_if_wrong()
    found = [Found(operator_named(name), function, vjp, declared=declared)]
    found += _resumed(name, function)
    called = getattr(function, "__name__", type(function).__name__)
    how: dict = {"only_checks": checks, "types": types, "allow_thin": allow_thin}
    asked = Settings(profile=profile, seed=seed, folder=None, **how)
    return Session(InProcess(found), called, asked)


def _resumed(name: str, function: Callable) -> list[Found]:
    """The implementation of the operator's resumed form in the same module, for the law `split`."""
    other = resumed(operator_named(name))
    wanted = {other.name} - {name} if other else set()
    module = sys.modules.get(getattr(function, "__module__", ""), None)
    for other in vars(module).values() if module else ():
        declared = vars_of(other).get("__refssm__") or _marked(other)
        if isinstance(declared, Declaration) and declared.name in wanted:
            op = operator_named(declared.name)
            return [Found(op, other, None, judged=False, declared=declared)]
    return []


def _marked(function) -> Declaration | None:
    """The declaration in a function's pytest mark, or None."""
    ours = marks_of(function)
    if not ours or not ours[0].args:
        return None
    fields = {*Declaration.__dataclass_fields__} - {"vjp"}
    said = {key: value for key, value in ours[0].kwargs.items() if key in fields}
    return Declaration(ours[0].args[0], **said)


def text(results: Iterable[Result]) -> str:
    """Results as the command prints them, without colours."""
    told = []
    for result in results:
        told.append(f"{lines.word(result)} {result.id}   {lines.facts(result)}")
        told += [f"  {line}" for line in lines.below(result)]
    return "\n".join(told)
