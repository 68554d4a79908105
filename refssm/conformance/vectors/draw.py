"""Draw cases for a file, small ones first, until they show all planted bugs that values show."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from zlib import crc32

import numpy as np

from refssm._declaration.arguments import each
from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import Declined, InProcess
from refssm.conformance.cases.case import MEDLEY, Case, Knob, ordinary_case
from refssm.conformance.cases.sampling import Choices, at_random
from refssm.conformance.cases.sizes import core_dims, of_matrices, powers_of
from refssm.conformance.checks.checks import STATE, VALUE, types_of
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import HEADROOM
from refssm.conformance.planted import PlantedBug, planted_bugs
from refssm.conformance.standard import Standard

# lengths of one dimension; the longer ones are used only for bugs not yet shown
LADDER = ((1, 2, 3, 5), (7, 8, 16), (33, 64, 65), (129,), (193, 257))
OTHERS = (1, 2, 3)
SIDE = 8  # largest side of a matrix
ENTRIES = 700  # largest product of all sizes
INPUT_BITS = 32  # bits of double precision inputs, so that library versions give the same file
SHOWN_BY = (VALUE.name, STATE.name)


@dataclass(frozen=True)
class Drawn:
    """A case before its outputs are rounded."""

    op: Operator
    dtype: str
    arrays: list[np.ndarray]
    statics: Mapping[str, int | float]
    gauges: tuple[Gauge, ...]

    @property
    def size(self) -> int:
        """The number of entries of all arrays."""
        return sum(a.size for a in self.arrays) + sum(g.value.size for g in self.gauges)


def planted(op: Operator, types=()) -> list[PlantedBug]:
    """The operator's planted bugs that check `value` or `state` finds, of all types or of some."""
    own = [d for d in planted_bugs() if d.op == op.name and _check(d)[0] in SHOWN_BY]
    return [d for d in own if not types or _check(d)[1] in types]


def _check(bug: PlantedBug) -> tuple[str, str]:
    name, _, dtype = bug.caught_by.rstrip("]").partition("[")
    return name, dtype


def cases_that_show_bugs(
    op: Operator, seed: int, count: int, longest: int, types=()
) -> list[Drawn]:
    """A few small cases in every type that together show as many planted bugs as possible.

    If `types` are given, only in those. They are chosen from `count` cases of each type and range
    of lengths, drawn from `seed`; no length exceeds `longest`.
    """
    bugs, kept = planted(op), []
    for dtype in types or types_of(op):
        kept += _cover(op, dtype, [b for b in bugs if _check(b)[1] == dtype], seed, count, longest)
    return kept


def _cover(op, dtype, bugs, seed, count, longest) -> list[Drawn]:
    """Cases of one type: the first one, and those that are needed to show the type's bugs."""
    left, found = list(bugs), []
    for rung, lengths in enumerate(LADDER):
        lengths = [n for n in lengths if n <= longest]
        if not lengths or (rung and not left):
            break
        tries = count if bugs else 1
        rng = np.random.default_rng([seed, crc32(f"{op} {dtype}".encode()), rung])
        for case in _cases(op, dtype, lengths, rng, tries, plain=not found):
            seen = {b.name for b in left if shows(b, case)}
            if seen or not found:
                found.append(case)
                left = [b for b in left if b.name not in seen]
            if not left:
                break
    return _needed(found, bugs)


def _needed(found: list[Drawn], bugs: list[PlantedBug]) -> list[Drawn]:
    """The first case and the others that are needed to show all bugs; drops large ones first."""
    seen = {id(case): {b.name for b in bugs if shows(b, case)} for case in found}
    kept = list(found)
    for case in sorted(found[1:], key=lambda c: -c.size):
        others = [c for c in kept if c is not case]
        if seen[id(case)] <= set().union(*(seen[id(c)] for c in others)):
            kept = others
    return kept[:1] + sorted(kept[1:], key=lambda c: c.size)


def shows(bug: PlantedBug, case, gauges=()) -> bool:
    """True if a planted bug fails on a case."""
    return not passes(bug.found(), case, gauges or case.gauges)


def passes(found: Found, case, gauges) -> bool:
    """True if an implementation in this process passes on a case."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        worker = InProcess([found])
        candidate = Candidate(found.op, worker, worker.found[0]).judged_in(case.dtype)
        try:
            y = candidate.outputs(case.arrays, case.statics)
        except (Broken, Declined):
            return False
        return candidate.grader.outputs(case.arrays, y, gauges).grade in "AB"


def _cases(op, dtype, lengths, rng, count, plain) -> Iterator[Drawn]:
    """Cases that can be judged entry by entry; with `plain`, first one without extreme values."""
    if plain:
        sizes = tuple(min(n, max(lengths)) for n in (5, 3, 4, 2))
        first = _judged(ordinary_case(op, dtype, sizes=sizes))
        if first is not None:
            yield first
    drawn = [case for _ in range(count) if (case := _drawn(op, dtype, lengths, rng)) is not None]
    for case in sorted(drawn, key=_size):
        judged = _judged(case)
        if judged is not None:
            yield judged


def _size(case: Case) -> int:
    """Roughly the number of entries of a case."""
    powers = powers_of(case.op)
    sizes = [n ** powers.get(dim, 1) for dim, n in case.sizes.items()]
    return prod([*sizes, *case.batch.values()])


def _drawn(op, dtype, lengths, rng) -> Case | None:
    """A random case with these lengths; None if it is too large or its parameters do not fit."""
    draw = Choices(at_random(rng))
    one_of = draw.one_of
    dims = core_dims(op)
    first = op.leading or dims[0]
    long = one_of([first, first, *dims])
    core = {dim: one_of(lengths) if dim == long else one_of(OTHERS) for dim in dims}
    core = {dim: min(n, SIDE) if of_matrices(op, dim) else n for dim, n in core.items()}
    batch = {axis: one_of((1, 2)) for axis in op.batch_names}
    parameters = {name: one_of(_short(d, lengths)) for name, d in op.parameters.items()}
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    knobs = {name: _knob(domain, dtype, one_of) for name, domain in op.inputs.items()}
    seed = draw.below(2**32)
    case = Case(op, np.dtype(dtype), core, batch, knobs, seed, None, parameters)
    told = case.statics
    fits = all(d.admits(told[name], told) for name, d in op.parameters.items())
    return case if fits and _size(case) <= ENTRIES else None


def _short(domain, lengths):
    """The parameter's values that are not larger than these lengths, else its first value."""
    values = domain.values
    return [v for v in values if not isinstance(v, int) or v <= max(lengths)] or values[:1]


def _knob(domain, dtype, one_of) -> Knob:
    of_complex = np.dtype(dtype).kind == "c"
    kinds = [domain.real, domain.real, domain.real or domain.kind != "complex"]
    real = one_of(kinds) if of_complex else True
    return Knob(one_of([*domain.maps, MEDLEY]), one_of([*domain.textures, MEDLEY]), real)


def _judged(case: Case) -> Drawn | None:
    """The case with its gauges; None if it cannot be judged entry by entry."""
    arrays = [_few_bits(a) for a in case.arrays] if case.op.inputs else []
    return drawn_again(case.op, case.dtype.name, arrays, case.statics)


def drawn_again(op: Operator, dtype: str, arrays, statics) -> Drawn | None:
    """Arguments with gauges; None if an entry has no bound, may overflow, or has no solution."""
    standard = Standard.of(dtype)
    try:
        gauges = expect(op, arrays, statics, standard=standard)
    except (np.linalg.LinAlgError, ZeroDivisionError, ValueError):  # a pole, or no solution
        return None
    gauges = tuple(replace(g, measure=None, normwise=False) for g in gauges)
    for g in gauges:
        if not all(np.isfinite(x).all() for x in (g.value, g.k0, g.k1)):
            return None
        if g.peak > standard.type.max / HEADROOM:
            return None
    drawn = Drawn(op, dtype, arrays, statics, gauges)
    right = Found(op, _in_type(op, dtype), None)
    return drawn if passes(right, drawn, gauges) else None


def _in_type(op, dtype):
    """The reference; an operator without array inputs answers in the judged type."""
    if not op.constructor:
        return op.reference

    def in_its_kind(a):
        return a.astype(np.result_type(np.finfo(dtype).dtype, *[1j] * (a.dtype.kind == "c")))

    def rounded(**statics):
        return each(op.reference(**statics), in_its_kind)

    return rounded


def _few_bits(a: np.ndarray) -> np.ndarray:
    """Double precision numbers rounded to `INPUT_BITS` bits; others as they are."""
    if a.dtype.kind in "bi" or np.finfo(a.dtype).dtype != np.float64:
        return a
    if a.dtype.kind == "c":  # real and imaginary parts separately
        flat = np.ascontiguousarray(a).reshape(-1).view(np.float64)
        return _few_bits(flat).view(a.dtype).reshape(a.shape)
    m, e = np.frexp(a)
    return np.ldexp(np.rint(np.ldexp(m, INPUT_BITS)), e - INPUT_BITS)
