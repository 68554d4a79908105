"""States of which a program may return one of several: brought to the other result's before they
are compared entry by entry.

The contract SCALED (`refssm/_declaration/contract.py`): the last output is m, a natural logarithm,
and the states before it are e^{−m} times what they are, with an m of the program's own choice. The
contract TURNED: one output is an angle, and so is that angle with whole turns more or less.
"""

from collections.abc import Sequence

import numpy as np

from refssm._declaration.operator import Operator


def comparable(op: Operator, outputs: Sequence, like: Sequence) -> tuple:
    """The outputs as those of `like` have them: states times e^(m − that m), and angles plus the
    whole turns that bring them next to those. As they are if m or an angle is no number, or if a
    shape is wrong, which the comparison says.
    """
    place = _place_of_angles(op)
    if place and _fit(outputs, like):
        near = _without_turns(outputs[place], np.asarray(like[place]))
        return *outputs[:place], near, *outputs[place + 1 :]
    if not has_scale(op) or not _fit(outputs, like):
        return tuple(outputs)
    *states, m = outputs[1:]
    wanted = np.asarray(like[-1])
    with np.errstate(all="ignore"):
        change = m.astype(np.longdouble) - wanted
        known = np.isfinite(change) & (change != 0)
        factor = np.exp(np.where(known, change, 0))
        moved = [_times(x, factor) for x in states]
    same = np.where(np.isfinite(m), wanted, m).astype(m.dtype)
    return outputs[0], *moved, same


def as_expected(op: Operator, outputs: Sequence, gauges: Sequence) -> tuple:
    """The outputs in the units of their bounds: those of the right values."""
    return comparable(op, outputs, [gauge.value for gauge in gauges])


def with_excess(op: Operator, cotangents: Sequence, outputs: Sequence) -> list:
    """The cotangents of a loss that depends on e^m S alone: dm is Σ S ∘ dS over all states."""
    if not has_scale(op):
        return list(cotangents)
    *others, dm = cotangents
    total = np.zeros(dm.shape)
    for dx, x in zip(others[1:], outputs[1:-1], strict=True):
        axes = tuple(range(dm.ndim, np.ndim(x)))
        total = total + (np.asarray(dx, float) * np.asarray(x, float)).sum(axes)
    return [*others, total]


def has_scale(op: Operator) -> bool:
    """True if the operator returns states in a scale."""
    return op.contract.scaled_by_last and len(op.outputs) > 1


def _fit(outputs, like) -> bool:
    """True if the outputs are arrays of the shapes of `like`, and m is real."""
    shapes = zip(outputs, like, strict=False)
    arrays = len(outputs) == len(like) and all(isinstance(y, np.ndarray) for y in outputs)
    return arrays and all(y.shape == np.shape(x) and y.dtype.kind == "f" for y, x in shapes)


def _place_of_angles(op: Operator) -> int:
    """The number of the output that is an angle; 0, that of the first output, if there is none."""
    names = [name.removesuffix("_next") for name in op.outputs]
    return names.index(op.contract.turns) if op.contract.turns in names else 0


def _without_turns(x, wanted):
    """The angles x, plus whole turns, within half a turn of those wanted, in the same type or a
    wider one: near 0 a turn is rounded by more than the angle.
    """
    wide = np.longdouble
    turn = 8 * np.arctan(wide(1))
    with np.errstate(all="ignore"):
        away = x.astype(wide) - wanted
        number = np.where(np.isfinite(away), np.round(away / turn), 0)
        return np.where(number == 0, x, x - number * turn).astype(x.dtype)


def _times(x, factor):
    """States, times the factor of each."""
    factor = factor.reshape(factor.shape + (1,) * (x.ndim - factor.ndim))
    return np.where(factor == 1, x, x * factor).astype(x.dtype)
