"""A run of the judge over one target: certify, probe, sweep every check, keep the results."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
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
from refssm.conformance.judge import Verdict, expect, grade_outputs, wrong
from refssm.conformance.minimal import show, simplified
from refssm.conformance.plugin import UsageError, operator_named
from refssm.conformance.sweep import Declined, sweep

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

    worker: object
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
        for name, has_vjp, narrows in self.worker.found:  # pyright: ignore[reportAttributeAccessIssue]
            op = operator_named(name)
            candidate = Candidate(op, self.worker, has_vjp=has_vjp, narrows=narrows)
            for result in self._operator(op, candidate):
                yield result
                if result.failed and self.stop_at_failure:
                    return

    def _operator(self, op: Operator, candidate: Candidate) -> Iterator[Result]:
        profile = PROFILES[self.profile]
        wanted = self._types(op, default_types(op, profile))
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
        found = [n for n, *_ in self.worker.found]  # pyright: ignore[reportAttributeAccessIssue]
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
            details |= self._explain(check, candidate, swept.case, swept.verdict, accepted)
        elif swept.declined == swept.examples:
            seconds = time.perf_counter() - started
            message = f"declined all {swept.declined} cases"
            return self._result(check, "skipped", message=message, seconds=seconds, **details)
        return self._verdict(check, candidate, swept.verdict, started, details)

    def _verdict(self, check, candidate, verdict, started, details) -> Result:
        notes = verdict.notes
        if candidate.sliced:
            notes = (*notes, "takes core arrays only: called slice by slice")
        fields = {
            "grade": "-" if verdict.error else verdict.grade,
            "ratio": verdict.ratio,
            "bits": verdict.bits,
            "message": verdict.message,
            "seconds": time.perf_counter() - started,
            "notes": notes,
        }
        return self._result(check, verdict.verdict, **(fields | details))

    def _result(self, check: Check, verdict: str, **details) -> Result:
        return Result(check.op.name, self.target, check.name, check.dtype, verdict, **details)

    def _explain(self, check: Check, candidate, case: Case, verdict: Verdict, accepted) -> dict:
        """The smallest failing input, saved, and whether double precision fails too."""
        try:
            arrays = candidate.arrays(case)
        except (Broken, Declined):
            arrays = case.arrays
        anything: set[str] = set()
        hint = ""
        if check.judge_arrays is not None and not verdict.error and self._shrinks():

            def fails(attempt):
                try:
                    tried = check.judge_arrays(candidate, attempt, case.statics)
                except Declined:
                    return False
                return tried.verdict == verdict.verdict

            if fails(arrays):
                arrays, anything = simplified(case, arrays, fails)
                verdict = check.judge_arrays(candidate, arrays, case.statics)
            hint = self._shrinks_in_double(check, candidate, arrays, case.statics, accepted)
        elif not verdict.error:
            hint = f"case: {case}"
        sizes = [f"{d}={n}" for d, n in (*case.sizes.items(), *_stacked(case))]
        mixed = len({np.iscomplexobj(a) for a in arrays}) > 1
        shown = [
            show(n, a, n in anything) + (f" ({a.dtype})" if mixed else "")
            for n, a in zip(case.op.inputs, arrays, strict=True)
        ]
        return {
            "message": verdict.message,
            "ratio": verdict.ratio,
            "bits": verdict.bits,
            "hint": hint,
            "smallest": " ".join(sizes) + "; " + ", ".join(shown),
            "counterexample": self._saved(check, case, arrays),
        }

    def _shrinks(self) -> bool:
        return PROFILES[self.profile].shrink if self.shrink is None else self.shrink

    def _shrinks_in_double(self, check, candidate, arrays, statics, accepted) -> str:
        """Rounding goes away in double precision, a wrong formula does not."""
        double = np.result_type(check.dtype, np.float64).name
        if double == check.dtype or (double not in accepted and check.dtype != "complex64"):
            return ""
        wide = [a.astype(np.result_type(a, np.float64)) for a in arrays]
        try:
            y = candidate.results(wide, statics)
        except (Broken, Declined):
            return ""
        verdict = grade_outputs(candidate.op, wide, y, expect(candidate.op, wide, **statics))
        if verdict.ok:
            return f"right in {double}: rounding, not the formula"
        return f"as wrong in {double}: the formula, not rounding"

    def _saved(self, check: Check, case: Case, arrays) -> str:
        """Save the inputs under .refssm, by a name made of their bytes."""
        if self.folder is None:
            return ""
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{check.op}-{digest.hexdigest()[:8]}.npz"
        np.savez(path, **dict(zip(check.op.inputs, arrays, strict=True)))
        return str(path)


def judge_inputs(session: Session, path: Path) -> Iterator[Result]:
    """Judge the value on the author's own arrays, saved by argument name."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            given = dict(stored)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not a readable .npz file: {error}") from None
    for name, has_vjp, narrows in session.worker.found:  # pyright: ignore[reportAttributeAccessIssue]
        op = operator_named(name)
        absent = [argument for argument in op.inputs if argument not in given]
        if absent:
            raise UsageError(f"{path} has no array {absent[0]!r}; {op} takes {', '.join(op.inputs)}")
        statics = {k: int(given[k]) for k in op.static}
        try:
            arrays = op.arrays([given[argument] for argument in op.inputs], "fdFD")
            op.sizes(*arrays, **statics)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
        candidate = Candidate(op, session.worker, has_vjp=has_vjp, narrows=narrows)
        started = time.perf_counter()
        dtype = np.result_type(*arrays).name
        doubt = certify(op)
        if doubt:
            verdict = Verdict("F", np.inf, 0.0, f"not judged: {doubt}", error=True)
        else:
            verdict = _given(candidate, arrays, statics)
        check = Check("value", op, dtype, 1, lambda *_: wrong(""))
        details = {"examples": 1, "hint": f"inputs: {path}"}
        yield session._verdict(check, candidate, verdict, started, details)


def _given(candidate: Candidate, arrays, statics) -> Verdict:
    try:
        return candidate.value(candidate.narrowed(arrays), statics)
    except Declined:
        return Verdict("-", notes=("the implementation declined these inputs",))


def accepts_mixed_kinds(candidate: Candidate, types, refused) -> bool:
    """Whether real arguments may stand beside complex ones; a kernel may take one kind only."""
    op = candidate.op
    either = tuple(n for n, d in op.inputs.items() if d.kind == "either")
    dtype = next((t for t in types if np.dtype(t).kind == "c" and not refused[t]), "")
    if not dtype or not either or len(either) == len(op.inputs) == 1:
        return True
    try:
        arrays = candidate.arrays(ordinary_case(op, dtype, real=either[-1:]))
    except (Declined, Broken):
        return True
    return candidate.outcome(arrays, {}).status != "raised"


def _stacked(case: Case):
    """Batch axes longer than one."""
    return [(f"batch {axis}", n) for axis, n in case.batch.items() if n > 1]
