"""Which entries of an output are wrong, in a few words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RATIO = "error ratio |ŷ − y| / (u·K0 + u_out·|y|/C)"
BETWEEN = "difference of two results that should agree, divided by the sum of their bounds"
OF_NORM = "|ŷ − y| of each entry, divided by the bound of its matrix (which is judged in norm)"
CLASSES = "entries that are finite, infinite or NaN where they should not be"
BITS = "entries that differ, though every bit should be the same"


@dataclass(frozen=True, eq=False)
class Damage:
    """The error ratio of every entry of one output, for pictures; `describe` puts it in words."""

    output: str
    ratio: np.ndarray  # NaN: not judged; infinite: wrong without a distance
    axes: tuple[str, ...]
    allowed: float  # the largest ratio that passes
    unit: str = RATIO

    @classmethod
    def where(cls, output: str, bad: np.ndarray, dims, unit: str) -> Damage:
        """Wrong entries without a distance: the ratio is infinite there and 0 elsewhere."""
        ratio = np.where(bad, np.inf, 0.0)
        return cls(output, ratio, axis_names(bad.ndim, dims), 0.0, unit)


def describe(bad: np.ndarray, dims=()) -> str:
    """Text on where `bad` is true, by axis names: "every entry with l ≥ 64 wrong, none before"."""
    if bad.size == 1 or bad.all():
        return "every entry is wrong"
    names = axis_names(bad.ndim, dims)
    for axis, name in enumerate(names):
        along = bad.any(axis=tuple(i for i in range(bad.ndim) if i != axis))
        text = _along(along, name, bad, axis)
        if text:
            return text
    return f"{int(bad.sum())} of {bad.size} entries are wrong"


def axis_names(ndim, dims) -> tuple[str, ...]:
    """Names of the last axes from `dims`, and "batch axis i" for those before them."""
    unnamed = max(0, ndim - len(dims))
    return (*(f"batch axis {i}" for i in range(unnamed)), *dims[len(dims) - ndim + unnamed :])


def _along(along, name, bad, axis):
    """Text on the wrong entries along one axis, or "" if they have no simple pattern."""
    length = along.size
    where = np.flatnonzero(along)
    if length < 2 or where.size == length or where.size == 0:
        return ""
    first, last = int(where[0]), int(where[-1])
    every = "every entry" if np.take(bad, where, axis=axis).all() else "entries"
    if where.size == 1:
        position = "the last " if first == length - 1 else ""
        return f"{every} with {name} = {first} wrong, {position or 'one '}of {length}, no other"
    if where.size == last - first + 1:
        if last == length - 1:
            return f"{every} with {name} ≥ {first} wrong, none before"
        if first == 0:
            return f"{every} with {name} ≤ {last} wrong, none after"
        return f"{every} with {first} ≤ {name} ≤ {last} wrong, no other"
    steps = set(np.diff(where).tolist())
    if len(steps) == 1:
        return f"{every} with {name} = {first}, {first + steps.pop()}, … wrong, no other"
    return ""
