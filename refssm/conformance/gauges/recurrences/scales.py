"""Error rules of a state that is kept as e^{−m} S. Importing this module registers them."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from refssm._numerics import scales
from refssm.conformance.gauges.rules import rule, tree
from refssm.conformance.gauges.tracked import (
    FUNCTIONS,
    Tracked,
    jumped,
    least_rounding,
    lifted,
    met,
    modulus,
)

# From S, f, g, k v and the G of the next step, without those of the sums: 3 of f S + g k v, 1 of
# its product with q, 3 of dy/d, y and dd, 3 of q dy/d + f G, 3 of f (S ∘ G), 3 of four terms added
STEP = 16
_counted = True


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


@rule(FUNCTIONS, scales.as_remains)
def _as_remains(x, sizes, *given):
    """With the roundings of the terms that cancel, in a program that differentiates m.

    dd = −dy·y/d may underflow where d is e^{−m}; it is multiplied by e^{−m}. y/d may overflow, also
    where dy is 0.
    """
    x = lifted(x)
    if not _counted:
        return x
    total, slopes, least, (entries, steps) = sizes(*_plain(given))
    met(np.abs(slopes))
    floor = least_rounding(x.dtype) * np.exp(-np.minimum(least, 0))
    charge = STEP + tree(entries) + tree(entries * steps)
    more = charge * (modulus(total) + floor)
    return Tracked(x.value, x.errors + more[..., None])


def _plain(given):
    """Values without errors."""
    if isinstance(given, tuple | list):
        return tuple(map(_plain, given))
    return given.value if isinstance(given, Tracked) else given


@rule(FUNCTIONS, scales.parted)
def _parted(left, below):
    """With all of its errors at both: another m has the maximum at another step."""
    left = lifted(left)
    parts = scales.parted(left.value, below)
    return tuple(Tracked(part, np.broadcast_to(left.errors, (*part.shape, 2))) for part in parts)


@contextmanager
def of_the_reference() -> Iterator[None]:
    """Context of bounds for the reference's own gradients, in which nothing is left for m."""
    global _counted
    outer, _counted = _counted, False
    try:
        yield
    finally:
        _counted = outer
