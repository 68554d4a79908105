"""Judge inside an author's test suite: `refssm.testing.check` and the pytest items."""

import sys
from collections.abc import Callable, Iterable, Mapping

from refssm._declaration.implements import Declaration, unknown
from refssm.catalog import resumed
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found, declared
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.ranges import parse
from refssm.conformance.checks.checks import NAMES, PROFILES
from refssm.conformance.judging.certificate import refuse_if_wrong
from refssm.conformance.judging.result import Result
from refssm.conformance.report import lines
from refssm.conformance.report.verdict import headline, severity
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.usage_error import UsageError

# the defaults of `refssm.testing.check`
USUAL = {"vjp": None, "profile": "default", "seed": 0, "allow_thin": False}


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
    given: Mapping,
) -> None:
    """Judge one function in this process; `given` are the arguments of `refssm.testing.check`.

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
        worst = min(bad, key=severity)
        more = f" ({len(bad)} checks fail)" if len(bad) > 1 else ""
        told = [f"{headline(worst, worst.id)}{more}"]
        for first, *others in _alike(bad):
            told.append(text([first]))
            if others:
                ids = ", ".join(f"{r.check}[{r.dtype}]" for r in others)
                told.append(f"  the same in {len(others)} more: {ids}")
            told.append(f"  again: {_again(name, function, first, given)}")
        raise AssertionError("\n".join(told))
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
    where: tuple[str, ...] = (),
) -> Session:
    """A session for one function of this process; UsageError for an unknown profile or check, or
    for a range in `where` that cannot be."""
    if profile not in PROFILES:
        raise UsageError(unknown("profile", profile, PROFILES))
    for check in checks:
        if check not in NAMES:
            raise UsageError(unknown("check", check, NAMES))
    refuse_if_wrong()
    found = [Found(operator_named(name), function, vjp, declared=declared)]
    found += _resumed(name, function)
    called = getattr(function, "__name__", type(function).__name__)
    how: dict = {"only_checks": checks, "types": types, "allow_thin": allow_thin}
    how |= {"diagnose": True, "limits": where, "where": parse(where, [found[0].op])}
    asked = Settings(profile=profile, seed=seed, folder=None, **how)
    return Session(InProcess(found), called, asked)


def _alike(results: Iterable[Result]) -> list[list[Result]]:
    """Failures in groups: those whose calls raise the same exception at the same line."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        _, raised, what = result.message.partition("raised ")
        groups.setdefault(what if raised and result.verdict == "error" else result.id, []).append(
            result
        )
    return [*groups.values()]


def _again(name: str, function: Callable, result: Result, given: Mapping) -> str:
    """The call of `refssm.testing.check` that judges only the check of a result."""
    told = {"checks": (result.check,)} | {k: v for k, v in given.items() if v != USUAL.get(k)}
    words = [f"{key}={_source(value)}" for key, value in told.items()]
    return f"check({', '.join([repr(name), _source(function), *words])})".replace("'", '"')


def _source(value: object) -> str:
    """A value as its author wrote it, as far as that is known."""
    return getattr(value, "__name__", repr(value))


def _resumed(name: str, function: Callable) -> list[Found]:
    """The implementation of the operator's resumed form in the same module, for the law `split`.

    `<function>_from` or `<function>_stateful`, if that is there; else the first one.
    """
    other = resumed(operator_named(name))
    module = sys.modules.get(getattr(function, "__module__", ""), None)
    if other is None or other.name == name or module is None:
        return []
    found = {n: f for n, f in vars(module).items() if declared(f).name == other.name}
    own = f"{getattr(function, '__name__', '')}{other.name.removeprefix(name)}"
    later = found.get(own) or next(iter(found.values()), None)
    if later is None:
        return []
    return [Found(other, later, None, judged=False, declared=declared(later))]


def text(results: Iterable[Result]) -> str:
    """Results as the command prints them, without colours."""
    told = []
    for result in results:
        alike = f"   {result.failing} fail alike" if result.failing > 1 else ""
        told.append(f"{lines.word(result)} {result.id}   {lines.facts(result)}{alike}")
        told += [f"  {line}" for line in lines.below(result)]
    return "\n".join(told)
