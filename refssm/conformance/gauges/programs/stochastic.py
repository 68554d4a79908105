"""Arrays of single precision that round up or down at random [vignes2004], or sum in order.

Copies of a case move a number that a program computes by less than a rounding of it, where that is
near 1, as ρ = (1 − dt)/(1 + dt): its nearest rounding is the same on all of them, and may happen to
be exact. Here each rounded number of each operation is one of its two neighbours. Exact results
stay.

NumPy adds in pairs, so that an error grows with the logarithm of the number of terms. A loop that
adds n equal terms rounds to the same side again and again, and may err by n/2 roundings.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from refssm.conformance.gauges.programs.arithmetic import neighbour

SINGLES = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


class Stochastic(np.ndarray):
    """An array of single precision: ufuncs work in double precision and round at random.

    A sum is rounded once, at its end. What is no ufunc (products by `einsum`, transforms, cumulated
    sums) rounds as usual, and returns such an array again.
    """

    rng: np.random.Generator

    def __array_finalize__(self, other):
        if isinstance(other, Stochastic):
            self.rng = other.rng

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        given = [_plain(x) for x in inputs]
        if out is not None:
            keywords["out"] = tuple(map(_plain, out))
        rounded = getattr(ufunc, method)(*given, **keywords)
        if method == "at" or isinstance(rounded, tuple) or rounded.dtype not in SINGLES:
            return rounded
        keywords.pop("out", None)
        wide = getattr(ufunc, method)(*map(_wide, given), **keywords)
        result = neighbour(np.asarray(wide), rounded.dtype, self.rng)
        if out is None:
            return stochastic(result, self.rng)
        out[0][...] = result
        return out[0]

    def __array_function__(self, function, types, arguments, keywords):
        found = super().__array_function__(function, types, arguments, keywords)
        if isinstance(found, np.ndarray) and found.dtype in SINGLES:
            return stochastic(found, self.rng)
        return found


class InOrder(np.ndarray):
    """An array of single precision: sums and products of matrices add one term after the other."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        given = [_plain(x) for x in inputs]
        if ufunc is np.add and method == "reduce" and _of_all(keywords):
            result = _sum_in_order(given[0], keywords.get("axis", 0), keywords.get("keepdims"))
        elif ufunc is np.matmul and not keywords and min(a.ndim for a in given) > 1:
            result = _product_in_order("...ij,...jk->...ik", *given)
        else:
            if out is not None:
                keywords["out"] = tuple(map(_plain, out))
            result = getattr(ufunc, method)(*given, **keywords)
            if out is not None:
                return out[0] if len(out) == 1 else out
            return in_order(result) if isinstance(result, np.ndarray) else result
        if out is None:
            return in_order(result)
        out[0][...] = result
        return out[0]

    def __array_function__(self, function, types, arguments, keywords):
        if function is np.einsum and len(arguments) == 3 and not keywords:
            formula, *factors = arguments
            return in_order(_product_in_order(formula, *map(_plain, factors)))
        found = super().__array_function__(function, types, arguments, keywords)
        return in_order(found) if isinstance(found, np.ndarray) else found


def _of_all(keywords: Mapping) -> bool:
    """True for a sum of all terms in the type of the array, from 0 on."""
    usual = keywords.get("dtype") is None and keywords.get("where", True) is True
    return usual and "initial" not in keywords


def _sum_in_order(a: np.ndarray, axis, keepdims) -> np.ndarray:
    """The sum along one axis or several, term by term."""
    axes = tuple(range(a.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(sorted(k % a.ndim for k in axes))
    kept = [n for k, n in enumerate(a.shape) if k not in axes]
    number = prod(a.shape[k] for k in axes)  # not −1: another axis may have no entries
    terms = np.moveaxis(a, axes, range(-len(axes), 0)).reshape(*kept, number)
    total = np.add.accumulate(terms, -1)[..., -1] if terms.shape[-1] else terms.sum(-1)
    return np.expand_dims(total, axes) if keepdims else total


def _product_in_order(formula: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`np.einsum` of two factors; its one axis that both have and the result lacks in order."""
    given, result = formula.split("->")
    left, right = given.split(",")
    summed = [k for k in left if k in right and k not in result]
    if len(summed) != 1 or not (a.size and b.size):
        return np.einsum(formula, a, b)
    k = summed[0]
    a, b = np.moveaxis(a, _axis(left, k), 0), np.moveaxis(b, _axis(right, k), 0)
    one = formula.replace(k, "")
    total = np.einsum(one, a[0], b[0])
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + np.einsum(one, x, y)
    return total


def _axis(labels: str, label: str) -> int:
    """The place of a label, from the end: an ellipsis before it has any number of axes."""
    return labels.index(label) - len(labels)


def in_order(a: np.ndarray) -> np.ndarray:
    """The array as one that sums in order; as it is, if it is not of single precision."""
    return a.view(InOrder) if a.dtype in SINGLES else a


def stochastic(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The array as one that rounds at random; as it is, if it is not of single precision."""
    if a.dtype not in SINGLES:
        return a
    own = a.view(Stochastic)
    assert isinstance(own, Stochastic)
    own.rng = rng
    return own


def _plain(x):
    return x.view(np.ndarray) if isinstance(x, Stochastic | InOrder) else x


def _wide(x):
    """An array of single precision in double precision; Python's numbers have no precision."""
    return x.astype(SINGLES[x.dtype]) if getattr(x, "dtype", None) in SINGLES else x
