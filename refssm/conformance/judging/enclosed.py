"""Expected values by ball arithmetic, where the balls are far smaller than the errors to judge.

An enclosure (`refssm.enclosure`, which needs python-flint) computes in C and bounds its own error.
It needs about a fifth of the time that mpmath needs. The oracle in mpmath stays the definition: the
certificate of an operator comes from it, it decides wherever a ball is too large, and the tests
compare the two.
"""

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.gauges.gauge import Gauges

BITS = (192, 768)  # an oracle has 166; balls of thousands of steps grow, and need more
TIGHT = 1 / 1024  # the largest radius of a ball, in units of u·K0
# these enclosures add up all of the past at each time: l² operations, where the oracle needs l
OVER_THE_PAST = frozenset({"scan", "selective_scan", "ssd"})
# it has no closed form: it sums until the rest is small
SLOWER = frozenset({"hope_kernel_aliased"})


def enclosed_values(
    op: Operator, arrays, statics: Mapping, gauged: Gauges, unit: float
) -> tuple[np.ndarray, ...] | None:
    """The outputs in long double; None without python-flint, or if a ball is not tight."""
    beyond = any(a.dtype.char in "gG" for a in arrays)  # a ball is made of doubles
    if beyond or not _quick(op) or find_spec("flint") is None:
        return None
    from refssm.enclosure import middles

    for bits in BITS:
        found = [*zip(middles(op, arrays, statics, bits), gauged, strict=True)]
        tight = ((radius <= TIGHT * unit * gauge.k0.ravel()).all() for (_, radius), gauge in found)
        if all(tight):  # false if a radius is NaN
            return tuple(y.reshape(gauge.value.shape) for (y, _), gauge in found)
    return None


def _quick(op: Operator) -> bool:
    """True if the operator has an enclosure, and that is faster than the oracle."""
    past = op.family in OVER_THE_PAST and not op.name.endswith("_step")
    return "enclosure" not in op.lacks and not past and op.name not in SLOWER
