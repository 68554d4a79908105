"""Outputs that do not fit the declared layout: in words, and a layout that fits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from pathlib import Path
from types import FunctionType

from refssm._declaration.layout import Axes, Layout, length, single
from refssm.conformance.calling.attributes import vars_of
from refssm.conformance.calling.finding import PACKAGE

Shape = tuple[int, ...]
WRAPPED = 8  # decorators to look through
MOST_AXES = 6  # names in a layout whose orders are tried
TRIES = 120  # and so many orders at most


def misfit(axes: Axes, shape: Shape, sizes: Mapping[str, int]) -> str:
    """Why an output of this shape does not have these axes, or ""."""
    try:
        wanted = tuple(length(axis, sizes) for axis in axes)
    except KeyError:  # a length that no argument has
        return ""
    told = f"shape {shape}, want {wanted} for the axes {' '.join(axes) or 'none'}"
    return "" if shape == wanted else told


def fitting(layout: Layout, i: int, shape: Shape, sizes: Mapping[str, int]) -> Layout | None:
    """The layout in which output i has this shape, nearest to the declared one; None if unclear.

    Axes are reordered first; only if no order fits, they are merged and taken apart.
    """
    axes = layout.outputs[i]
    for others, far in (
        (permutations(axes), _places_that_differ),
        (_regrouped(axes, shape), _exchanged),
    ):
        fits = {o for o in others if tuple(length(axis, sizes) for axis in o) == shape}
        moved = {o: far(o, axes) for o in fits}
        nearest = [o for o in fits if moved[o] == min(moved.values())]
        if fits:
            outputs = (*layout.outputs[:i], *nearest[:1], *layout.outputs[i + 1 :])
            return replace(layout, outputs=outputs) if len(nearest) == 1 else None
    return None


def reordered(layout: Layout) -> list[Layout]:
    """The layouts in which all arrays have their axes in another common order, the nearest first.

    Merged axes stay merged.
    """
    sides = layout.inputs, layout.outputs
    names = dict.fromkeys(axis for side in sides for axes in side for axis in axes)
    if len(names) > MOST_AXES:
        return []
    found: dict[Layout, int] = {}
    for order in permutations(names):
        others = ([tuple(sorted(axes, key=order.index)) for axes in side] for side in sides)
        other = replace(layout, **dict(zip(("inputs", "outputs"), map(tuple, others), strict=True)))
        pairs = zip((*sides[0], *sides[1]), (*other.inputs, *other.outputs), strict=True)
        found.setdefault(other, sum(_places_that_differ(axes, moved) for axes, moved in pairs))
    found.pop(layout, None)
    return sorted(found, key=found.__getitem__)[:TRIES]


def _places_that_differ(axes: Axes, others: Axes) -> int:
    """How many axes stand elsewhere."""
    return sum(x != y for x, y in zip(axes, others, strict=True))


def _exchanged(axes: Axes, others: Axes) -> int:
    """How many pairs of axes have exchanged their order, with merged ones taken apart."""
    places = [single(others).index(name) for name in single(axes)]
    return sum(x > y for x, y in combinations(places, 2))


def _regrouped(axes: Axes, shape: Shape) -> Iterator[Axes]:
    """All orders of the single axes, merged in all ways that give as many axes as the shape has."""
    groups = sum(n != 1 for n in shape)
    for names in permutations(single(axes)):
        for cuts in combinations(range(1, len(names)), groups - 1) if groups else ():
            ends = pairwise((0, *cuts, len(names)))
            merged = iter([_merged(names[start:end]) for start, end in ends])
            yield tuple("1" if n == 1 else next(merged) for n in shape)


def _merged(names: Axes) -> str:
    return names[0] if len(names) == 1 else f"({' '.join(names)})"


def place_of(function) -> str:
    """The file and line of a function's definition, or "" if it has none outside refssm."""
    for _ in range(WRAPPED):
        own = vars_of(function)
        function = own.get("__wrapped__") or own.get("py_func") or own.get("function") or function
    code = function.__code__ if isinstance(function, FunctionType) else None
    if code is None or Path(code.co_filename).is_relative_to(PACKAGE):
        return ""
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
