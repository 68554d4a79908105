"""Drawing cases: Hypothesis chooses sizes, knobs and one seed, and shrinks them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isqrt

from hypothesis import strategies as st

from refssm._contract import TRACED
from refssm._operator import Operator
from refssm.conformance.cases.case import NOWHERE, Case
from refssm.conformance.cases.filling import MEDLEY, NORMAL_MEDLEY, Knob
from refssm.conformance.cases.sizes import MATRIX_SIZE, of_matrices, powers_of
from refssm.conformance.number_types import number_type
from refssm.domains import Domain

SIZES = (1, 2, 3, 5, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 300)
LONG = (1025, 2048, 4097) * 5  # a length that no input has: errors that grow with it show there
RANKS = (1, 2, 1, 3)  # of a low-rank part
LARGE = (255, 256, 257, 300)  # drawn twice as often: they reach a fourth chunk of 64
THOROUGH = (*SIZES, 511, 513, 1000, 1024, 1025, 2048, 4097, 8192)
BATCH = (1, 2, 3)
GROUPS = (2, 1, 3, 2)
TAME_SIZE = 129  # decays of a tame case then keep their product above 2^-60
ENTRIES = TRACED.case_entries


@st.composite
def cases(
    draw,
    op: Operator,
    dtype,
    *,
    entries=ENTRIES,
    tame=False,
    mixed=True,
    subnormal=True,
    sizes=SIZES,
    between: Mapping = NOWHERE,
):
    """Cases of `op` in `dtype`; `tame` ones neither underflow nor overflow on any route.

    `between` bounds core dimensions by name.
    """
    kind = number_type(dtype)
    dtype, tame = kind.carrier, tame or kind.name == "float16"  # most of a domain overflows it
    core, batch, left = {}, {}, entries
    # The lists are the same whatever was drawn before, and what is too large is cut down: a list
    # that grows short would make a large case the simpler one for Hypothesis.
    usual = [s for s in sizes if not tame or s <= TAME_SIZE]
    powers = powers_of(op)
    batch_first = len(powers) > 2  # else several core sizes leave no room for it
    if batch_first:
        batch, left = _batch(draw, op, left)
    for i, (dim, power) in enumerate(powers.items()):
        # long signals, mostly narrow; one in four is as wide as it is long, for tiles of both
        sizes_here = usual
        short = op.contract.stays_short
        if of_matrices(op, dim):
            sizes_here = [s for s in usual if s <= MATRIX_SIZE]  # what is done to them: the cube
        first = i == 0 and op.leading == dim
        often = [s for s in LARGE if s in sizes_here] if first else [3, 5] * 18
        if dim == "r":
            sizes_here, often = [], [*RANKS]
        if dim in op.static and not tame and not short and power == 1:
            often += [*LONG]
        room = left if power == 1 else isqrt(left)
        choices = _inside([*sizes_here, *often], between.get(dim))
        core[dim] = _at_most(room, draw(_one_of(tuple(choices))), choices)
        left //= core[dim] ** power
    if not batch_first:
        batch, left = _batch(draw, op, left)
    parameters = {n: draw(_one_of(c.values)) for n, c in op.parameters.items()}
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    knobs = {
        name: draw(_knobs(domain, dtype, tame, mixed, subnormal))
        for name, domain in op.inputs.items()
    }
    seed = draw(st.integers(0, 2**32 - 1))
    return Case(op, dtype, core, batch, knobs, seed, kind if kind.half else None, parameters)


def _batch(draw, op: Operator, left: int) -> tuple[dict[str, int], int]:
    """Sizes of the batch axes, and the room that is left."""
    batch = {}
    for axis in op.batch_names:
        # at least two groups of two heads, mostly: one of them hides which belongs to which
        usual = GROUPS if axis in "gh" else BATCH
        batch[axis] = _at_most(left, draw(_one_of(tuple(usual))), BATCH)
        left //= batch[axis]
    return batch, left


def _at_most(left, size, sizes):
    """`size`, or the largest of `sizes` for which there is room, or the smallest there is."""
    return size if size <= left else max([s for s in sizes if s <= left], default=min(sizes))


def _inside(sizes, ends) -> list[int]:
    """Those of `sizes` in a range, and its ends."""
    if ends is None:
        return sizes
    low, high = map(int, ends)
    return [s for s in sizes if low <= s <= high] + [low, high]


@cache
def _one_of(choices: tuple):
    """A strategy made once: making it costs as much as judging a small case."""
    return st.sampled_from(choices)


@cache
def _knobs(domain: Domain, dtype, tame, mixed, subnormal):
    """Knobs of one argument; the simplest first, so that failures shrink to it."""
    maps = [m for m in domain.maps if not tame or m in domain.tame]
    textures = [t for t in domain.textures if not tame or t in domain.tame_textures]
    if not tame:
        maps += [MEDLEY] * (len(maps) // 2)
        textures = [t for t in textures if subnormal or t != "subnormal"]
        textures += [MEDLEY if subnormal else NORMAL_MEDLEY] * (len(textures) // 2)
    if domain.kind == "complex" or dtype.kind != "c":
        kinds = [domain.real or dtype.kind != "c"]
    else:
        kinds = [domain.real] * 2 + [mixed or domain.real]
    return st.builds(Knob, st.sampled_from(maps), st.sampled_from(textures), st.sampled_from(kinds))
