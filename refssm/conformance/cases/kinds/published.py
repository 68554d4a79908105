"""Drawing cases in the sizes that models publish: wide ones, and long ones whose tiles are full.

A wide case has all states of a published model, few steps and one member; mostly 7 divides their
number. A tiled case has a length that 5, 10, 16, 20, 40 and 80 divide, so that the last tile of a
kernel is full, and more than three channels. In one case all sizes are equal: a program that tells
axes by their sizes takes one for another. All values are ordinary ones, with which an entry that is
lost or exchanged always shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import COUNT
from refssm._declaration.signature import length_of
from refssm.conformance.cases.case import NOWHERE, Case, Knob, plain_map, simplest
from refssm.conformance.cases.kinds.presets import longest_preset
from refssm.conformance.cases.sampling import Choices, Sampler, sampler
from refssm.conformance.cases.sizes import core_dims, powers_of
from refssm.conformance.number_types import LONG_DOUBLE_IS_WIDER, number_type
from refssm.presets.published import BEYOND, why_not, wide

# steps of a wide case: as many as there is room for
STEPS = (35, 21, 7, 4, 2)
# the largest product of its sizes. In the first type the first of them has 35 steps with states of
# 64 by 128, which are several chunks of 16
ROOM, OF_GRADIENT, OF_FIRST = 2**16, 2**15, 35 * 64 * 128
OF_LAYER = 7
CHUNKS = (16, 64)
FULL = 80  # steps: a multiple of 5, 10, 16, 20, 40 and 80
BEYOND_300 = 4  # times as many where no other case of the operator is so long
CHANNELS, EQUAL = 5, 3
NARROW = {"n": 3, "p": 4, "m": 3, "t": 4, "h": 5, "e": 10, "d": 5, "r": 1, "k": 8, COUNT: 3}
Shape = tuple[Mapping[str, int], Mapping[str, int]]  # core sizes, and those of the batch


@sampler
def published_cases(draw: Choices, op: Operator, dtype, shapes: Sequence[Shape]):
    """Cases of such shapes, with values of the first tame map of each argument that varies."""
    kind = number_type(dtype)
    core, batch = draw.one_of(shapes)
    usual = simplest(op)
    if "chunk" in usual:
        usual["chunk"] = draw.one_of(CHUNKS)
    parameters = {name: value for name, value in usual.items() if name not in core}
    real = kind.carrier.kind == "f"
    knobs = {
        name: Knob(plain_map(domain), domain.tame_textures[0], domain.real or real)
        for name, domain in op.inputs.items()
    }
    seed, half = draw.below(2**32), kind if kind.half else None
    return Case(op, kind.carrier, dict(core), dict(batch), knobs, seed, half, parameters)


@dataclass(frozen=True)
class OfPublished:
    """The published sizes of a check, for which fewer steps do where others are long already."""

    of_value: bool = False
    of_gradient: bool = False
    first: bool = False  # the value in the first type: each wide case is drawn
    deep: bool = False  # the profile `thorough`

    def samplers(self, op: Operator, dtype, between: Mapping = NOWHERE) -> tuple[Sampler, ...]:
        """A sampler for each case."""
        if number_type(dtype).double and op.inputs and not LONG_DOUBLE_IS_WIDER:
            return ()
        wide_ones = [s for s in self._wide(op, dtype) if _within(s, between)]
        tiled = [s for s in self._tiled(op, dtype) if _within(s, between)]
        groups = [[shape] for shape in wide_ones] if self.first else [wide_ones]
        groups += [tiled, [s for s in _equal(op) if _within(s, between)]]
        return tuple(published_cases(op, dtype, shapes) for shapes in groups if shapes)

    def _wide(self, op: Operator, dtype) -> list[Shape]:
        """Wide shapes: in the second there is room for fewer steps."""
        dims, powers, shapes = core_dims(op), powers_of(op), []
        few = self.of_gradient or op.contract.case_entries < ROOM  # they take longer
        room = (OF_GRADIENT if few else ROOM) // (8 if op.contract.stays_short else 1)
        for i, sizes in enumerate(wide(op, dims, double=number_type(dtype).double)):
            core = {d: sizes.get(d, 1) for d in dims}
            left = OF_FIRST if self.first and i == 0 and room == ROOM else room
            left //= prod(n ** (powers[d] if d == "n" else 1) for d, n in core.items())
            steps = next((l for l in STEPS if l ** powers.get("l", 1) <= left), STEPS[-1])
            if op.contract.name in ("CHAIN", "GAUSSIAN"):  # sizes do not all multiply each other
                steps = max(steps, OF_LAYER)
            core |= {"l": steps} if "l" in core else {}
            shapes.append((core, dict.fromkeys(op.batch_names, 1)))
        return shapes

    def _tiled(self, op: Operator, dtype) -> list[Shape]:
        """Shapes with full tiles, with more than three channels, heads or members."""
        dims, axes = core_dims(op), op.batch_names
        if "l" not in dims and not axes:
            return []
        core = {d: self._steps(op, dtype) if d == "l" else NARROW.get(d, 3) for d in dims}
        batch = dict.fromkeys(axes, 1) | ({"g": 2} if "g" in axes else {})
        enough, of_oracle = 1, number_type(dtype).double and not self.of_gradient
        if of_oracle and prod(core.values()) > op.contract.double_case_entries // 8:
            # so many that long double judges them, and not the oracle, which would take long
            one = prod((*batch.values(), *(length_of(d, core) for d in op.output_dims[0])))
            enough = op.contract.oracle_entries // one + 1
        return [(core, batch | {axis: max(CHANNELS, enough) for axis in axes[-1:]})]

    def _steps(self, op: Operator, dtype) -> int:
        """The length of tiled cases: two tiles where that does not take long."""
        if why_not(op, "l"):  # one chunk: beyond 128 steps, as the longest ones are
            return 2 * FULL if self.of_value else FULL
        longest = longest_preset(op, dtype, self.deep)
        if self.of_gradient:
            return FULL if longest > BEYOND else 2 * FULL
        return BEYOND_300 * FULL if self.of_value and longest <= BEYOND else 2 * FULL


def _equal(op: Operator) -> list[Shape]:
    """The shape in which all sizes are equal, if there are several."""
    dims, axes = core_dims(op), op.batch_names
    core = {d: EQUAL if d in ("l", "n", "p", "m", "k") else NARROW.get(d, EQUAL) for d in dims}
    return [(core, dict.fromkeys(axes, EQUAL))] if len(core) + len(axes) > 1 else []


def _within(shape: Shape, between: Mapping) -> bool:
    """True if all sizes are in the ranges of `--where`."""
    core, _ = shape
    return all(low <= core[d] <= high for d, (low, high) in between.items() if d in core)
