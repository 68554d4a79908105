"""The error rules of an all-pass, of a cascade of them, and of how dt changes their phase.

Followed operation by operation the bounds of a cascade grow by 1/dt a stage; the errors do not,
for a stage passes on what it gets without making it larger. Importing this module registers the
rules.
"""

import numpy as np

from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met
from refssm.hope.circle import all_pass, slope
from refssm.hope.impulses import all_pass_responses

LIBRARY = 4  # of a function of NumPy's


@rule(FUNCTIONS, all_pass_responses)
def _all_pass_responses(dt, count, l):
    """A rounding a stage for all entries, at most 1; |∂s_j/∂dt| = j |s_{j−1} − s_{j+1}|/(2 dt)."""
    dt = lifted(dt)
    more = all_pass_responses(dt.value, count + 1, l)
    s, j = more[..., :-1, :], np.arange(count)[:, None]
    before = np.concatenate([0 * s[..., :1, :], s[..., :-1, :]], axis=-2)
    slopes = j * np.abs(before - more[..., 1:, :]) / (2 * dt.value[..., None, None])
    met(np.abs(s))
    carried = slopes[..., None] * dt.errors[..., None, None, :]
    return Tracked(s, j[..., None] + carried)


@rule(FUNCTIONS, all_pass)
def _all_pass(h, dt, l):
    """One rounding, but where it is 1 or −1; |∂p/∂dt| = |sin θ'/dt|."""
    h, dt = lifted(h).value, lifted(dt)
    p = all_pass(h, dt.value, l)
    made = np.where(p.imag == 0, 0.0, 1.0)[..., None]
    return Tracked(p, made + np.abs(slope(h, dt.value, l))[..., None] * dt.errors[..., None, :])


@rule(FUNCTIONS, slope)
def _slope(h, dt, l):
    """4 for the slope, 4/dt for a sine of θ' or what powers leave; |∂slope/∂dt| ≤ 2 |slope|/dt."""
    dt = lifted(dt)
    value, step = slope(lifted(h).value, dt.value, l), dt.value[..., None]
    met(np.abs(value))
    made = LIBRARY * (np.abs(value) + 1 / np.abs(step))
    carried = (2 * np.abs(value / step))[..., None] * dt.errors[..., None, :]
    return Tracked(value, made[..., None] + carried)
