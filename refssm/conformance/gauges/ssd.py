"""The error rule of a clip's gradient, which jumps at both limits.

Beside a limit, within the error of what is clipped, a right program may be on the other side of it:
there the gradient is right, or off by all of it. Importing this module registers the rule.
"""

import numpy as np

from refssm import activations
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, jumped, lifted


@rule(FUNCTIONS, activations.clip_vjp)
def _clip_vjp(dy, x, low, high):
    dy, x = lifted(dy), lifted(x)
    gap = np.minimum(np.abs(x.value - low), np.abs(x.value - high))
    undecided = (x.errors > 0) & (x.errors >= jumped(gap)[..., None])
    jump = jumped(np.abs(dy.value))[..., None]
    z = activations.clip_vjp(dy.value, x.value, low, high)
    outside = np.broadcast_to((x.value < low) | (x.value > high), z.shape)[..., None]
    errors = np.where(outside, 0, dy.errors)
    return Tracked(z, np.where(undecided, np.maximum(errors, dy.errors + jump), errors))
