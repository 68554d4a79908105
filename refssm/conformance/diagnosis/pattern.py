"""What the wrong entries of a failure have in common, if no planted bug has the same outputs."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.law import Graded
from refssm.conformance.diagnosis.place import FEW, Wrong, leading, place_of
from refssm.conformance.diagnosis.roughness import (
    SMALL,
    called,
    few_bits,
    is_rough,
    loses_alike,
    of_single,
)
from refssm.conformance.diagnosis.transcript import Episode, SpokenCall, expected, key_of_call
from refssm.conformance.judging.result import GROWN
from refssm.conformance.judging.verdict import WRITTEN
from refssm.conformance.number_types import NUMBER_TYPES, TF32
from refssm.conformance.standard import Standard

CHANGING = (
    "the same call gives different outputs: it depends on earlier calls, on memory that nobody "
    "wrote, or on the order of threads"
)
MEASURED, SEVERAL = 4.0, 3
ROUNDINGS = 32  # of its own size in the median entry
CASES = 2  # failing cases, at least, for a sentence on what they have in common
SIMPLE = {2: "twice", 0.5: "half", -1: "minus", 1j: "i times", -1j: "−i times", 0: "0 instead of"}


def shared_pattern(check: Check, candidate: Candidate, heard: list[Episode]) -> str:
    """What the wrong entries have in common over the failing cases, or ""."""
    if _run_to_run(heard):
        return CHANGING
    if any(e.verdict.kind == WRITTEN for e in heard):  # the message has the reason already
        return ""
    if candidate.op.contract.basis_free and not check.rule.of_gradient:
        return _single_of_basis(check, candidate, heard)
    op, vjp = candidate.op, check.rule.of_gradient
    failing = [_outputs(check, candidate, e) for e in heard if not e.verdict.ok]
    failing = [bad for seen in failing if (bad := [w for w in seen if w.bad.any()])]
    if len(failing) < CASES:  # one case shows nothing that others have in common with it
        return ""
    wrong = [w for seen in failing for w in seen]
    passing = (e for e in heard if e.verdict.ok and e.verdict.grade != "-")
    right = [w for e in passing for w in _outputs(check, candidate, e)]
    graded = isinstance(check.rule, Graded)
    told = _constant(wrong, right, _all_of(wrong, op, vjp)) or (
        _precision(wrong, check, candidate, _failing(heard, check)) if graded else ""
    )
    return told or place_of(wrong, right, op, vjp)


def _single_of_basis(check: Check, candidate: Candidate, heard: list[Episode]) -> str:
    """Text if outputs that are one basis of many have the errors of single precision; else ""."""
    if check.dtype not in ("float64", "complex128"):
        return ""
    failing = [e for e in heard if not e.verdict.ok]
    outputs = [y for e in failing for call in e.calls for y in call.outcome.outputs]
    if outputs and all(np.asarray(y).dtype.char in "fF" for y in outputs):
        return "single precision returned"
    if len(failing) < SEVERAL or not all(of_single(e.verdict.ratio) for e in failing):
        return ""
    single = NUMBER_TYPES["float32"]
    return f"errors as large as those of {single.name} ({single.digits} bits) in some step"


def _all_of(wrong: list[Wrong], op: Operator, vjp: bool) -> str:
    """The subject of a sentence on all entries; names the outputs where others are right."""
    names = dict.fromkeys(w.name for w in wrong)
    several = len(_named(op, vjp)[0]) > 1
    return f"every entry of {' and '.join(f'`{n}`' for n in names)}" if several else "every entry"


def _failing(heard: list[Episode], check: Check) -> list[tuple]:
    """Arguments, static parameters and kind of the calls of a few failing cases."""
    calls = [call for e in heard if not e.verdict.ok for call in e.calls]
    own = [call for call in calls if call.vjp == check.rule.of_gradient]
    return [(call.arguments, call.statics, call.vjp) for call in own[:FEW]]


def _outputs(check: Check, candidate: Candidate, e: Episode) -> list[Wrong]:
    """The outputs of a case, each with its wrong entries, if any."""
    op, standard = candidate.op, candidate.standard or Standard.of(check.dtype)
    vjp, found = check.rule.of_gradient, []
    for call in e.calls:
        if call.vjp != vjp or call.outcome.status != "ok" or call.after is not None:
            continue
        told = zip(call.outcome.outputs, expected(candidate, call), *_named(op, vjp), strict=False)
        for y, gauge, name, dims in told:
            if isinstance(y, np.ndarray) and y.shape == gauge.value.shape and y.ndim:
                found.append(Wrong(y, gauge, standard, name, dims))
    return found


def _named(op: Operator, vjp: bool):
    """Names and axes of the outputs, or of the gradients."""
    if not vjp:
        return op.outputs, [(*op.batch_names, *dims) for dims in op.output_dims]
    names = [n for n in op.inputs if n not in op.discrete]
    axes = dict(zip(op.inputs, zip(op.batch_axes, op.input_dims, strict=True), strict=True))
    return [f"d{n}" for n in names], [(*axes[n][0], *axes[n][1]) for n in names]


def _run_to_run(heard: list[Episode]) -> bool:
    """True if the same call gave two results."""
    for e in heard:
        seen: dict = {}
        for call in e.calls:
            if call.outcome.status != "ok" or call.after is not None:
                continue
            key = key_of_call(call.arguments, call.statics, call.vjp)
            first = seen.setdefault((call.view, key), call)
            if first is not call and _bytes(first) != _bytes(call):
                return True
    return False


def _bytes(call: SpokenCall):
    return [np.asarray(y).tobytes() for y in call.outcome.outputs if isinstance(y, np.ndarray)]


def _precision(wrong: list[Wrong], check: Check, candidate: Candidate, calls) -> str:
    """Text on the arithmetic whose rounding errors these may be, or "".

    The errors must be in most entries and of either sign, as rounding errors are, and change from
    one input to the next as they do. The arithmetic must be coarser than the judged one: no error
    may exceed its bound by more than a factor of 4, as bounds may be measured, and one must be at
    least a 16th of it, or a 256th where no arithmetic lies between that and the judged one.
    """
    standard = candidate.standard
    if standard is None or candidate.op.contract.needs_no_value:
        return ""
    large = [w for w in wrong if w.bad.size >= FEW]
    spread = [w for w in large if (w.error > 0).mean() > 0.5]
    exact = 2 * len(spread) <= len(large)  # results of small integers and subnormals may be
    if exact and not standard.type.double:  # of which single precision gives many
        return ""
    if not _of_either_sign(wrong):
        return ""
    # a wrong formula shows in a small case, by more than rounding; also where 0 is right
    units = max(
        float(np.max(w.error / w.k1, where=w.bad & (w.k1 > SMALL), initial=0.0)) for w in wrong
    )
    coarser = [NUMBER_TYPES["float32"], TF32, NUMBER_TYPES["bfloat16"]]
    finer = standard.u
    for kind in (k for k in coarser if k.u > standard.u):
        least = kind.u / standard.room ** (2 if finer == standard.u else 1)
        if least <= units <= MEASURED * kind.u:
            # one rounded number among others errs by less than the bound of its arithmetic
            fewer = [k for k in coarser if k.u >= kind.u]
            rounded = (k for k in fewer if _rounded_to(k.digits, candidate, calls))
            if (kind := next(rounded, None)) is None:
                return ""
            told = f"errors as large as those of {called(kind)} ({kind.digits} bits)"
            # a number of 8 bits among others errs by less, and may pass for one of 11
            told += f", or of one number in {coarser[-1].name}" if kind is TF32 else ""
            told = few_bits(candidate, calls) or (
                f"{told} in some step" if _small(wrong, kind.u) else ""
            )
            return told and _unless_grown(told, check, candidate, calls)
        # a running sum of the largest array loses as many roundings as it has terms
        terms = max((a.size for arguments, _, _ in calls for a in arguments), default=1)
        few = not exact and max(finer * standard.room, standard.u * terms) < units < kind.u
        if few and all(min(w.bad.mean(), _early(w).mean()) > 0.5 for w in spread):
            bits = int(-np.log2(units))
            told = f"only {bits} bits right in most entries: too few for rounding, more than"
            told += f" {called(kind)}"
            return _unless_grown(told, check, candidate, calls)
        finer = kind.u
    return ""


def _rounded_to(digits: int, candidate: Candidate, calls) -> bool:
    """True if the errors of these calls are others a few roundings away, and one rounding away.

    The error of a formula with products over many steps changes as much in many roundings, not in
    one; nor does a rounding to fewer bits.
    """
    return is_rough(candidate, calls, digits) and is_rough(candidate, calls, digits, roundings=1.0)


def _unless_grown(told: str, check: Check, candidate: Candidate, calls) -> str:
    """The text on few bits; another one if both precisions lose as many digits; "" if an ordinary
    case passes, where arithmetic of few bits would show as elsewhere.
    """
    if other := loses_alike(candidate, calls):
        return f"{GROWN} {other}: roundings that grow, as where terms cancel"
    case = ordinary_case(candidate.op, check.dtype, between=candidate.between)
    try:
        right = check.judge_case(candidate, case).ok
    except (Broken, Declined):
        right = False
    return "" if right else told


def _small(wrong: list[Wrong], u: float) -> bool:
    """True if in some output most wrong entries err by few roundings of their own size.

    A formula whose error is as large as what is wanted may lie within a loose bound in all cases.
    """
    with np.errstate(all="ignore"):
        of_own = [(w.error / np.abs(w.want))[_normal(w)] for w in wrong]
    return any(found.size and np.median(found) <= ROUNDINGS * u for found in of_own)


def _early(w: Wrong) -> np.ndarray:
    """Which entries are wrong in the first quarter of time; what begins later is no rounding."""
    axis = leading(w)
    if axis is None:
        return w.bad
    return np.moveaxis(w.bad, axis, 0)[: max(FEW, w.bad.shape[axis] // 4)]


def _normal(w: Wrong) -> np.ndarray:
    """The wrong entries well above single precision's subnormals, which lose more digits."""
    return w.bad & (np.abs(w.want) > SMALL)


def _of_either_sign(wrong: list[Wrong]) -> bool:
    """True if at least one error in eight has each sign; a wrong factor gives one sign."""
    with np.errstate(all="ignore"):
        along = [np.real(np.conj(w.want) * (w.y - w.want))[_normal(w)] for w in wrong]
    signs = np.sign(np.concatenate(along))
    return 8 * min((signs > 0).sum(), (signs < 0).sum()) >= signs.size > 0


def _constant(wrong: list[Wrong], right: list[Wrong], every: str) -> str:
    """Text if all entries have one wrong factor, are conjugated, or are one step off; else "".

    Outputs that pass must not contradict it: those of the same name, in `right`.
    """
    if sum(w.bad.sum() for w in wrong) < FEW:
        return ""
    names = {w.name for w in wrong}
    seen = [*wrong, *(w for w in right if w.name in names)]
    for factor, word in SIMPLE.items():
        if all(_is(w, factor * w.want) for w in seen):
            return f"{every} is {word} the right value"
    if all(np.iscomplexobj(w.want) for w in wrong) and all(_is(w, w.want.conj()) for w in seen):
        return f"{every} is the conjugate of the right value"
    for step, word in ((1, "later"), (-1, "earlier")):
        if all(_shifted(w, step) for w in wrong):
            return f"{every} is one step {word} than it should be"
    largest = np.unravel_index(int(np.argmax(np.abs(wrong[0].want))), wrong[0].want.shape)
    with np.errstate(all="ignore"):
        factor = wrong[0].y[largest] / wrong[0].want[largest]
    if np.isfinite(factor) and all(_is(w, factor * w.want) for w in seen):
        return f"{every} is {factor:.6g} times the right value"
    return ""


def _is(w: Wrong, other) -> bool:
    """True if the output is `other`, within the tolerance for `other`."""
    with np.errstate(all="ignore"):
        return bool(((np.abs(w.y - other) <= w.allowed(other)) | ~w.judged).all())


def _shifted(w: Wrong, step: int) -> bool:
    """True if the output is right but for a shift by `step` along time."""
    axis = leading(w)
    if axis is None or w.y.shape[axis] < FEW:
        return False
    n = w.y.shape[axis]
    mine, theirs = (slice(1, n), slice(0, n - 1))[::step]
    y, want = np.moveaxis(w.y, axis, 0)[mine], np.moveaxis(w.want, axis, 0)[theirs]
    with np.errstate(all="ignore"):
        return bool((np.abs(y - want) <= np.moveaxis(w.allowed(w.want), axis, 0)[theirs]).all())
