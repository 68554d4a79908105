"""The error rules of angles without their whole turns. Importing this module registers them.

A whole turn more or less is no error: only sines and cosines of an angle are used, and angles are
compared on the circle.
"""

import numpy as np

from refssm._numerics import circle
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, modulus, rounded


@rule(FUNCTIONS, circle.within_turn)
def _within_turn(x):
    """The roundings of 2π and of its multiple, and that of the difference."""
    z = circle.within_turn(x.value)
    removed = rounded(x.value - z, 2, x.errors)
    return rounded(z, 1, removed.errors)


@rule(FUNCTIONS, circle.summed_angles)
def _summed_angles(moves, first, begins):
    """As of each addition and of what is left of it within a turn, one after the other."""
    moves, first = lifted(moves), lifted(first)
    phase = circle.summed_angles(moves.value, first.value, begins)
    before = np.concatenate([_row(first.value, phase), phase], axis=-2)[..., : phase.shape[-2], :]
    before = np.where(begins[..., None], 0, before)
    whole = before + moves.value
    made = modulus(whole) + 2 * modulus(whole - phase) + modulus(phase)
    made = np.broadcast_to(made[..., None] + moves.errors, (*phase.shape, 2))
    start = first.errors
    errors = []
    for t in range(phase.shape[-2]):
        start = np.where(begins[..., t, None, None], 0, start) + made[..., t, :, :]
        errors.append(start)
    return Tracked(phase, np.stack(errors, axis=-3) if errors else np.zeros((*phase.shape, 2)))


def _row(first, phase):
    """One more row of time, with the leading axes of `phase`."""
    return np.broadcast_to(first, (*phase.shape[:-2], phase.shape[-1]))[..., None, :]
