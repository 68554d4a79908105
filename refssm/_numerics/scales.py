"""A state that is kept as S = e^{−m} times what it is: any m is right that leaves no overflow.

The judge's arrays bring rules of their own for these functions (`__array_function__`).
"""

import numpy as np

from refssm._numerics.overridable import overridable


@overridable
def as_scale(m):
    """m as it is. Its rounding is no error: S is divided by e^m for the m that there is."""
    return m


@overridable
def in_units(dS, m):
    """dS as it is: a number of units of e^{−m}, so that an error of m is one of dS."""
    return dS


@overridable
def as_excess(x):
    """dm − Σ S dS: 0 for a loss that depends on e^m S alone, so a program may leave it out."""
    return x


@overridable
def as_remains(x, sizes, *given):
    """x as it is, what a step leaves for m: a sum in which all terms but those of eps cancel.

    A program that differentiates m as well adds the roundings of those terms. `sizes(*given)` says
    for plain arrays how large they are, what may overflow, how small m may be, and how many terms
    there are.
    """
    del sizes, given
    return x


@overridable
def parted(left, below):
    """What of the cotangent of max(b, i) goes to b, and what to i: all of it to the larger one."""
    of_b = np.where(below, 0, left)
    return of_b, left - of_b


@overridable
def larger_vjp(dz, a, floor):
    """The gradient of max(|a|, floor) for a: dz with the sign of a, 0 below the floor."""
    return np.where(np.abs(a) < floor, 0, dz * np.sign(a))  # NaN is not below: it stays
