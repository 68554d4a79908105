"""Drawing cases: sizes, knobs and one seed, each chosen from a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import isqrt

from refssm._declaration.contract import CHAIN, TRACED
from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import COUNT
from refssm.conformance.cases.case import MEDLEY, NORMAL_MEDLEY, NOWHERE, Case, Knob
from refssm.conformance.cases.kinds import structured
from refssm.conformance.cases.sampling import Choices, sampler
from refssm.conformance.cases.sizes import MATRIX_SIZE, of_matrices, powers_of
from refssm.conformance.number_types import number_type
from refssm.domains import Domain

SIZES = (1, 2, 3, 5, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 300)
LONG = (1025, 2048, 4097) * 5  # lengths where no input has a length: some errors grow with it
RANKS = (1, 2, 1, 3)  # ranks of a low-rank part
SEQUENCES = (1, 2, 3, 5, 2, 3)  # packed sequences, or places; each takes a call of its own
LARGE = (255, 256, 257, 300)  # drawn twice as often: four chunks of 64 or more
THOROUGH = (*SIZES, 511, 513, 1000, 1024, 1025, 2048, 4097, 8192)
BATCH = (1, 2, 3)
MEMBERS = (2, 3, 1)
GROUPS = (2, 1, 3, 2)
TAME_SIZE = 129  # up to this size, products of tame decays stay above 2^-60
ENTRIES = TRACED.case_entries
LEAST = 3  # of each size of a layer with five sizes or more


@sampler
def cases(
    draw: Choices,
    op: Operator,
    dtype,
    *,
    entries=ENTRIES,
    tame=False,
    mixed=True,
    subnormal=True,
    sizes=SIZES,
    between: Mapping = NOWHERE,
    of_structure: tuple[str, ...] = (),
):
    """Cases of `op` in `dtype`; `tame` cases do not underflow or overflow in any algorithm.

    `entries` bounds the size of the arrays, `between` bounds core dimensions by name. With
    `of_structure` only structured cases of these kinds: "close" to a structure, or with one
    "strong" decay.
    """
    kind = number_type(dtype)
    dtype, tame = kind.carrier, tame or kind.name == "float16"  # most of a domain overflows in it
    core, batch, left = {}, {}, entries
    # The lists do not depend on earlier draws; a size that is too large is reduced afterwards.
    # With a list that gets shorter, lower choices would not give smaller cases.
    usual = [s for s in sizes if not tame or s <= TAME_SIZE]
    members = BATCH
    if of_structure:  # which begins at the third step or state, and between members of a batch
        usual, members = [s for s in usual if s > 2], MEMBERS
    powers = powers_of(op)
    # with three core sizes, or few entries in double precision, no room would be left for it
    batch_first = len(powers) > 2 or (kind.double and "g" in op.batch_names)
    if batch_first:
        batch, left = _batch(draw, op, left, members)
    for i, (dim, power) in enumerate(powers.items()):
        # mostly long and narrow signals; one in four is about as wide as long, to test tiles
        sizes_here = usual
        short = op.contract.stays_short
        if of_matrices(op, dim):
            sizes_here = [s for s in usual if s <= MATRIX_SIZE]  # the work is cubic in the size
        first = i == 0 and op.leading == dim
        often = [s for s in LARGE if s in sizes_here] if first else [3, 5] * 18
        if dim == "r":
            sizes_here, often = [], [*RANKS]
        if op.offsets and dim == COUNT:
            sizes_here, often = [], [*SEQUENCES]
        if dim in op.static and not tame and not short and power == 1:
            often += [*LONG]
        choices = _inside([*sizes_here, *often], between.get(dim))
        core[dim] = _at_most(_room(op, left, power), draw.one_of(choices), choices)
        left //= core[dim] ** power
    if not batch_first:
        batch, left = _batch(draw, op, left, members)
    structure = draw.one_of(of_structure) if of_structure else ""
    choices = {n: structured.beside(c) if structure else () for n, c in op.parameters.items()}
    parameters = {n: draw.one_of(choices[n] or c.values) for n, c in op.parameters.items()}
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    knobs = _knobs(draw, op, (dtype, tame, mixed, subnormal, structure))
    seed = draw.below(2**32)
    if mixed and dtype.kind == "c" and seed % 4 == 1:
        knobs = _one_complex(op, knobs, seed)
    return Case(op, dtype, core, batch, knobs, seed, kind if kind.half else None, parameters)


def _knobs(draw: Choices, op: Operator, how: tuple) -> dict[str, Knob]:
    """The knob of each argument; with a zero pivot the step is 1."""
    knobs = {name: knob_of(draw, domain, *how) for name, domain in op.inputs.items()}
    if "dt" in knobs and any(k.texture == "zero pivot" for k in knobs.values()):
        knobs["dt"] = Knob("one", "each", real=True)
    return knobs


def _one_complex(op: Operator, knobs: dict, seed: int) -> dict:
    """The knobs with one complex argument, all others real if they can be.

    A program that takes its type from some of its arguments, such as a real system, drops
    imaginary parts.
    """
    free = [name for name, d in op.inputs.items() if not d.real and d.kind != "complex"]
    if not free:
        return knobs
    kept = free[seed // 4 % len(free)]
    return knobs | {name: replace(knobs[name], real=name != kept) for name in free}


def _batch(draw: Choices, op: Operator, left: int, members=BATCH) -> tuple[dict[str, int], int]:
    """Sizes of the batch axes, and the number of entries that remains for core dimensions."""
    batch, in_groups = {}, "ghd" if "g" in op.batch_names else "h"
    for axis in op.batch_names:
        # mostly two groups of two heads or more: with one, a wrong assignment does not show
        usual = GROUPS if axis in in_groups else members
        batch[axis] = _at_most(left, draw.one_of(usual), BATCH)
        left //= batch[axis]
    return batch, left


def _room(op: Operator, left: int, power: int) -> int:
    """The largest size for which there is room. Five or more sizes of a layer do not all multiply
    each other: if they counted as if they did, most would be 1."""
    room = left if power == 1 else isqrt(left)
    many = op.contract is CHAIN and len(powers_of(op)) > 4
    return max(room, LEAST) if many else room


def _at_most(left, size, sizes):
    """`size` if it is at most `left`, else the largest of `sizes` that is, else the smallest."""
    return size if size <= left else max([s for s in sizes if s <= left], default=min(sizes))


def _inside(sizes, ends) -> list[int]:
    """The members of `sizes` in the range `ends`, and the two ends; all if there is no range."""
    if ends is None:
        return sizes
    low, high = map(int, ends)
    return [s for s in sizes if low <= s <= high] + [low, high]


def knob_of(draw: Choices, domain: Domain, dtype, tame, mixed, subnormal, structure="") -> Knob:
    """One argument's knob."""
    return Knob(*map(draw.one_of, _parts(domain, dtype, tame, mixed, subnormal, structure)))


@cache
def _parts(domain: Domain, dtype, tame, mixed, subnormal, structure) -> tuple[list, list, list]:
    """Maps, textures and kinds; simple ones first, so that failures shrink to them.

    With a `structure`, the textures of that kind of structured cases, if the domain has any; beside
    one strong decay all else is tame.
    """
    tame, subnormal = tame or structure == "strong", subnormal and not structure
    maps = [m for m in domain.maps if not tame or m in domain.tame]
    textures = [t for t in domain.textures if not tame or t in domain.tame_textures]
    if not tame:
        maps += [MEDLEY] * (len(maps) // 2)
        textures = [t for t in textures if subnormal or t != "subnormal"]
        textures += [MEDLEY if subnormal else NORMAL_MEDLEY] * (len(textures) // 2)
    if structure in domain.structured:
        textures = [*domain.structured[structure]]
        maps = [m for m in maps if m != MEDLEY]
        if "alike" in textures:
            # a row of equal strong decays has no gradient that differences keep
            maps = [m for m in (domain.tame if domain.decay else maps) if m != "zero"]
            # a step beside 1 is more likely a shortcut than any other
            maps += ["one"] * len(maps) if "one" in maps else []
    if domain.kind == "complex" or dtype.kind != "c":
        kinds = [domain.real or dtype.kind != "c"]
    else:
        kinds = [domain.real] * 2 + [mixed or domain.real]
    return maps, textures, kinds
