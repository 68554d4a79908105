"""Hints on the cause of a failure: the same case judged in another way."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.filling import MEDLEY, NORMAL_MEDLEY
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.sweep import process_died
from refssm.conformance.gauges import gauge
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.number_types import NUMBER_TYPES

FLUSHED = "passes if subnormal numbers may be flushed to zero: declare ftz=True"
WIDER = {
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "complex64": ("complex128",),
}
AS_WRONG = ": the formula is wrong, this is not rounding"
MORE_BITS = 10  # of 29 more bits in double precision: cancellation loses some of them


def verdict_on(check: Check, candidate: Candidate, case: Case) -> Verdict | None:
    """The verdict on one case; None if it is declined or ends the process."""
    try:
        return check.judge_case(candidate, case)
    except Broken as broken:
        return None if process_died(broken.verdict) else broken.verdict
    except Declined:
        return None


def in_tf32(check: Check, candidate: Candidate, verdict: Verdict) -> str:
    """A hint if the result is as accurate as TF32, and a setting that is on asks for it."""
    setting, held = candidate.offer.tf32, candidate.held
    if not setting or verdict.grade != "C" or held is None or held.computes != held.type:
        return ""
    if held.type.digits != NUMBER_TYPES["float32"].digits:
        return ""
    return (
        f'as accurate as TF32: {setting} is on; declare Budget(computes="tf32"), or switch it off'
    )


def in_wider(check, candidate, arrays, statics, accepted, verdict) -> str:
    """A hint from a run in more precision, which removes rounding errors but no wrong formula."""
    known = check.dtype == "complex64" and not candidate.offer.dtypes
    choices = [t for t in WIDER.get(check.dtype, ()) if t in accepted or known]
    if not choices:
        return ""
    wide = gauge.wide(arrays, np.finfo(choices[0]).dtype)
    again = _judged_again(candidate.judged_in(choices[0]), wide, statics)
    if again is None:
        return ""
    if again.ok:
        return f"right in {choices[0]}: these are rounding errors, the formula is right"
    if np.isfinite(again.bits) and again.bits - verdict.bits >= MORE_BITS:
        return f"{int(again.bits)} bits right in {choices[0]}: lost digits, not a wrong formula"
    return f"equally wrong in {choices[0]}{AS_WRONG}"


def flushed(check, candidate, case: Case) -> str:
    """A hint if the case is right on a machine that flushes subnormal numbers to zero.

    It must also be right with normal numbers in their place, because the tolerance for flushing
    would hide any error of a subnormal number.
    """
    held = candidate.held
    if held is None or held.ftz or held.type.name == "float16":  # ν/u is large in float16
        return ""
    forgiving = copy(candidate)
    forgiving.held = replace(held, ftz=True)
    attempts = [(forgiving, case), (candidate, _normal(case))]
    verdicts = [verdict_on(check, of, attempt) for of, attempt in attempts]
    return FLUSHED if all(v is not None and v.ok for v in verdicts) else ""


def _normal(case: Case) -> Case:
    """The case without subnormal numbers."""
    instead = {"subnormal": "each", MEDLEY: NORMAL_MEDLEY}
    knobs = {
        n: replace(k, texture=instead.get(k.texture, k.texture)) for n, k in case.knobs.items()
    }
    return replace(case, knobs=knobs)


def _judged_again(candidate, arrays, statics) -> Verdict | None:
    """The verdict on the same call by another standard; None if the call fails."""
    try:
        y = candidate.results(arrays, statics)
    except (Broken, Declined):
        return None
    return candidate.graded(arrays, y, candidate.expect(arrays, statics))
