"""NaN, infinity, overflow and poles: outputs have them where the formula does, and nowhere else."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import from_state
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.law import NOTHING, Arguments, law
from refssm.conformance.gauges.columns.steps import LONG
from refssm.conformance.judging.verdict import Verdict, kind_of, worst_of
from refssm.domains import DISCRETE

GROWTH, LITTLE = 2.0**20, 2.0**3  # float32, and float16, overflow after about six steps


def failing(candidate: Candidate, case: Case) -> Arguments:
    """The arguments with the first special value that fails, else those of the case."""
    for arrays, _, start in poisons(candidate.op, case):
        narrowed = candidate.narrowed(arrays, case.statics)
        if not at(candidate, *narrowed, start).ok:
            return narrowed
    return case.arrays, case.statics


def at(candidate: Candidate, arrays, statics, start=False) -> Verdict:
    """Grade one call on arguments with special values.

    If finite arguments have an infinite result, by a pole or by overflow, NaN is accepted too: x
    d*/|d|² gives NaN for x/0, and another order of operations may compute 0·∞ before an overflow. A
    finite number is never accepted for an infinite one. A solver or an exponential may spread NaN
    over the whole member of the batch, a masked matrix product over its block, also where an
    implementation declares one (`nan_chunk`): there 0·∞ may be in the place of ∞, too. If no output
    depends on a NaN, it may come out anywhere. With `start`, the first outputs in time may be NaN
    or not, because programs differ in 0·NaN there.
    """
    op = candidate.op
    try:
        outputs = candidate.results(arrays, statics)
    except Broken as broken:
        if op.contract.may_raise_if_singular and "LinAlgError" in broken.verdict.message:
            return Verdict(
                "-", notes=("the call raises LinAlgError for NaN: LAPACK met a zero pivot",)
            )
        return broken.verdict
    gauged, fixed, notes = candidate.grader.expect(arrays, statics), [], set()
    poisoned = _poisoned(op, gauged)
    made_here = all(np.isfinite(a).all() for a in arrays)  # all inputs are finite
    for j, (y, gauge) in enumerate(zip(outputs, gauged, strict=True)):
        beyond = np.abs(gauge.value) > np.finfo(y.dtype).max
        loose = made_here & beyond & (kind_of(y) == 2)
        infinity = np.copysign(np.inf, np.real(gauge.value))
        y = np.where(loose, infinity, y).astype(y.dtype)
        either = _undecided(op, gauge.value, y, start, poisoned)
        spread, why = _spread(op, j, gauged, statics, candidate.offer.nan_chunk)
        spread &= (not made_here) & (kind_of(y) == 2) & (kind_of(gauge.value) != 2)
        fixed.append(np.where(either | spread, gauge.value, y).astype(y.dtype))
        notes |= {IN_PLACE_OF_INFINITY} if loose.any() else set()
        notes |= {why} if (spread & ~either).any() else set()
    verdict = candidate.grader.outputs(arrays, tuple(fixed), gauged, overflow=True)
    return replace(verdict, notes=(*verdict.notes, *sorted(notes)))


IN_PLACE_OF_INFINITY = "the outputs have NaN where the result is infinite; this is accepted"
WITHOUT_EFFECT = "NaN in an entry that no output depends on comes out as NaN; this is accepted"
IN_BLOCK = "a masked matrix product, or a transform, spreads NaN within its block; this is accepted"


def _spread(op: Operator, j: int, gauged, statics, declared: int) -> tuple[np.ndarray, str]:
    """Mask of entries of output j to which 0·NaN may spread, and the note that says so.

    `declared` is the chunk of an implementation whose operator has none, or 0.
    """
    wanted = kind_of(gauged[j].value) != 0
    if not any((kind_of(g.value) != 0).any() for g in gauged):
        return ~wanted, WITHOUT_EFFECT
    dims, product = op.output_dims[j], "matrix-product" in op.traits
    if not (product or declared) or op.leading not in dims:
        return np.zeros_like(wanted), ""
    axis = dims.index(op.leading) - len(dims)
    wanted = np.moveaxis(wanted, axis, 0)
    sizes = {declared} - {0}
    if product:
        sizes.add(statics.get("chunk", len(wanted)))
        # kernels of delta rules have a size of their own, whatever they are asked for
        sizes |= {LONG} if op.contract.measures_columns and "chunk" in statics else set()
    order = -1 if "anticausal" in op.traits else 1  # chunks begin where the recurrence does
    reached = np.zeros_like(wanted)
    for own in sizes:
        for start in range(0, len(wanted), own):
            block = slice(start, start + own)
            reached[::order][block] |= wanted[::order][block].any(0)
    return np.moveaxis(reached, 0, axis), IN_BLOCK


def _undecided(op: Operator, wanted, y, start: bool, poisoned) -> np.ndarray:
    """Mask of entries that may be NaN or not.

    Where NaN may spread over a matrix, at least one entry of it must show it.
    """
    either = np.zeros(wanted.shape, bool)
    if start and op.leading:
        rank = len(op.output_dims[0])
        steps = 2 if _fills(op) else 1
        only = slice(0, steps if "causal" in op.traits else wanted.shape[-rank] == 1)
        only = slice(-steps, None) if "anticausal" in op.traits else only
        either[(..., only, *(slice(None),) * (rank - 1))] = True
    if poisoned is None:
        return either
    reached = (kind_of(wanted) != 0).any((-2, -1), keepdims=True)
    shown = (kind_of(y) != 0).any((-2, -1), keepdims=True)
    return either | (poisoned & (shown | ~reached))


def _poisoned(op: Operator, gauged):
    """Members of the batch with NaN or infinity in any output, or None if NaN may not spread."""
    if not op.contract.nan_may_spread:
        return None
    members = [(kind_of(g.value) != 0).any((-2, -1), keepdims=True) for g in gauged]
    return np.any(np.broadcast_arrays(*members), axis=0)


def poisons(op: Operator, case: Case) -> Iterator[tuple[list[np.ndarray], str, bool]]:
    """The case's arguments with one special value at a time, its description, and `start`."""
    rng = case.generator(500)
    names, domains = list(op.inputs), list(op.inputs.values())
    real = case.dtype.kind == "f"
    # solvers and exponentials compute ∞ − ∞ in different orders
    linear = [arguments for arguments, _ in op.linear_in if _one_infinite_term(op)]
    for i, (name, domain) in enumerate(op.inputs.items()):
        if domain.kind in DISCRETE:
            continue
        place = tuple(int(rng.integers(n)) for n in case.arrays[i].shape)
        if domain.padded:
            place = (*place[:-1], domain.newest % case.arrays[i].shape[-1])
        entry = f"{name}[{', '.join(map(str, place))}]"
        # From rest and at a reset a decay multiplies zero; programs differ in 0·NaN.
        idle = (
            domain.decay
            and _first_in_time(op, i, place, case.arrays[i].shape)
            and not from_state(op)
        )
        if not (idle or (op.discrete and (domain.decay or domain.exponent))):
            yield _with(case, i, place, np.nan), f"{entry} = NaN", domain.exponent
        if domain.meets:
            poles = case.arrays[names.index(domain.meets)]
            met = poles.flat[int(rng.integers(poles.size))]
            yield _with(case, i, place, met), f"{entry} equal to a pole", False
        inside = _contracted(op) <= {*op.input_dims[i]}  # else a sum may contain ∞ − ∞
        told = inside and not domain.finite and any(name in group for group in linear)
        if real and told:
            # only real: whether a complex infinity becomes NaN depends on the order of operations
            yield _with(case, i, place, np.inf), f"{entry} = infinity", False
    if real and any(d.span for d in domains):
        # all entries have one sign, so that no order of operations computes ∞ − ∞
        growth = GROWTH if case.type.max > GROWTH else LITTLE
        grown = [
            a if d.kind == "offsets" else np.full_like(a, growth if d.span else d.kind != "flag")
            for d, a in zip(domains, case.arrays, strict=True)
        ]
        yield grown, "a growing system of one sign", False


def _one_infinite_term(op: Operator) -> bool:
    """True if no order of operations multiplies an infinity by an underflowed decay."""
    recurrent = "state" in op.traits or bool(op.discrete) or from_state(op) or _powers(op)
    decaying = any(domain.span for domain in op.inputs.values())
    products = len(op.linear_in) > 2  # three factors may be multiplied in any order
    ordered = op.contract.follows_each_operation and (decaying or not recurrent)
    return ordered and not products


def _powers(op: Operator) -> bool:
    """True if the operator takes powers of a matrix: 0·∞ then depends on the order."""
    return any(
        domain.exponent and len(set(dims)) < len(dims)
        for domain, dims in zip(op.inputs.values(), op.input_dims, strict=True)
    )


def _fills(op: Operator) -> bool:
    """True if the state that a matrix multiplies is an output.

    A · 0 with NaN in A has NaN in one entry of it, A times that in all. An output that sums over
    the state has both.
    """
    repeated = {d for dims in op.input_dims for d in dims if dims.count(d) > 1}
    return not repeated.isdisjoint(op.output_dims[0])


def _contracted(op: Operator) -> set[str]:
    """The core dimensions that are summed over."""
    repeated = {d for dims in op.input_dims for d in dims if dims.count(d) > 1}
    return repeated | {d for dims in op.input_dims for d in dims} - {*op.output_dims[0]}


def _first_in_time(op: Operator, i: int, place, shape) -> bool:
    """True if an entry of argument i is at the step that is taken first."""
    dims = op.input_dims[i]
    if op.leading not in dims:
        return False
    axis = len(place) - len(dims) + dims.index(op.leading)
    return place[axis] == (shape[axis] - 1 if "anticausal" in op.traits else 0)


def _with(case: Case, i: int, place, value) -> list[np.ndarray]:
    """The case's arguments with one entry replaced."""
    arrays = [a.copy() for a in case.arrays]
    arrays[i][place] = value
    return arrays


@law(
    at=at,
    failing=failing,
    special=True,
    owed=lambda op: "transform" not in op.traits and not op.constructor,
    tame=True,
    touches=lambda op: list(op.inputs),
)
def nan(candidate: Candidate, case: Case) -> Verdict:
    """NaN and infinity appear exactly where the formula gives them: special inputs, overflow,
    poles.

    It judges one special value at a time, of all that the operator allows, and stops at a failure.
    """
    verdicts = [NOTHING]
    for arrays, what, start in poisons(candidate.op, case):
        verdict = at(candidate, *candidate.narrowed(arrays, case.statics), start)
        if not verdict.ok:
            message = f"with {what}: {verdict.message}"
            return replace(verdict, message=message, kind=verdict.failure[1])
        # every entry is NaN or infinite, and in the right place
        verdicts.append(replace(verdict, grade="A") if verdict.grade == "-" else verdict)
    return worst_of(verdicts)
