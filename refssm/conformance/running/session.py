"""A run of the judge on one target: every implementation in it, check by check.

A `Trial` is one implementation in a run. It has four parts: the scope (what is judged), the first
calls, a sweep for each check, and the wording of results.

Judge inside an author's test suite: `refssm.testing.check` and the pytest items.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from refssm._declaration.adapted import adapted, taken
from refssm._declaration.implements import Declaration, unknown
from refssm._declaration.layout import in_layout
from refssm.catalog import resumed
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found, Offer, declared
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.ranges import narrowed, parse
from refssm.conformance.checks.checks import (
    AGAINST_GRADIENT,
    GRADIENT,
    NAMES,
    PROFILES,
    VALUE,
    Check,
    checks_of,
    types_of,
)
from refssm.conformance.judging.certificate import certified, refuse_if_wrong
from refssm.conformance.judging.kept import keeping
from refssm.conformance.judging.result import Result
from refssm.conformance.report import lines
from refssm.conformance.report.verdict import headline, severity
from refssm.conformance.running.first_calls import Probe
from refssm.conformance.running.own_faults import guarded
from refssm.conformance.running.patience import UNLIMITED
from refssm.conformance.running.scope import Scope
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.running.sweeping import Sweeping, Wording
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


def trials_of(session: Session) -> list[Trial]:
    """One trial per judged implementation; UsageError if none has a requested type."""
    found = [Trial(session, offer) for offer in session.worker.found if offer.judged]
    if found and all(trial.scope.foreign for trial in found):
        raise UsageError(f"{found[0].op} is {found[0].scope.foreign}")
    return found


def results_of(session: Session) -> Iterator[Result]:
    """Judge every implementation in the target; yield each result at once."""
    with keeping(), session.spread(session) as session.source:
        trials = trials_of(session)
        for number, trial in enumerate(trials):
            session.clock.parts = len(trials) - number
            for result in trial.run():
                yield result
                if result.failed and session.settings.stop_at_failure:
                    return


class Trial:
    """An implementation and its checks; nothing is called before `run`."""

    def __init__(self, session: Session, offer: Offer):
        self.session, self.offer, settings = session, offer, session.settings
        op = taken(operator_named(offer.name), offer.adapters).at_defaults(offer.untaken)
        op = narrowed(in_layout(op, offer.layout), settings.where)
        self.op = adapted(op, offer.adapters)
        self.candidate = Candidate(self.op, session.worker, offer)
        self.candidate.between = settings.where.sizes
        self.scope = Scope(self.op, offer, settings)
        self.probe = Probe(session, self.scope, self.candidate)
        self.wording = Wording(session.target, self.scope, self.candidate)

    def run(self) -> Iterator[Result]:
        """Yield each result at once; a fault of refssm between checks is the last one."""
        self.session.begin_another()
        results = self._results()
        while result := guarded(lambda: next(results, None), self._outside_checks):
            yield result

    def _outside_checks(self, fault: str) -> Result:
        """The result where a fault of refssm is in no check, as in the first calls."""
        dtype = (*self.scope.types, *types_of(self.op))[0]
        check = checks_of(self.op, self.scope.profile, [dtype], vjp=False)[0]
        return self.wording.fault(check, fault)

    def _results(self) -> Iterator[Result]:
        """All results; before the first one it is found out how to call the function."""
        scope, probe, wording = self.scope, self.probe, self.wording
        reason = self.offer.absent or scope.undeclared
        if reason:
            dtype = (*scope.types, *scope.settings.types, *types_of(self.op))[0]
            yield wording.skipped(VALUE.name, dtype, reason)
            return
        if self.offer.seems and all(probe.refused.values()):
            dtype, seems = scope.types[0], self.offer.seems
            message = f"it seems to want {seems} arrays, try --framework {seems}: "
            message += probe.refused[dtype]
            yield wording.result(self.checks([dtype])[0], "error", message)
            return
        if probe.misfit:
            yield self.misfit()
            return
        for dtype in scope.types:
            if dtype not in (*probe.accepted, *probe.broken):
                yield wording.skipped(VALUE.name, dtype, probe.reason(dtype))
        if not probe.accepted:
            return
        if scope.gradient_missing:
            yield wording.skipped(GRADIENT.name, probe.accepted[0], scope.gradient_missing)
        if missing := scope.uncompared(probe.older):
            yield wording.skipped(AGAINST_GRADIENT.name, probe.accepted[0], missing)
        planned = self.planned()
        for i in range(len(planned)):
            yield self.judge(planned[i], self.session.clock.share(planned[i:]))

    def checks(self, types: Iterable[str]) -> list[Check]:
        """The requested checks in `types`."""
        return self.scope.checks(types, self.probe.older)

    def planned(self) -> list[Check]:
        """The checks of accepted types; first the value in types whose first call is a failure."""
        op, profile, broken = self.op, self.scope.profile, self.probe.broken
        checks = checks_of(op, profile, broken, vjp=False)
        failures = [c for c in checks if c.rule is VALUE]
        ids = {c.id for c in failures}
        return failures + [c for c in self.checks(self.probe.accepted) if c.id not in ids]

    def misfit(self) -> Result:
        """The only result of an implementation whose layout does not fit: other checks would repeat
        it."""
        dtype = self.probe.accepted[0]
        asked = self.checks([dtype]) or checks_of(self.op, self.scope.profile, [dtype], vjp=False)
        check = next((c for c in asked if c.rule is VALUE), asked[0])
        sweeping = Sweeping(self.session, self.probe, self.wording, check)
        return sweeping.of_misfit(self.probe.first_call(dtype))

    def judge(self, check: Check, seconds: float = UNLIMITED) -> Result:
        """Run one check, for so many seconds; a fault of refssm in it is its error."""
        return guarded(
            lambda: self._judged(check, seconds), lambda told: self.wording.fault(check, told)
        )

    def _judged(self, check: Check, seconds: float) -> Result:
        self.session.tick(f"{self.op}: checking the reference", 0, 0)
        if doubt := self.doubt:
            return self.wording.result(check, "error", f"not judged: {doubt}")
        reason = self.left_out(check) or self.session.clock.over
        if reason:
            return self.wording.result(check, "skipped", reason)
        sweeping = Sweeping(self.session, self.probe, self.wording, check, seconds)
        if check.rule is VALUE and check.dtype in self.probe.broken:
            return sweeping.of_first_call(self.probe.first_call(check.dtype))
        return sweeping.result()

    @property
    def doubt(self) -> str:
        """Why refssm's reference cannot be trusted, or ""."""
        learned = self.probe.learned
        return learned.doubt if learned else certified(operator_named(self.op.name))

    def left_out(self, check: Check) -> str:
        """Why a check is not run, or ""."""
        if self.offer.files and check.rule.of_memory:
            return "a program reads files: its use of memory cannot be checked"
        if asked := self.session.settings.preset:
            return check.without_preset(asked, self.session.settings.where.sizes)
        found = [offer.name for offer in self.session.worker.found]
        rule, where = check.rule, self.session.settings.where
        return rule.missing(self.op, found) or rule.left_by(self.op, where)
