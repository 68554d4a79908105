"""Error rules of a state that is kept as e^{−m} S. Importing this module registers them."""

import numpy as np

from refssm._numerics import scales
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, jumped, lifted


@rule(FUNCTIONS, scales.as_scale)
def _as_scale(m):
    """Without errors: what follows is divided by e^m for this m."""
    return Tracked(m.value, np.zeros_like(m.errors))


@rule(FUNCTIONS, scales.in_units)
def _in_units(dS, m):
    """With the error of m, relative to dS."""
    dS, m = lifted(dS), lifted(m)
    of_m = m.errors.reshape((*m.shape, *[1] * (dS.ndim - m.ndim), 2))
    return Tracked(dS.value, dS.errors + np.abs(dS.value)[..., None] * of_m)


@rule(FUNCTIONS, scales.as_excess)
def _as_excess(x):
    """Right, or off by all of it."""
    return Tracked(x.value, x.errors + jumped(np.abs(x.value))[..., None])


@rule(FUNCTIONS, scales.larger_vjp)
def _larger_vjp(dz, a, floor):
    """Where |a| is within its error of the floor, the gradient is right or off by all of it."""
    dz, a, floor = lifted(dz), lifted(a), lifted(floor)
    gap = jumped(np.abs(np.abs(a.value) - floor.value))[..., None]
    z = scales.larger_vjp(dz.value, a.value, floor.value)
    errors = np.where((np.abs(a.value) < floor.value)[..., None], 0, dz.errors)
    undecided = a.errors + floor.errors >= gap  # at a tie, too: half of it is right as well
    jump = dz.errors + jumped(np.abs(dz.value))[..., None]
    return Tracked(z, np.where(undecided, np.maximum(errors, jump), errors))
