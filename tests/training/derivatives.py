"""Derivatives of a formula without its gradient: by a complex step, and by differences.

With a step of i·2^-2000 nothing is subtracted, so the derivative is as exact as the formula itself.
`clongdouble` has eleven bits more than double precision: with fewer than 2^11 roundings on a path,
errors stay below one unit of double precision.
"""

import numpy as np

UNIT = 2.0**-53
STEP = np.longdouble(2) ** -2000
STEPS = (2.0**-10, 2.0**-11)


def jvp(f, xs, ts):
    """The derivative of f at the real arrays xs along ts, by a complex step."""
    moved = [x + 1j * (STEP * t) for x, t in zip(extended(xs), extended(ts), strict=True)]
    return np.imag(f(*moved)) / STEP


def extended(arrays):
    """Arrays in extended precision."""
    return [np.asarray(a, np.longdouble) for a in arrays]


def adjoint(f, vjp, dy, xs, ts):
    """⟨dy, J t⟩, ⟨vjp(dy), t⟩, and the size of their terms, all in extended precision."""
    (dy,) = extended([dy])
    left = dy * jvp(f, xs, ts)
    right = [g * t for g, t in zip(vjp(dy, *extended(xs)), extended(ts), strict=True)]
    size = np.abs(left).sum() + sum(np.abs(r).sum() for r in right)
    return left.sum(), sum(r.sum() for r in right), size


def slopes(loss, p, t):
    """Central differences of `loss` of named arrays along t, with two steps."""

    def at(h):
        return loss({name: a + h * t[name] for name, a in p.items()})

    return [(at(h) - at(-h)) / (2 * h) for h in STEPS]


def along(gradients, t):
    """Re⟨g, t⟩ over all named arrays."""
    return float(sum(np.vdot(g, t[name]).real for name, g in gradients.items()))


def direction(rng, p):
    """Standard normal arrays like those of p; complex where p is."""
    drawn = {}
    for name, a in p.items():
        z = rng.standard_normal(a.shape)
        drawn[name] = z + 1j * rng.standard_normal(a.shape) if a.dtype.kind == "c" else z
    return drawn
