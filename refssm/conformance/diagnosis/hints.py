"""Hints on the cause of a failure: the same case judged in another way."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import MEDLEY, NORMAL_MEDLEY, Case, ordinary_case
from refssm.conformance.checks.checks import Check
from refssm.conformance.diagnosis.roughness import is_rough, of_single
from refssm.conformance.gauges import gauge
from refssm.conformance.judging.result import RIGHT_IN
from refssm.conformance.judging.verdict import Verdict, kind_of
from refssm.conformance.number_types import NUMBER_TYPES, TF32, judged_type
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

FLUSHED = "passes if subnormal numbers may be flushed to zero: declare ftz=True"
WIDER = {
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "complex64": ("complex128",),
}
MASKED = (
    "NaN of step {} reaches {} steps, and a number in its place does not: so does a product "
    "with a masked matrix, because 0 times NaN is NaN"
)
BY_CHUNK = "; if its chunks have 64 steps, declare nan_chunk=64: NaN within a chunk is then a note"
BY_TRANSFORM = (
    "; so does a transform of a whole row: declare nan_chunk=16384, or as many steps as your rows "
    "have, and NaN within a row is then a note"
)
IN_CHUNKS = "; declared as `{}`, it may do so within a chunk"
SPREAD = (
    "NaN of `{}` reaches entries that do not depend on it, and a number in its place does not: so "
    "does a product with a matrix that has zeros there, because 0 times NaN is NaN"
)
SPARED = 6  # bits that one rounding may be below the bound
INSTEAD = (1.0, 0.5, -0.25, 0.75, -1.0)  # numbers in place of NaN: no state grows much by them
BELOW_0 = "right with −|{0}| in the place of {0}: only {0} above 0 is wrong here; "
AS_WRONG = ": the formula is wrong, this is not rounding"
PATH = "takes another path"
MORE_BITS = 10  # of 29 more bits in double precision: cancellation loses some of them


def verdict_on(check: Check, candidate: Candidate, case: Case) -> Verdict | None:
    """The verdict on one case; None if it is declined or ends the process."""
    try:
        return check.judge_case(candidate, case)
    except Broken as broken:
        return None if broken.verdict.died else broken.verdict
    except Declined:
        return None


def in_tf32(check: Check, candidate: Candidate, verdict: Verdict) -> str:
    """A hint if the result is as accurate as TF32, and a setting that is on asks for it."""
    setting, standard = candidate.offer.tf32, candidate.standard
    if (
        not setting
        or verdict.grade != "C"
        or standard is None
        or standard.computes != standard.type
    ):
        return ""
    if standard.type.digits != NUMBER_TYPES["float32"].digits:
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
    kind, wide = choices[0], gauge.wide(arrays, np.finfo(choices[0]).dtype)
    wider = candidate.judged_in(kind)
    again = _steadily(candidate, wider, arrays, wide, statics)
    if again is None:
        return ""
    if again.ok and verdict.verdict == "inaccurate":
        digits = NUMBER_TYPES[check.dtype].digits, int(verdict.bits)  # of sums that cancel: fewer
        if any(is_rough(candidate, [(arrays, statics, False)], d) for d in digits):
            return f"{RIGHT_IN}{kind}: these are rounding errors, the formula is right"
        return f"{RIGHT_IN}{kind}: {check.dtype} has too few digits for it, or {PATH}"
    if again.ok:
        return f"{RIGHT_IN}{kind}: {check.dtype} has too few digits or too small a range, or {PATH}"
    if np.isfinite(again.bits) and again.bits - verdict.bits >= MORE_BITS:
        return f"{int(again.bits)} bits right in {kind}: lost digits, not a wrong formula"
    special = "NaN" in verdict.kind  # where it comes from is not known
    rounded = special or _rounds_in(wider, wide, statics, again.bits) or _single_inside(wider, kind)
    return f"equally wrong in {kind}{'' if rounded else AS_WRONG}"


def _steadily(candidate, wider: Candidate, arrays, wide, statics) -> Verdict | None:
    """The verdict in the wider type, or None if what is seen may depend on earlier calls.

    The failing call is repeated before and after; other numbers of the same shapes come between two
    wide calls, because a cache that knows shapes or first entries would answer for them.
    """
    before = _wrong_outputs(candidate, arrays, statics)
    again = _judged_again(wider, wide, statics)
    others = _judged_again(wider, _others(wide), statics)
    after = _judged_again(wider, wide, statics)
    last = _wrong_outputs(candidate, arrays, statics)
    if before is None or last is None or not all(map(_alike, before, last)):
        return None
    if again is None or after is None or (after.grade, after.ratio) != (again.grade, again.ratio):
        return None
    return None if again.ok and (others is None or not others.ok) else again


_alike = partial(np.array_equal, equal_nan=True)


def _wrong_outputs(candidate: Candidate, arrays, statics):
    """The outputs of two calls, if they are alike bit by bit and wrong; else None."""
    try:
        first, second = (candidate.results(arrays, statics) for _ in range(2))
    except (Broken, Declined):
        return None
    right = candidate.grader.outputs(arrays, first, candidate.grader.expect(arrays, statics)).ok
    return None if right or not all(map(_alike, first, second)) else first


def _others(arrays) -> list[np.ndarray]:
    """Other numbers in arrays of the same shapes and with the same first entries."""
    changed = []
    for a in arrays:
        other = a if a.dtype.kind in "bi" else np.where(a == 0, a.dtype.type(0.25), a / 2)
        other = other.astype(a.dtype)
        if a.size > 1:
            other.flat[0] = a.flat[0]
        changed.append(other)
    return changed


def _rounds_in(wider: Candidate, arrays, statics, bits: float) -> bool:
    """True if the errors are roundings: of the type itself, or of a type with fewer bits."""
    standard = wider.standard or Standard.of(judged_type(arrays))
    coarser = [NUMBER_TYPES["float32"].digits, TF32.digits, NUMBER_TYPES["bfloat16"].digits]
    # a type whose digits are fewer than those that are right is not used
    digits = [standard.type.digits, *(d for d in coarser if d > bits or d == coarser[0])]
    calls = [(arrays, statics, False)]
    # unless it rounds but once in a while, as a carry: many bounds are above one rounding
    rarely = [d for d in coarser if d <= bits < d + SPARED]
    rough = (is_rough(wider, calls, d) and is_rough(wider, calls, d, 1.0) for d in rarely)
    return any(is_rough(wider, calls, d) for d in digits) or any(rough)


def _single_inside(wider: Candidate, kind: str) -> bool:
    """True if an ordinary call in double precision errs as much as single precision would.

    Roundings of a constant in the code, as of nodes, are the same in every call: they do not change
    with the inputs, and where they cancel the result looks as wrong as a wrong formula.
    """
    if NUMBER_TYPES[kind].digits != NUMBER_TYPES["float64"].digits:
        return False
    case = ordinary_case(wider.op, kind, between=wider.between)
    try:
        arrays, statics = wider.narrowed(case.arrays, case.statics)
    except Declined:
        return False
    verdict = _judged_again(wider, arrays, statics)
    return verdict is not None and of_single(verdict.ratio)


def flushed(check, candidate, case: Case) -> str:
    """A hint if the case is right on a machine that flushes subnormal numbers to zero.

    It must also be right with normal numbers in their place, because the tolerance for flushing
    would hide any error of a subnormal number. Where no argument is subnormal, but what is computed
    of them, it must be right in a type in which that is normal, if the function takes one. The case
    as it is must fail again between and after these calls: a failure that comes and goes is not one
    of flushing.
    """
    standard = candidate.standard
    if (
        standard is None or standard.ftz or standard.type.name == "float16"
    ):  # ν/u is large in float16
        return ""
    forgiving, normal = copy(candidate), _normal(case)
    forgiving.standard = replace(standard, ftz=True)
    attempts = [
        (forgiving, case, True),
        (candidate, normal, True),
        (candidate, case, False),
        (forgiving, case, True),
        (candidate, case, False),
    ]
    for of, attempt, right in attempts:
        verdict = verdict_on(check, of, attempt)
        if verdict is None:
            return ""
        if verdict.ok != right and not (
            attempt is normal and _underflows(check, forgiving, candidate, normal)
        ):
            return ""
    return FLUSHED


def _underflows(check, forgiving, candidate, case: Case) -> bool:
    """True if a case without subnormal arguments is right with flushing, and in the wider type, if
    the function takes that: what is computed of the arguments is subnormal.

    The sweep that follows judges more cases, in the function's own type.
    """
    if check.judge_arrays is None or check.rule.of_gradient:
        return False
    verdict = verdict_on(check, forgiving, case)
    if verdict is None or not verdict.ok:
        return False
    kinds = [t for t in WIDER.get(check.dtype, ()) if t in candidate.accepted]
    if not kinds:
        return True
    try:
        arrays, statics = candidate.given(case)
    except Declined:
        return False
    wide = gauge.wide(arrays, np.finfo(kinds[0]).dtype)
    again = _judged_again(candidate.judged_in(kinds[0]), wide, statics)
    return again is not None and again.ok


def _normal(case: Case) -> Case:
    """The case without subnormal numbers."""
    instead = {"subnormal": "each", MEDLEY: NORMAL_MEDLEY}
    knobs = {
        n: replace(k, texture=instead.get(k.texture, k.texture)) for n, k in case.knobs.items()
    }
    return replace(case, knobs=knobs)


def masked(check: Check, candidate: Candidate, arrays, statics) -> str:
    """A hint if NaN reaches entries that do not depend on it, and a number in its place does not.

    All calls are made here, the failing one before and after the other, so the hint says nothing
    that was not seen.
    """
    op, places = candidate.op, [np.argwhere(np.isnan(a)) for a in arrays]
    hit = [i for i, place in enumerate(places) if len(place)]
    if not check.rule.special or len(hit) != 1 or len(places[hit[0]]) != 1:
        return ""
    before = _spread(candidate, arrays, statics)
    others = [_judged_again(candidate, other, statics) for other in _finite(arrays, hit[0])]
    judged = [verdict for verdict in others if verdict is not None]
    spread = _spread(candidate, arrays, statics)
    if not judged or not all(verdict.ok for verdict in judged):
        return ""
    if not all(map(np.array_equal, before, spread)):
        return ""
    if not any(bad.any() for bad in spread):
        return ""
    name, dims, place = [*op.inputs][hit[0]], op.input_dims[hit[0]], places[hit[0]][0]
    if not op.traits.isdisjoint(("causal", "anticausal")) and op.leading in dims:
        step = int(place[len(place) - len(dims) + dims.index(op.leading)])
        if _before(op, spread, step):
            against = "later" if "anticausal" in op.traits else "earlier"
            return MASKED.format(step, against) + _in_chunks(op)
    return SPREAD.format(f"{name}[{', '.join(map(str, place))}]")


def _finite(arrays, i: int) -> Iterator[list[np.ndarray]]:
    """The arguments with numbers in place of the NaN in argument i that none of its entries has.

    The number of a neighbour would show nothing where entries are mixed up.
    """
    others = [x for x in INSTEAD if not (arrays[i] == x).any()][:2]
    for other in others:
        yield [np.where(np.isnan(a), a.dtype.type(other), a) for a in arrays]


def _in_chunks(op: Operator) -> str:
    """What to declare if this is the kernel of a chunked form, also where the catalog has none."""
    for other in OPERATORS:
        same = other.inputs == op.inputs and other.input_dims == op.input_dims
        if same and "chunk" in other.parameters and "chunk" not in op.parameters:
            return IN_CHUNKS.format(other.name)
    if op.family == "convolution":
        return BY_TRANSFORM
    return "" if "matrix-product" in op.traits else BY_CHUNK


def _spread(candidate: Candidate, arrays, statics) -> list[np.ndarray]:
    """Where the outputs have NaN and should have a number; nothing if the call fails."""
    try:
        outputs = candidate.results(arrays, statics)
    except (Broken, Declined):
        return []
    gauged = candidate.grader.expect(arrays, statics)
    return [
        (kind_of(y) == 2) & (kind_of(g.value) == 0) for y, g in zip(outputs, gauged, strict=True)
    ]


def _before(op: Operator, spread, step: int) -> bool:
    """True if outputs have NaN they should not have, all of them before this step is taken."""
    timed = [(bad, d) for bad, d in zip(spread, op.output_dims, strict=True) if op.leading in d]
    along = [np.moveaxis(bad, d.index(op.leading) - len(d), 0) for bad, d in timed]
    taken = slice(0, step + 1) if "anticausal" in op.traits else slice(step, None)
    return any(bad.any() for bad in along) and not any(bad[taken].any() for bad in along)


def of_one_sign(check: Check, candidate: Candidate, arrays, statics) -> str:
    """A hint if the call is right with −|x| in the place of the logarithm x of a decay, and else
    wrong: a guard against overflow takes e^x for 0, or for 1, where x > 0.

    With zeros in that place a decay that is not used would be right, too.
    """
    if check.rule.of_gradient:
        return ""
    for i, (name, domain) in enumerate(candidate.op.inputs.items()):
        if not (name.startswith("log_") and domain.decay and (arrays[i].real > 0).any()):
            continue
        below = [a - a.real - np.abs(a.real) if j == i else a for j, a in enumerate(arrays)]
        judged = [_judged_again(candidate, given, statics) for given in (arrays, below, arrays)]
        if all(judged) and [bool(v and v.ok) for v in judged] == [False, True, False]:
            return BELOW_0.format(name)
    return ""


def _judged_again(candidate, arrays, statics) -> Verdict | None:
    """The verdict on the same call by another standard; None if the call fails."""
    try:
        y = candidate.results(arrays, statics)
    except (Broken, Declined):
        return None
    try:
        wanted = candidate.grader.expect(arrays, statics)
    except UsageError:  # other numbers may be no case, as for a matrix of modes that grow
        return None
    return candidate.grader.outputs(arrays, y, wanted)
