"""A run of the judge over one target: certify, probe, sweep every check, keep the results."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from refssm._operator import Operator
from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.cases import Case, ordinary_case
from refssm.conformance.certify import certify
from refssm.conformance.checks import (
    PROFILES,
    Check,
    checks_of,
    default_types,
    missing,
    types_of,
)
from refssm.conformance.explain import explain
from refssm.conformance.judge import Verdict
from refssm.conformance.laws import LAWS
from refssm.conformance.plugin import UsageError, operator_named
from refssm.conformance.sweep import Declined, sweep
from refssm.conformance.worker import InProcess, Worker

FOLDER = Path(".refssm")


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    operator: str
    implementation: str
    check: str
    dtype: str
    verdict: str  # pass, inaccurate, wrong, error or skipped
    grade: str = "-"
    ratio: float = 0.0
    bits: float = 0.0
    examples: int = 0
    declined: int = 0
    seconds: float = 0.0
    message: str = ""
    smallest: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    sliced: bool = False  # it takes core arrays only and was called slice by slice
    counterexample: str = ""  # path of the saved inputs

    @property
    def id(self) -> str:
        """operator/check[dtype]."""
        return f"{self.operator}/{self.check}[{self.dtype}]"

    @property
    def failed(self) -> bool:
        """Whether this line makes the exit code 1."""
        return self.verdict in ("inaccurate", "wrong", "error")


@dataclass
class Session:
    """What is judged and how; `run` yields results as they come."""

    worker: Worker | InProcess
    target: str
    profile: str = "default"
    seed: int = 0
    types: tuple[str, ...] = ()
    only_checks: tuple[str, ...] = ()
    shrink: bool | None = None
    stop_at_failure: bool = False
    folder: Path | None = FOLDER
    tick: Callable[[str, int, int], None] = lambda check, done, count: None
    certified: dict[str, str] = field(default_factory=dict)

    def run(self) -> Iterator[Result]:
        """Judge every implementation found in the target."""
        for offer in self.worker.found:
            if not offer.judged:
                continue
            op = operator_named(offer.name)
            candidate = Candidate(op, self.worker, offer)
            for result in self._operator(op, candidate, offer.dtypes):
                yield result
                if result.failed and self.stop_at_failure:
                    return

    def _operator(self, op: Operator, candidate: Candidate, declared=()) -> Iterator[Result]:
        profile = PROFILES[self.profile]
        if self.only_checks:  # a law asked for by name runs in every profile
            profile = replace(profile, laws=len(LAWS))
        wanted = self._types(op, default_types(op, profile))
        if declared:
            fitting = [t for t in wanted if t in declared]
            if not fitting and self.types:
                yield Result(op.name, self.target, "value", wanted[0], "skipped",
                             message=f"declared for {', '.join(declared)}")  # fmt: skip
                return
            wanted = fitting or [t for t in types_of(op) if t in declared][:1]
        self.certified.setdefault(op.name, certify(op))
        doubt = self.certified[op.name]
        if doubt:
            for check in self._selected(checks_of(op, profile, wanted, vjp=candidate.has_vjp)):
                yield self._result(check, "error", message=f"not judged: {doubt}")
            return
        refused = candidate.probe({t: ordinary_case(op, t) for t in wanted})
        mixed = accepts_mixed_kinds(candidate, wanted, refused)
        accepted = [t for t in wanted if not refused[t]] or wanted[:1]
        for dtype in wanted:
            if dtype not in accepted:
                message = f"{dtype} is not accepted: {refused[dtype]}"
                yield Result(op.name, self.target, "value", dtype, "skipped", message=message)
        found = [offer.name for offer in self.worker.found]
        if "gradient" in self.only_checks and not candidate.has_vjp:
            yield Result(op.name, self.target, "gradient", accepted[0], "skipped",
                         message=f"needs {op}_vjp")  # fmt: skip
        for check in self._selected(checks_of(op, profile, accepted, vjp=candidate.has_vjp)):
            absent = missing(check, found)
            if absent:
                yield self._result(check, "skipped", message=absent)
            else:
                yield self._check(check, candidate, mixed, accepted)

    def _types(self, op: Operator, default: list[str]) -> list[str]:
        if not self.types:
            return default
        known = types_of(op)
        chosen = [t for t in known if t in self.types]
        if not chosen:
            raise UsageError(f"{op} is judged in {', '.join(known)}; none of them was asked for")
        return chosen

    def _selected(self, checks: Iterable[Check]) -> list[Check]:
        return [c for c in checks if not self.only_checks or c.name in self.only_checks]

    def _check(self, check: Check, candidate: Candidate, mixed: bool, accepted) -> Result:
        started, done = time.perf_counter(), [0]
        profile = PROFILES[self.profile]

        def tick():
            done[0] += 1
            self.tick(check.id, done[0], check.count)

        def judge_case(case: Case) -> Verdict:
            try:
                return check.judge_case(candidate, case)
            except Broken as broken:
                return broken.verdict

        self.tick(check.id, 0, check.count)
        swept = sweep(
            check.cases(mixed=mixed),
            judge_case,
            count=check.count,
            seed_=zlib.crc32(check.id.encode()) ^ self.seed,
            shrink=profile.shrink if self.shrink is None else self.shrink,
            tick=tick,
        )
        details = {"examples": swept.examples, "declined": swept.declined}
        if swept.case is not None:
            details |= explain(
                check,
                candidate,
                swept.case,
                swept.verdict,
                accepted=accepted,
                shrink=profile.shrink if self.shrink is None else self.shrink,
                folder=self.folder,
            )
        elif swept.verdict.grade == "-":
            message = "; ".join(swept.verdict.notes) or "nothing could be judged"
            if swept.declined == swept.examples:
                message = f"declined all {swept.declined} cases"
            seconds = time.perf_counter() - started
            return self._result(check, "skipped", message=message, seconds=seconds, **details)
        return self.told(check, candidate, swept.verdict, started, details)

    def told(self, check: Check, candidate: Candidate, verdict, started, details) -> Result:
        """A verdict as a line of the report."""
        fields = {
            "grade": "-" if verdict.error else verdict.grade,
            "ratio": verdict.ratio,
            "bits": verdict.bits,
            "message": verdict.message,
            "seconds": time.perf_counter() - started,
            "notes": verdict.notes,
            "sliced": candidate.sliced,
        }
        return self._result(check, verdict.verdict, **(fields | details))

    def _result(self, check: Check, verdict: str, **details) -> Result:
        return Result(check.op.name, self.target, check.name, check.dtype, verdict, **details)


def accepts_mixed_kinds(candidate: Candidate, types, refused) -> bool:
    """Whether real arguments may stand beside complex ones; a kernel may take one kind only."""
    op = candidate.op
    either = tuple(n for n, d in op.inputs.items() if d.kind == "either")
    dtype = next((t for t in types if np.dtype(t).kind == "c" and not refused[t]), "")
    if not dtype or not either or len(either) == len(op.inputs) == 1:
        return True
    try:
        case = ordinary_case(op, dtype, real=either[-1:])
        arrays = candidate.arrays(case)
    except (Declined, Broken):
        return True
    return candidate.outcome(arrays, case.statics).status != "raised"
