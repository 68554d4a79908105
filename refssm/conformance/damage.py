"""The shape of the damage: which entries of an output are wrong, in a few words."""

import numpy as np


def describe(bad: np.ndarray, dims=()) -> str:
    """Say where `bad` is true, by the names of the last axes: "every entry with l ≥ 64"."""
    if bad.size == 1 or bad.all():
        return "every entry is wrong"
    names = _axis_names(bad.ndim, dims)
    for axis, name in enumerate(names):
        along = bad.any(axis=tuple(i for i in range(bad.ndim) if i != axis))
        text = _along(along, name, bad, axis)
        if text:
            return text
    return f"{int(bad.sum())} of {bad.size} entries are wrong"


def _axis_names(ndim, dims):
    """The last axes by name, those before them by number."""
    unnamed = max(0, ndim - len(dims))
    return [f"batch axis {i}" for i in range(unnamed)] + list(dims[len(dims) - ndim + unnamed :])


def _along(along, name, bad, axis):
    """What can be said of one axis, or nothing."""
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
