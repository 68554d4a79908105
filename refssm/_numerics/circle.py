"""Angles: π in any precision, an angle without its whole turns, pairs of numbers turned by angles.

The judge's arrays bring rules of their own for `within_turn` and `summed_angles`
(`__array_function__`).
"""

import numpy as np

from refssm._numerics.broadcasting import with_batch
from refssm._numerics.overridable import overridable


def pi_as(x):
    """π, rounded to the type of x."""
    one = np.ones((), np.finfo(x.dtype).dtype)
    return 4 * np.arctan(one)


@overridable
def within_turn(x):
    """x − 2π ⌊x/2π⌋, an angle from 0 to 2π."""
    turn = 2 * pi_as(x)
    return x - turn * np.floor(x / turn)


@overridable
def summed_angles(moves, first, begins):
    """φ_t = φ_{t-1} + moves_t without whole turns, from `first`, or 0 where a sequence `begins`.

    Signature ``(l,n),(n),(l)->(l,n)``; leading axes broadcast.
    """
    batch = np.broadcast_shapes(moves.shape[:-2], first.shape[:-1], begins.shape[:-1])
    phase, found = with_batch(first, 1, batch), []
    for t in range(moves.shape[-2]):
        phase = within_turn(kept(phase, begins, t) + moves[..., t, :])
        found.append(phase)
    return np.stack(found, axis=-2) if found else moves + phase[..., None, :]


def kept(x, begins, t: int):
    """A row of numbers, or exactly 0 where a sequence begins; selected, so NaN does not pass."""
    return np.where(begins[..., t, None], 0, x) if begins[..., t].any() else x


def turned(x, c, s):
    """Each pair of neighbours (x_0, x_1) as (x_0 c − x_1 s, x_0 s + x_1 c)."""
    first, second = pairs(x)
    both = np.stack([first * c - second * s, first * s + second * c], axis=-1)
    return both.reshape(*both.shape[:-2], 2 * both.shape[-2])


def moment(x, dx):
    """x_0 dx_1 − x_1 dx_0 of each pair: the cotangent of the angle by which x was turned."""
    (first, second), (dfirst, dsecond) = pairs(x), pairs(dx)
    return first * dsecond - second * dfirst


def pairs(x):
    """The first and the second number of each pair of neighbours."""
    split = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
    return split[..., 0], split[..., 1]
