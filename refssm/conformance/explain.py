"""A failure told: the smallest failing input, saved, and whether double precision fails too."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from refssm.conformance import special
from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.cases import Case
from refssm.conformance.checks import Check
from refssm.conformance.expectation import expect
from refssm.conformance.judge import Verdict, grade_outputs
from refssm.conformance.minimal import show, simplified
from refssm.conformance.sweep import Declined


def explain(
    check: Check, candidate: Candidate, case: Case, verdict: Verdict, *, accepted, shrink, folder
) -> dict:
    """The fields of a failed result: message, smallest input, hint, path of the saved inputs."""
    arrays, anything, hint = _failing(check, candidate, case), set(), ""
    if check.name == "value" and not verdict.error:
        if shrink:
            arrays, anything, verdict = _simplest(check, candidate, case, arrays, verdict)
        hint = _in_double(check, candidate, arrays, case.statics, accepted)
    elif check.name != "nan" and not verdict.error:
        hint = f"case: {case}"
    return {
        "message": verdict.message,
        "ratio": verdict.ratio,
        "bits": verdict.bits,
        "hint": hint,
        "smallest": _in_words(case, arrays, anything),
        "counterexample": save(folder, check, arrays),
    }


def _failing(check: Check, candidate: Candidate, case: Case) -> list[np.ndarray]:
    """The arguments with which the case fails: its own, or its first poison that does."""
    try:
        if check.name != "nan":
            return candidate.arrays(case)
        for arrays, _, start in special.poisons(check.op, case):
            narrowed = candidate.narrowed(arrays)
            if not special.at(candidate, narrowed, case.statics, start).ok:
                return narrowed
    except (Broken, Declined):
        pass
    return case.arrays


def _simplest(check, candidate, case, arrays, verdict):
    """Arrays simplified one by one, those that may be anything, and the verdict on the result."""

    def judged(attempt):
        return check.judge_arrays(candidate, attempt, case.statics)

    def fails(attempt):
        try:
            return judged(attempt).verdict == verdict.verdict
        except Declined:
            return False

    if not fails(arrays):  # an exact integer law, or an answer that changes from call to call
        return arrays, set(), verdict
    arrays, anything = simplified(case, arrays, fails)
    return arrays, anything, judged(arrays)


def _in_double(check, candidate, arrays, statics, accepted) -> str:
    """Rounding goes away in double precision, a wrong formula does not."""
    double = np.result_type(check.dtype, np.float64).name
    if double == check.dtype or (double not in accepted and check.dtype != "complex64"):
        return ""
    wide = [a.astype(np.result_type(a, np.float64)) for a in arrays]
    try:
        y = candidate.results(wide, statics)
    except (Broken, Declined):
        return ""
    verdict = grade_outputs(candidate.op, wide, y, expect(candidate.op, wide, statics))
    if verdict.ok:
        return f"right in {double}: rounding, not the formula"
    return f"as wrong in {double}: the formula, not rounding"


def _in_words(case: Case, arrays, anything) -> str:
    """Sizes, then every argument in a few words."""
    stacked = [(f"batch {axis}", n) for axis, n in case.batch.items() if n > 1]
    sizes = " ".join(f"{d}={n}" for d, n in (*case.sizes.items(), *stacked))
    mixed = len({np.iscomplexobj(a) for a in arrays}) > 1
    shown = [
        show(name, a, name in anything) + (f" ({a.dtype})" if mixed else "")
        for name, a in zip(case.op.inputs, arrays, strict=True)
    ]
    return f"{sizes}; {', '.join(shown)}"


def save(folder: Path | None, check: Check, arrays) -> str:
    """Save the inputs by a name made of their bytes; whole or not at all."""
    if folder is None:
        return ""
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
    path = folder / f"{check.op}-{digest.hexdigest()[:8]}.npz"
    partial = path.with_suffix(".partial.npz")
    try:
        folder.mkdir(exist_ok=True)
        np.savez(partial, **dict(zip(check.op.inputs, arrays, strict=True)))
        os.replace(partial, path)
    except OSError:  # no place to write: the report is worth more than the file
        return ""
    return str(path)
