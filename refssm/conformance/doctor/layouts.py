"""The layouts in which public code has the axes of an operator, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from refssm._declaration.layout import Axes, canonical, parse
from refssm._declaration.operator import Operator

MOST = 40
PLACES = ("after", "own", "last", "first")  # of time among the axes of an array


def layouts(op: Operator) -> list[str]:
    """The canonical layout, then others: time first or last, without batch axes, merged heads."""
    usual = canonical(op)
    arrays, count = [*usual.inputs, *usual.outputs], len(usual.inputs)
    found = dict.fromkeys([str(usual)])
    for omitted in _omitted(op.batch_names):
        for place in PLACES:
            for merged in (False, True):
                axes = [_arranged(op, a, place, omitted, merged) for a in arrays]
                sides = (", ".join(side) for side in (axes[:count], axes[count:]))
                text = " -> ".join(sides)
                if _fits(op, text):
                    found.setdefault(text)
    return [*found][:MOST]


def _omitted(batch: Axes) -> Iterator[Axes]:
    """Batch axes that a function may lack: none, some, all of them; the inner ones first."""
    for count in range(len(batch) + 1):
        yield from combinations(reversed(batch), count)


def _arranged(op: Operator, array: Axes, place: str, omitted: Axes, merged: bool) -> str:
    """The axes of one array with time at a place."""
    axes = [axis for axis in array if axis != "1" and axis not in omitted]
    time = op.leading
    if time in axes and place != "own":
        axes.remove(time)
        outer = int(axes[:1] == [*op.batch_names[:1]])
        axes.insert({"after": outer, "last": len(axes), "first": 0}[place], time)
    text = " ".join(axes)
    return text.replace("g h", "(g h)") if merged else text


def _fits(op: Operator, text: str) -> bool:
    from refssm._declaration.layout import in_layout

    try:
        parse(in_layout(op, text), text)
    except ValueError:
        return False
    return True
