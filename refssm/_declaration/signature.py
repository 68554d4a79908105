"""Parse signatures in NumPy's form, "(l,n),(n)->(l)", and leading axes, "b d, d"."""

import re
from collections.abc import Mapping

Dims = tuple[tuple[str, ...], ...]


def cores(side: str) -> Dims:
    """ "(l,n),(n)" -> (("l", "n"), ("n",))."""
    return tuple(tuple(filter(None, core.split(","))) for core in re.findall(r"\(([^)]*)\)", side))


def length_of(dim: str, sizes: Mapping[str, int]) -> int:
    """The size of a core dimension; "2n" is twice n, "2" is two."""
    if dim.isdigit():
        return int(dim)
    return int(dim[0]) * sizes[dim[1:]] if dim[0].isdigit() else sizes[dim]


def aligned(batch: str, count: int) -> Dims:
    """Leading axes of each of `count` arguments; "1" if one lacks an axis between others."""
    groups, order = _groups(batch) if batch else [[]] * count, leading_axes(batch)
    rows = ([axis if axis in group else "1" for axis in order] for group in groups)
    return tuple(tuple(row[_outermost(row) :]) for row in rows)


def _groups(batch: str) -> list[list[str]]:
    """The declared leading axes, one list per argument."""
    return [group.split() for group in batch.split(",")]


def leading_axes(batch: str) -> list[str]:
    """All axes once, in the order of the first group that has each: "d, b d" gives b d."""
    order: list[str] = []
    for group in _groups(batch):
        for place, axis in enumerate(group):
            if axis not in order:
                later = [i for i, other in enumerate(order) if other in group[place:]]
                order.insert(min(later, default=len(order)), axis)
    return order


def _outermost(axes) -> int:
    """Position of the first axis that is not the placeholder "1"."""
    return next((i for i, axis in enumerate(axes) if axis != "1"), len(axes))
