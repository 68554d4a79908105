"""One implementation on trial: certify its reference, learn what it takes, run its checks."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.ranges import narrowed
from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.checks.candidate import Candidate, accepts_mixed_kinds
from refssm.conformance.checks.checks import (
    PROFILES,
    Check,
    Profile,
    beside,
    checks_of,
    default_types,
    types_of,
)
from refssm.conformance.checks.laws import LAWS
from refssm.conformance.checks.sweep import SHRINK_TRIES, lost, sweep, widest
from refssm.conformance.diagnosis import diagnose
from refssm.conformance.diagnosis.failure import AS_WRONG, FLUSHED, explain
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.number_types import number_type
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

if TYPE_CHECKING:
    from refssm.conformance.running.session import Session

AUTODIFF = ("torch", "jax")
SMALL, BLOCKS = (5, 3, 4, 2), (128, 16, 4, 2)  # the second for what takes whole blocks only
certified = cache(certify)


class Trial:
    """An implementation, its standard, and the checks it owes; nothing is called before `run`."""

    def __init__(self, session: Session, offer: Offer):
        self.session, self.offer = session, offer
        self.op = narrowed(operator_named(offer.name), session.where)
        self.candidate = Candidate(self.op, session.worker, offer)
        self.candidate.between = session.where.sizes
        self.learned = session.learned.get(offer.name)

    def run(self) -> Iterator[Result]:
        """Every result, as it comes."""
        reason = self.offer.absent or self.undeclared
        if reason:
            dtype = (*self.wanted, *self.session.types, *types_of(self.op))[0]
            yield self._skip("value", dtype, reason)
            return
        if self.offer.seems and all(self.refused.values()):
            dtype, seems = self.wanted[0], self.offer.seems
            message = f"it seems to take arrays of {seems}, --framework {seems}: "
            message += self.refused[dtype]
            yield self._result(self.checks([dtype])[0], "error", message=message)
            return
        for dtype in self.wanted:
            if dtype not in self.accepted:
                reason = f"{dtype} is not accepted: {self.refused[dtype]}"
                yield self._skip("value", dtype, reason)
        if not self.accepted:
            return
        if self._gradient_wanted:
            yield self._skip("gradient", self.accepted[0], self._gradient_wanted)
        for check in self.checks(self.accepted):
            yield self.judge(check)

    @cached_property
    def profile(self) -> Profile:
        """Counts; a law or a gradient asked for by name runs in every profile."""
        profile = PROFILES[self.session.profile].of(self.session.cases)
        if not self.session.only_checks:
            return profile
        return replace(profile, laws=len(LAWS), gradient=profile.gradient or profile.value)

    @cached_property
    def wanted(self) -> list[str]:
        """The types to be judged in: those asked for, else declared, else the profile's."""
        asked, declared = self.session.types, self.offer.dtypes
        half = any(number_type(t).half for t in (*asked, *declared))
        known = types_of(self.op, half)
        if asked:
            return [t for t in known if t in asked and (not declared or t in declared)]
        if not declared:
            return default_types(self.op, self.profile)
        mine = [t for t in known if t in declared]
        return mine if self.profile.double else mine[:1]

    @cached_property
    def foreign(self) -> str:
        """Why none of the types asked for is one of the operator's, or ""."""
        known = types_of(self.op, half=True)
        if not self.session.types or set(known) & set(self.session.types):
            return ""
        return f"judged in {', '.join(known)}; none of them was asked for"

    @cached_property
    def undeclared(self) -> str:
        """Why there is no type to be judged in, or ""."""
        if self.wanted:
            return ""
        return self.foreign or f"declared for {', '.join(self.offer.dtypes)}"

    @cached_property
    def refused(self) -> dict[str, str]:
        """Why a type is not accepted, or "" where it is: one call each."""
        if self.learned:
            self.candidate.sliced = self.learned.sliced
            return self.learned.refused
        between = self.session.where.sizes
        self.session.tick(f"{self.op}: the first calls", 0, 0)
        small, large = (
            {t: ordinary_case(self.op, t, sizes, between=between) for t in self.wanted}
            for sizes in (SMALL, BLOCKS)
        )
        return self.candidate.probe(small, large)

    @cached_property
    def accepted(self) -> list[str]:
        """The types it takes; where it takes none, the first, so that something is said."""
        there = [t for t in self.wanted if t not in self.offer.lacks]
        return [t for t in there if not self.refused[t]] or there[:1]

    @cached_property
    def mixed(self) -> bool:
        """Whether real arguments may stand beside complex ones."""
        if self.learned:
            return self.learned.mixed
        return accepts_mixed_kinds(self.candidate, self.wanted, self.refused)

    @cached_property
    def beside(self) -> Beside | None:
        """The old implementation, where there is one of the same operator."""
        old = self.session.against
        if old is None:
            return None
        offer = next((o for o in old.found if o.name == self.op.name), None)
        if offer is None:
            raise UsageError(f"{self.session.older} has no {self.op} to stand beside")
        candidate = Candidate(self.op, old, offer)
        between = self.session.where.sizes
        candidate.probe({t: ordinary_case(self.op, t, between=between) for t in self.accepted})
        return Beside(candidate, self.session.older)

    @property
    def _gradient_wanted(self) -> str:
        """Why there is no gradient to judge, where somebody would expect one."""
        if not self.op.differentiable:
            return ""
        asked = "gradient" in self.session.only_checks
        if self.candidate.has_vjp and not (self.profile.gradient or self.session.only_checks):
            return f"left out of the {self.session.profile} profile: --check gradient runs it"
        if self.candidate.has_vjp or not (asked or self.offer.framework in AUTODIFF):
            return ""
        if not asked and (self.session.only_checks or not self.profile.gradient):
            return ""
        if self.offer.framework in AUTODIFF:
            return f"needs vjp=True for {self.offer.framework}'s own, or {self.op}_vjp"
        return f"needs {self.op}_vjp"

    def checks(self, types: Iterable[str]) -> list[Check]:
        """The checks in `types`, as far as they were asked for."""
        checks = checks_of(self.op, self.profile, types, vjp=self.candidate.has_vjp)
        if self.session.against is not None and self.beside is not None:
            checks += beside(self.op, self.profile, types, self.beside.judge())
        asked = self.session.only_checks
        return [c for c in checks if not asked or c.name in asked]

    def known(self) -> list[str]:
        """Every check of it in any profile, as check[dtype]."""
        types = self.offer.dtypes or types_of(self.op)
        checks = checks_of(self.op, PROFILES["thorough"], types, vjp=self.candidate.has_vjp)
        return [f"{c.name}[{c.dtype}]" for c in checks]

    def judge(self, check: Check) -> Result:
        """Run one check."""
        self.session.tick(f"{self.op} beside its oracle", 0, 0)
        if self.doubt:
            return self._result(check, "error", message=f"not judged: {self.doubt}")
        reason = self.left_out(check)
        if reason:
            return self._result(check, "skipped", message=reason)
        return self._swept(check)

    @cached_property
    def doubt(self) -> str:
        """Why nothing is judged by our reference, or ""."""
        return self.learned.doubt if self.learned else certified(operator_named(self.op.name))

    def left_out(self, check: Check) -> str:
        """Why a check is not run, or ""."""
        if self.offer.files and check.rule.of_memory:
            return "a program reads files: there is no memory to look at"
        found = [offer.name for offer in self.session.worker.found]
        rule, where = check.rule, self.session.where
        return rule.missing(self.op, found) or rule.left_by(self.op, where)

    def seed(self, check: Check) -> int:
        """Of its first cases."""
        return zlib.crc32(check.id.encode()) ^ self.session.seed

    def _swept(self, check: Check) -> Result:
        session, done = self.session, [0]
        started = time.perf_counter()
        shrink = self.profile.shrink if session.shrink is None else session.shrink
        candidate = self.candidate.judged_in(check.dtype)

        def tick(tries):
            done[0] += not tries
            if tries:
                session.tick(f"{check.id}: making it smaller", tries, SHRINK_TRIES)
            else:
                session.tick(check.id, done[0], check.count)

        judge_case = check.judging(candidate)
        session.tick(check.id, 0, check.count)
        settings = {"count": check.count, "seed_": self.seed(check), "shrink": shrink}
        settings["tick"] = tick
        between = session.where.sizes
        with session.source.of(self, check) as (ready, keep):
            drawn = check.cases(mixed=self.mixed, between=between)
            swept = sweep(drawn, judge_case, ready=ready, keep=keep, **settings)
        if check.strategy is None and swept.declined:
            case = ordinary_case(self.op, check.dtype, BLOCKS, between=between)
            swept = sweep(st.just(case), judge_case, **settings)
        details: dict = {"examples": swept.examples, "declined": swept.declined}
        if check.name == "against" and self.beside:
            details["hint"] = self.beside.told(check.dtype)
        if swept.case is not None:
            session.tick(f"{check.id}: explaining the failure", 0, 0)
            details = self._explained(check, candidate, swept, judge_case, settings) | details
        elif swept.verdict.grade == "-":
            if swept.declined == swept.examples:
                declined = f"declined all {swept.declined} cases"
                swept.verdict = Verdict("-", notes=(declined,))
            return self.unjudged(check, swept.verdict, started, details)
        return self.told(check, swept.verdict, started, details)

    def _explained(self, check: Check, candidate: Candidate, swept, judge_case, settings) -> dict:
        """The fields of a failed result."""
        session, between = self.session, self.session.where.sizes
        cases = check.cases(mixed=self.mixed, between=between)
        more = {"accepted": self.accepted, "shrink": settings["shrink"], "folder": session.folder}
        more |= {"call": session.call}
        if session.evidence and swept.first is not None:
            more["first"] = widest(cases, judge_case, swept.first, settings["seed_"])
        told = explain(check, candidate, swept.case, swept.verdict, **more)
        if told["hint"] == FLUSHED:
            told["hint"] = self._flushed(check, candidate, settings)
        if session.diagnose and not lost(swept.verdict):
            seed = settings["seed_"]
            looks_like = diagnose(check, candidate, swept.case, cases, seed)
            told["looks_like"] = looks_like.text
            if looks_like.of_few_bits:  # in a wider type they are as few
                told["hint"] = told["hint"].removesuffix(AS_WRONG)
        return told

    def _flushed(self, check: Check, candidate: Candidate, settings) -> str:
        """The hint to declare ftz, or what fails also where it is declared."""
        assert candidate.held is not None
        forgiving = copy(candidate)
        forgiving.held = replace(candidate.held, ftz=True)

        cases = check.cases(mixed=self.mixed, between=self.session.where.sizes)
        settings = {**settings, "shrink": False, "tick": lambda tries: None}
        again = sweep(cases, check.judging(forgiving), **settings)
        if again.case is None:
            return FLUSHED
        return f"wrong also where subnormal numbers are flushed to zero: {again.verdict.message}"

    def unjudged(self, check: Check, verdict: Verdict, started, details) -> Result:
        """The line of a check that could not say anything."""
        message = "; ".join(verdict.notes) or "nothing could be judged"
        seconds = time.perf_counter() - started
        return self._result(check, "skipped", message=message, seconds=seconds, **details)

    def told(self, check: Check, verdict: Verdict, started, details) -> Result:
        """A verdict as a line of the report."""
        fields = {
            "grade": "-" if verdict.error else verdict.grade,
            "ratio": verdict.ratio,
            "bits": verdict.bits,
            "message": verdict.message,
            "seconds": time.perf_counter() - started,
            "notes": verdict.notes,
            "sliced": self.candidate.sliced or self.offer.loops,
            "allowed": self.offer.accuracy.C,
            "digits": Standard.of(check.dtype, self.offer.accuracy).computes.digits,
        }
        return self._result(check, **({"verdict": verdict.verdict} | fields | details))

    def _result(self, check: Check, verdict: str, **details) -> Result:
        session = self.session
        told = {"seed": session.seed, "profile": session.profile}
        shrunk = self.profile.shrink if session.shrink is None else session.shrink
        told |= {"shrunk": shrunk} | details
        return Result(check.op.name, session.target, check.name, check.dtype, verdict, **told)

    def _skip(self, check: str, dtype: str, message: str) -> Result:
        target = self.session.target
        return Result(self.op.name, target, check, dtype, "skipped", message=message)
