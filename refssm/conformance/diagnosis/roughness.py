"""Tell errors of rounding from those of a formula, by calls on inputs that differ a little.

The error of a wrong formula is a smooth function of the inputs: where they change by a hundredth,
it changes by a few hundredths of itself. A rounding error is another one wherever the rounded
number is, so it changes by as much as it is.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.diagnosis.transcript import key_of_call
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import expect
from refssm.conformance.number_types import (
    NUMBER_TYPES,
    TF32,
    NumberType,
    number_type,
    to_digits,
)
from refssm.conformance.standard import C

CALLS, NEIGHBOURS = 3, 2
OF_FEW, FEW = 32, 8  # neighbours of a call with so few numbers: some may err alike by chance
# a neighbour is so many roundings of the coarser type away, or half as many: few would find the
# same rounding error again, which repeats with each unit in the last place
ROUNDINGS = 64.0
FARTHEST = 2.0**-7  # of a number: beyond it the error of a formula changes, too
# below it single precision is subnormal after a few products, and loses digits
SMALL = NUMBER_TYPES["float32"].tiny / TF32.u
LARGE = 4.0  # entries whose error is at least a fourth of the largest
SENSITIVE = 16.0  # an entry that changes by more than so many times its inputs shows nothing
FAR_BELOW = 2.0**10  # of 2^29, by which the two precisions differ
OTHER_PRECISION = {
    "float32": "float64",
    "float64": "float32",
    "complex64": "complex128",
    "complex128": "complex64",
}
ROUGH = 0.5  # of itself, in the median; a formula's error changes by a few hundredths


def of_single(ratio: float) -> bool:
    """True if a ratio of double precision would pass in single precision, but is not far below it.

    Such an error is one of single precision somewhere inside, or of a formula by chance.
    """
    wider = NUMBER_TYPES["float32"].u / NUMBER_TYPES["float64"].u
    return wider / FAR_BELOW <= ratio <= C * wider


class _Seen(NamedTuple):
    """One output: its error in units of its bound (0 where not judged), and the right value."""

    error: np.ndarray
    value: np.ndarray


def is_rough(
    candidate: Candidate, calls: Iterable, digits: int, roundings: float = ROUNDINGS
) -> bool:
    """True if the errors of these calls change as roundings to `digits` bits do.

    With less than one of `roundings` it is false for fewer bits: few numbers are then rounded to
    another one.

    `calls` are triples: arguments, static parameters, and whether the VJP is called. The smallest
    are repeated, so what is seen here is also seen now.
    """
    changes: list[float] = []
    step = min(roundings * 0.5**digits, FARTHEST)
    for told in _distinct(calls):
        here, found = _seen(candidate, *told), []
        for moved in _neighbours(told[0], step) if here else ():
            there = _seen(candidate, moved, *told[1:])
            found += _changes(here, there, step) if here and there else []
        changes += found
        if len(changes) >= CALLS * NEIGHBOURS:
            break
    return bool(changes) and float(np.median(changes)) > ROUGH


def few_bits(candidate: Candidate, calls: Iterable) -> str:
    """Text on arguments, or results, that have the bits of a coarser type inside; or "".

    Such an argument may be rounded before the call, and no result changes.
    """
    told, standard = _distinct(calls)[:CALLS], candidate.standard
    for kind in (NUMBER_TYPES["bfloat16"], TF32):
        for votes_of in (_of_arguments, _of_results) if standard and kind.u > standard.u else ():
            votes = [votes_of(candidate, kind, *call) for call in told]
            seen = {name: [v[name] for v in votes if name in v] for name in chain(*votes)}
            if names := sorted(f"`{name}`" for name, held in seen.items() if all(held)):
                verb = "is" if len(names) == 1 else "are"
                return (
                    f"{' and '.join(names)} {verb} rounded to {kind.digits} bits ({called(kind)})"
                )
    return ""


def called(kind: NumberType) -> str:
    """The name of an arithmetic in a report."""
    return "TF32 or float16" if kind is TF32 else kind.name


def _of_arguments(candidate: Candidate, kind: NumberType, arguments, statics, vjp: bool):
    """For each argument with an influence: whether this type holds it inside."""
    moved, found = next(_neighbours(arguments, FARTHEST)), {}
    names = [*(f"d{y}" for y in candidate.op.outputs if vjp), *candidate.op.inputs]
    own = _bits(candidate, moved, statics, vjp)
    for j, (name, a) in enumerate(zip(names, moved, strict=True)):
        if not own or a.dtype.kind not in "fc" or (_held(a, kind) == a).mean() > 0.5:
            continue
        others = _held(a, kind), (a * (1 + 4 * kind.u)).astype(a.dtype)
        near, far = (
            _bits(candidate, [*moved[:j], b, *moved[j + 1 :]], statics, vjp) for b in others
        )
        if near and far and far != own:
            found[name] = near == own
    return found


def _of_results(candidate: Candidate, kind: NumberType, arguments, statics, vjp: bool):
    """For each result with many values: whether this type holds all of them."""
    op, moved = candidate.op, next(_neighbours(arguments, FARTHEST))
    names = [f"d{n}" for n in op.inputs if n not in op.discrete] if vjp else op.outputs
    results = _results(candidate, moved, statics, vjp)
    several = [len(np.unique(np.abs(y))) > 2 * CALLS for y in results]
    held = [bool((_held(y, kind) == y).all()) for y in results]
    return {n: h for n, h, many in zip(names, held, several, strict=False) if many}


def _held(a: np.ndarray, kind: NumberType) -> np.ndarray:
    """The numbers as this type holds them."""
    parts = np.ascontiguousarray(a).view(np.finfo(a.dtype).dtype)
    with np.errstate(all="ignore"):
        wide = to_digits(parts.astype(np.float64), kind)
    return wide.astype(parts.dtype).view(a.dtype).reshape(a.shape)


def _bits(candidate: Candidate, arguments, statics, vjp: bool) -> list[bytes]:
    return [y.tobytes() for y in _results(candidate, arguments, statics, vjp)]


def _results(candidate: Candidate, arguments, statics, vjp: bool) -> list[np.ndarray]:
    """The results of one call; none if it fails or is declined."""
    try:
        candidate.admitted(arguments[len(candidate.op.outputs) :] if vjp else arguments, statics)
        outputs = candidate.outputs(arguments, statics, vjp=vjp)
    except (Broken, Declined):
        return []
    return [y if isinstance(y, np.ndarray) else np.zeros(0) for y in outputs]


def loses_alike(candidate: Candidate, calls: Iterable) -> str:
    """The other precision, single or double, in which the same calls lose as many digits; or "".

    Arithmetic with fewer bits inside errs as much in both precisions, or is not used in one.
    Roundings that grow are multiples of the unit roundoff in either.
    """
    standard = candidate.standard
    other = standard and OTHER_PRECISION.get(standard.type.name)
    if not standard or not other or other not in candidate.accepted:
        return ""
    there, apart = candidate.judged_in(other), 0.0
    for arguments, statics, vjp in _distinct(calls)[:CALLS]:
        cast = [a.astype(_like(a, other)) for a in arguments]
        mine = _units(_seen(candidate, arguments, statics, vjp), standard.u)
        same = _units(_seen(there, cast, statics, vjp), number_type(other).u)
        lost = min(mine, same) > standard.room
        apart = max(apart, mine / same, same / mine) if lost else np.inf
    return other if 0 < apart < FAR_BELOW else ""


def _like(a: np.ndarray, precision: str):
    """The array's type with the digits of another one."""
    single = number_type(precision).digits == NUMBER_TYPES["float32"].digits
    real, complex_ = (np.float32, np.complex64) if single else (np.float64, np.complex128)
    return {"f": real, "c": complex_}.get(a.dtype.kind, a.dtype)


def _units(seen: list[_Seen], u: float) -> float:
    """The largest error as a multiple of the unit roundoff times its bound."""
    return max((float(np.abs(s.error).max(initial=0)) for s in seen), default=0.0) / u


def _distinct(calls: Iterable) -> list:
    """The different calls, those with the smallest arrays first."""
    seen = {key_of_call(*call): call for call in calls}
    return sorted(seen.values(), key=_size)


def _size(call) -> int:
    return sum(a.size for a in call[0])


def _neighbours(arguments, step: float) -> Iterator[list[np.ndarray]]:
    """The arguments with each number changed by half of `step` to `step`, up or down."""
    few = sum(a.size for a in arguments) <= FEW
    for seed in range(OF_FEW if few else NEIGHBOURS):
        rng, moved = np.random.default_rng(seed), []
        for a in arguments:
            part = rng.uniform(0.5, 1, a.shape) * rng.choice([-1, 1], a.shape)
            moved.append((a * (1 + step * part)).astype(a.dtype) if a.dtype.kind in "fc" else a)
        yield moved


def _seen(candidate: Candidate, arguments, statics, vjp: bool) -> list[_Seen]:
    """The outputs of one call; none if it fails or is declined."""
    op = candidate.op
    try:
        outputs = _results(candidate, arguments, statics, vjp)
        gauged = expect(op, arguments, statics, op.bare_vjp if vjp else None, candidate.standard)
    except (Broken, Declined):
        return []
    pairs = zip(outputs, gauged, strict=False)
    return [_of(y, g) for y, g in pairs if isinstance(y, np.ndarray) and y.shape == g.value.shape]


def _of(y: np.ndarray, gauge: Gauge) -> _Seen:
    # a measured bound may jump from one input to the next, by powers of two
    smooth = gauge.k0 if gauge.derived_k1 is None else gauge.derived_k1
    with np.errstate(all="ignore"):
        error = (y - gauge.value) / np.maximum(smooth, np.finfo(y.dtype).tiny)
    return _Seen(np.where(np.isfinite(error), error, 0).astype(complex), gauge.value)


def _changes(here: list[_Seen], there: list[_Seen], step: float) -> list[float]:
    """For each output with errors, how much its large ones change, relative to themselves."""
    found = []
    for before, after in zip(here, there, strict=False):
        size = np.maximum(np.abs(before.error), np.abs(after.error))
        with np.errstate(all="ignore"):
            value, change = np.abs(before.value), np.abs(after.value - before.value)
            near = (change <= SENSITIVE * step * value) & (value > SMALL)
        large = near & (size > np.max(size, initial=0.0, where=near) / LARGE)
        if large.any():
            found.append(float(np.median(np.abs(after.error - before.error)[large] / size[large])))
    return found
