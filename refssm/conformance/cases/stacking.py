"""The arrays of a preset: one draw for each member of the batch, stacked along the batch axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.conformance.cases.sizes import core_dims
from refssm.presets.preset import Preset

SOME = 3  # a size that the preset leaves open, where only the kind of its arrays matters


def stacked(
    op: Operator,
    preset: Preset,
    sizes: Mapping[str, int],
    batch: Mapping[str, int],
    generator: Callable[..., np.random.Generator],
) -> dict[str, np.ndarray]:
    """The arguments that the preset draws, in double precision, with their batch axes.

    All arguments of one member come from one draw, so they belong together. An argument that lacks
    a batch axis has the values of the first member of that axis.
    """
    made: dict[str, np.ndarray] = {}
    for member in _members(op, batch):
        place = dict(zip(op.batch_names, member, strict=True))
        drawn = preset.draw(generator(*member), sizes)
        for i, name in enumerate(op.inputs):
            axes = op.batch_axes[i]
            if name not in drawn or any(place[d] for d in op.batch_names if d not in axes):
                continue
            array = np.asarray(drawn[name])
            if name not in made:
                leading = [batch.get(d, 1) for d in axes]
                made[name] = np.zeros((*leading, *array.shape), array.dtype)
            made[name][tuple(place.get(d, 0) for d in axes)] = array
    return made


def _members(op: Operator, batch: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """The indices of all members of a batch."""
    return product(*(range(batch.get(d, 1)) for d in op.batch_names))


@cache
def of_complex(op: Operator, preset: Preset) -> bool:
    """True if an argument that may be real or complex is complex in this preset."""
    sizes = dict.fromkeys(core_dims(op), SOME) | dict(preset.sizes)
    drawn = preset.draw(np.random.default_rng(0), sizes)
    return any(
        np.iscomplexobj(drawn[name])
        for name, domain in op.inputs.items()
        if name in drawn and domain.kind != "complex"
    )


@cache
def free_arguments(op: Operator, preset: Preset) -> tuple[str, ...]:
    """The arguments that the preset leaves to their domains."""
    sizes = dict.fromkeys(core_dims(op), SOME) | dict(preset.sizes)
    drawn = preset.draw(np.random.default_rng(0), sizes)
    for i, name in enumerate(op.inputs):
        shape = tuple(length_of(d, sizes) for d in op.input_dims[i])
        assert name not in drawn or np.shape(drawn[name]) == shape, f"{op}, {preset}: {name}"
    return tuple(name for name in op.inputs if name not in drawn)
