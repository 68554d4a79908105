"""The order of axes of an implementation, by the catalog's names: `layout="b d l, d n -> b d l"`.

The judge stores arrays in the canonical layout: batch axes first, then the core dimensions of the
signature. It transposes each argument to the author's order, and each result back. An axis called 1
has length one; the judge loops over batch axes that the layout leaves out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from refssm._operator import Operator

Axes = tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Axes of each argument and output; `omitted` are the batch axes that the judge loops over."""

    inputs: tuple[Axes, ...]
    outputs: tuple[Axes, ...]
    omitted: Axes = ()

    def __str__(self):
        sides = (", ".join(" ".join(axes) for axes in side) for side in (self.inputs, self.outputs))
        return " -> ".join(sides)


def canonical(op: Operator) -> Layout:
    """The canonical layout: batch axes, then core dimensions."""
    inputs = zip(op.batch_axes, op.input_dims, strict=True)
    return Layout(
        tuple((*batch, *core) for batch, core in inputs),
        tuple((*op.batch_names, *core) for core in op.output_dims),
    )


def parse(op: Operator, text: str) -> Layout:
    """An author's layout; ValueError if its counts or axes do not match the operator."""
    sides = [tuple(tuple(g.split()) for g in side.split(",")) for side in text.split("->")]
    usual = canonical(op)
    if op.constructor and sides[0] == ((),):
        sides[0] = ()
    if len(sides) != 2 or [*map(len, sides)] != [len(usual.inputs), len(usual.outputs)]:
        counts = f"{len(usual.inputs)} arguments and {len(usual.outputs)} outputs"
        raise ValueError(f"{op}: layout {text!r} must have {counts}, as {str(usual)!r}")
    named = {axis for side in sides for axes in side for axis in axes}
    omitted = tuple(axis for axis in op.batch_names if axis not in named)
    names = [*op.inputs, *op.outputs]
    for name, got, want in zip(
        names, [*sides[0], *sides[1]], [*usual.inputs, *usual.outputs], strict=True
    ):
        kept = [axis for axis in want if axis not in omitted]
        kept = [axis for axis in kept if axis != "1"]
        if Counter(axis for axis in got if axis != "1") != Counter(kept):
            wanted = " ".join(kept) or "no axes"
            raise ValueError(
                f"{op}: layout {text!r} gives `{name}` the axes {' '.join(got) or 'none'}, "
                f"wanted {wanted} in some order"
            )
    return Layout(sides[0], sides[1], omitted)


def arranged(a: np.ndarray, axes: Axes, wanted: Axes) -> np.ndarray:
    """Transpose `a` from `axes` to `wanted`; returns a copy that is contiguous in the new order."""
    named = tuple(axis for axis in axes if axis != "1")
    a = np.squeeze(a, tuple(i for i, axis in enumerate(axes) if axis == "1"))
    order = _order(named, tuple(w for w in wanted if w != "1"))
    places = tuple(i for i, axis in enumerate(wanted) if axis == "1")
    return np.array(np.expand_dims(np.transpose(a, order), places), order="C")


def restored(y: np.ndarray, axes: Axes, wanted: Axes) -> np.ndarray:
    """Transpose an output `y` from `axes` back to `wanted`; ValueError if its shape is wrong."""
    if y.ndim != len(axes) or any(
        n != 1 for n, axis in zip(y.shape, axes, strict=True) if axis == "1"
    ):
        raise ValueError(f"shape {y.shape}, want axes {' '.join(axes) or 'none'}")
    y = np.squeeze(y, tuple(i for i, axis in enumerate(axes) if axis == "1"))
    named = tuple(axis for axis in wanted if axis != "1")
    y = np.transpose(y, _order(tuple(axis for axis in axes if axis != "1"), named))
    return np.expand_dims(y, tuple(i for i, axis in enumerate(wanted) if axis == "1"))


def _order(axes: Axes, wanted: Axes) -> list[int]:
    """The position of each wanted axis in `axes`; equal names keep their order."""
    left, order = list(axes), []
    for axis in wanted:
        place = left.index(axis)
        left[place] = ""  # used
        order.append(place)
    return order
