"""What the wrong entries of a failure have in common, if no planted bug has the same outputs."""

from __future__ import annotations

from math import gcd

import numpy as np

from refssm._operator import Operator
from refssm.conformance.checks.candidate import Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.law import Graded
from refssm.conformance.diagnosis.roughness import is_rough
from refssm.conformance.diagnosis.suspects import expected
from refssm.conformance.diagnosis.transcript import Call, Episode, key_of_call
from refssm.conformance.gauges.gauge import Gauge, Known
from refssm.conformance.number_types import NUMBER_TYPES, TF32
from refssm.conformance.standard import Standard

BLOCK = 8  # block lengths must be multiples of this
FEW = 4  # at least so many wrong entries are needed to see a pattern
SIMPLE = {2: "twice", 0.5: "half", -1: "minus", 1j: "i times", -1j: "−i times", 0: "0 instead of"}


def shared_pattern(check: Check, candidate: Candidate, heard: list[Episode]) -> str:
    """What the wrong entries have in common over the failing cases, or ""."""
    if _run_to_run(heard):
        return (
            "the same call gives different outputs: uninitialised memory, or the order of threads"
        )
    wrong = [told for e in heard if not e.verdict.ok for told in _wrong(check, candidate, e)]
    if not wrong:
        return ""
    graded = isinstance(check.rule, Graded)
    told = _constant(wrong) or (
        _precision(wrong, candidate, _failing(heard, check)) if graded else ""
    )
    return told or _place(wrong, candidate.op)


def _failing(heard: list[Episode], check: Check) -> list[tuple]:
    """Arguments, static parameters and kind of the calls of a few failing cases."""
    calls = [call for e in heard if not e.verdict.ok for call in e.calls]
    own = [call for call in calls if call.vjp == check.rule.of_gradient]
    return [(call.arguments, call.statics, call.vjp) for call in own[:FEW]]


class _Wrong:
    """One output of one failing call: its value, the expected one, and which entries are wrong."""

    def __init__(self, y, gauge: Gauge, held: Standard, name: str, dims):
        self.y, self.want, self.name, self.dims = y, gauge.value, name, dims
        with np.errstate(all="ignore"):
            self.error = np.abs(y - gauge.value).astype(float)
            size = np.maximum(np.abs(gauge.value).astype(float), held.type.tiny)
            self.k = np.maximum(gauge.k0, size)
            # for arguments rounded to fewer bits; k where k1 is infinite
            k1 = gauge.derived.k1 if isinstance(gauge.derived, Known) else gauge.k1
            self.k1 = np.where(np.isfinite(k1), np.maximum(k1, size), self.k)
            self.bad = ~(self.error <= held.room * held.u * self.k + held.u * size)
        self.judged = np.isfinite(gauge.value) & np.isfinite(gauge.k0)
        self.bad &= self.judged
        self.room = held.room * held.u

    def allowed(self, other) -> np.ndarray:
        """The tolerance of an output whose expected value is `other`, a multiple of `want`."""
        usual, size = (
            np.max(np.abs(a), where=self.judged, initial=0.0) for a in (self.want, other)
        )
        more = max(1.0, float(size / usual)) if usual else 1.0
        return self.room * np.maximum(self.k * more, np.abs(other))


def _wrong(check: Check, candidate: Candidate, e: Episode) -> list[_Wrong]:
    """The outputs of a case that have wrong entries."""
    op, held = candidate.op, candidate.held or Standard.of(check.dtype)
    vjp, found = check.rule.of_gradient, []
    for call in e.calls:
        if call.vjp != vjp or call.outcome.status != "ok" or call.after is not None:
            continue
        told = zip(call.outcome.outputs, expected(candidate, call), *_named(op, vjp), strict=False)
        for y, gauge, name, dims in told:
            if isinstance(y, np.ndarray) and y.shape == gauge.value.shape and y.ndim:
                seen = _Wrong(y, gauge, held, name, dims)
                found += [seen] * bool(seen.bad.any())
    return found


def _named(op: Operator, vjp: bool):
    """Names and axes of the outputs, or of the gradients."""
    if not vjp:
        return op.outputs, [(*op.batch_names, *dims) for dims in op.output_dims]
    names = [n for n in op.inputs if n not in op.flags]
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


def _bytes(call: Call):
    return [np.asarray(y).tobytes() for y in call.outcome.outputs if isinstance(y, np.ndarray)]


def _precision(wrong: list[_Wrong], candidate: Candidate, calls) -> str:
    """Text on the arithmetic whose rounding errors these may be, or "".

    The errors must be in most entries and of either sign, as rounding errors are, and change from
    one input to the next as they do. The arithmetic must be coarser than the judged one: no error
    may exceed its bound, and one must be at least a 16th of it.
    """
    held = candidate.held
    if held is None or candidate.op.contract.needs_no_value:
        return ""
    large = [w for w in wrong if w.bad.size >= FEW]
    spread = [w for w in large if (w.error > 0).mean() > 0.5]
    if 2 * len(spread) <= len(large):  # results of small integers and subnormals may be exact
        return ""
    if not _of_either_sign(wrong):
        return ""
    # a wrong formula shows in a small case, by more than rounding
    units = max(float(np.max(w.error / w.k1, where=_normal(w), initial=0.0)) for w in wrong)
    coarser = [NUMBER_TYPES["float32"], TF32, NUMBER_TYPES["bfloat16"]]
    finer = held.u
    for kind in (k for k in coarser if k.u > held.u):
        name = "TF32 or float16" if kind is TF32 else kind.name
        if kind.u / held.room <= units <= kind.u:
            rough = is_rough(candidate, calls, kind.digits)
            told = f"errors as large as those of {name} ({kind.digits} bits) in some step"
            return told if rough else ""
        # a running sum of the largest array loses as many roundings as it has terms
        terms = max((a.size for arguments, _, _ in calls for a in arguments), default=1)
        few = max(finer * held.room, held.u * terms) < units < kind.u
        if few and all(min(w.bad.mean(), _early(w).mean()) > 0.5 for w in spread):
            bits = int(-np.log2(units))
            return f"only {bits} bits right in most entries: too few for rounding, more than {name}"
        finer = kind.u
    return ""


def _early(w: _Wrong) -> np.ndarray:
    """Which entries are wrong in the first quarter of time; what begins later is no rounding."""
    axis = _leading(w)
    if axis is None:
        return w.bad
    return np.moveaxis(w.bad, axis, 0)[: max(FEW, w.bad.shape[axis] // 4)]


def _normal(w: _Wrong) -> np.ndarray:
    """The wrong entries well above single precision's subnormals, which lose more digits."""
    return w.bad & (np.abs(w.want) > NUMBER_TYPES["float32"].tiny / TF32.u)


def _of_either_sign(wrong: list[_Wrong]) -> bool:
    """True if at least one error in eight has each sign; a wrong factor gives one sign."""
    with np.errstate(all="ignore"):
        along = [np.real(np.conj(w.want) * (w.y - w.want))[_normal(w)] for w in wrong]
    signs = np.sign(np.concatenate(along))
    return 8 * min((signs > 0).sum(), (signs < 0).sum()) >= signs.size > 0


def _constant(wrong: list[_Wrong]) -> str:
    """Text if all entries have one wrong factor, are conjugated, or are one step off; else ""."""
    if sum(w.bad.sum() for w in wrong) < FEW:
        return ""
    for factor, word in SIMPLE.items():
        if all(_is(w, factor * w.want) for w in wrong):
            return f"every entry is {word} the right value"
    if all(np.iscomplexobj(w.want) and _is(w, w.want.conj()) for w in wrong):
        return "every entry is the conjugate of the right value"
    for step, word in ((1, "later"), (-1, "earlier")):
        if all(_shifted(w, step) for w in wrong):
            return f"every entry is one step {word} than it should be"
    largest = np.unravel_index(int(np.argmax(np.abs(wrong[0].want))), wrong[0].want.shape)
    with np.errstate(all="ignore"):
        factor = wrong[0].y[largest] / wrong[0].want[largest]
    if np.isfinite(factor) and all(_is(w, factor * w.want) for w in wrong):
        return f"every entry is {factor:.6g} times the right value"
    return ""


def _is(w: _Wrong, other) -> bool:
    """True if the output is `other`, within the tolerance for `other`."""
    with np.errstate(all="ignore"):
        return bool(((np.abs(w.y - other) <= w.allowed(other)) | ~w.judged).all())


def _shifted(w: _Wrong, step: int) -> bool:
    """True if the output is right but for a shift by `step` along time."""
    axis = _leading(w)
    if axis is None or w.y.shape[axis] < FEW:
        return False
    n = w.y.shape[axis]
    mine, theirs = (slice(1, n), slice(0, n - 1))[::step]
    y, want = np.moveaxis(w.y, axis, 0)[mine], np.moveaxis(w.want, axis, 0)[theirs]
    with np.errstate(all="ignore"):
        return bool((np.abs(y - want) <= np.moveaxis(w.allowed(w.want), axis, 0)[theirs]).all())


def _leading(w: _Wrong) -> int | None:
    """The axis of time, counted from the end, or None."""
    return w.dims.index("l") - len(w.dims) if "l" in w.dims else None


def _place(wrong: list[_Wrong], op: Operator) -> str:
    """Text on where errors are along time or another axis, if the same in all cases; else ""."""
    timed = [w for w in wrong if _leading(w) is not None and w.y.shape[_leading(w)] > 1]
    if timed and len(timed) == len(wrong):
        along = [_along(w, _leading(w)) for w in timed]
        if _of_transform(op) and _second_half(along):
            return "only the second half is wrong: half of a spectrum, or a convolution that wraps"
        if block := _block(along, "state" in op.traits):
            return block
        if all(a[-1] and not a[:-1].any() for a in along):
            return "only the last step is wrong: a loop may end one step too early"
    for name in _channels(wrong):
        text = _channel(wrong, name)
        if text:
            return text
    return ""


def _along(w: _Wrong, axis) -> np.ndarray:
    """Which positions along one axis have a wrong entry."""
    others = tuple(i for i in range(w.bad.ndim) if i != w.bad.ndim + axis)
    return w.bad.any(others)


def _of_transform(op: Operator) -> bool:
    """True if programs of this operator may compute a spectrum."""
    return "transform" in op.traits or op.contract.name in ("FFT", "SPECTRUM")


def _second_half(along) -> bool:
    """True if in cases of several lengths the errors begin just at the middle."""
    long = [a for a in along if a.size >= BLOCK]  # in shorter ones the middle is no evidence
    begins = all(a.any() and abs(int(a.argmax()) - a.size / 2) <= 1 for a in long)
    return begins and len({a.size for a in long}) > 1


def _block(along, has_state: bool) -> str:
    """Text if all first wrong steps are multiples of one block length, or are equal; else ""."""
    along = [a for a in along if a.any()]
    firsts = [int(a.argmax()) for a in along]
    size = gcd(*firsts)
    # a case that is wrong from step 0 on must be shorter than a block
    shorter = all(k or a.size < size for a, k in zip(along, firsts, strict=True))
    if size and size % BLOCK == 0 and shorter:
        started = f"first wrong step {min(k for k in firsts if k)}"
        pairs = list(zip(along, firsts, strict=True))
        if max(firsts) > size and all(_tail(a, k, size) for a, k in pairs):
            return f"only the steps after the last whole block of {size} are wrong ({started})"
        # with a whole block behind the first wrong step it is not the rest that is wrong
        if all(firsts) and any(k == size and a.size > 2 * size for a, k in pairs):
            if has_state:
                return f"the state passed from one block of {size} to the next is wrong ({started})"
            return f"the first wrong step is a multiple of {size} in every case ({started})"
    several = len({a.size for a in along}) > 1
    if several and len({*firsts}) == 1 and firsts[0]:
        return f"the first wrong step is step {firsts[0]}, whatever the length"
    return ""


def _tail(bad, first: int, size: int) -> bool:
    """True if exactly the entries from the last multiple of `size` on are wrong."""
    return bool(first == bad.size // size * size < bad.size and bad[first:].all())


def _channels(wrong: list[_Wrong]) -> list[str]:
    """The axes, except time, that all outputs have."""
    return [d for d in wrong[0].dims if d != "l" and all(d in w.dims for w in wrong)]


def _channel(wrong: list[_Wrong], name: str) -> str:
    """Text if the wrong positions along one axis follow one pattern in every case; else ""."""
    along = [_along(w, w.dims.index(name) - len(w.dims)) for w in wrong]
    if len(along) < 2 or any(a.size < 2 or a.all() for a in along):
        return ""
    if all(a[-1] and not a[:-1].any() for a in along):
        return f"only the last entry of axis {name} is wrong"
    if all(not a[0] and a[1:].all() for a in along):
        return f"all entries of axis {name} but the first are wrong: the first is used for all"
    steps = {int(k) for a in along for k in np.diff(np.flatnonzero(a))}
    if len(steps) == 1 and min(steps) > 1 and max(a.sum() for a in along) > 2:
        return f"every {min(steps)}th entry of axis {name} is wrong: the stride of a group"
    return ""
