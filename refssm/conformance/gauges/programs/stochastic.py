"""Arrays of single precision whose operations round up or down at random [vignes2004].

Copies of a case move a number that a program computes by less than a rounding of it, where that is
near 1, as ρ = (1 − dt)/(1 + dt): its nearest rounding is the same on all of them, and may happen to
be exact. Here each rounded number of each operation is one of its two neighbours. Exact results
stay.
"""

from __future__ import annotations

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


def stochastic(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The array as one that rounds at random; as it is, if it is not of single precision."""
    if a.dtype not in SINGLES:
        return a
    own = a.view(Stochastic)
    assert isinstance(own, Stochastic)
    own.rng = rng
    return own


def _plain(x):
    return x.view(np.ndarray) if isinstance(x, Stochastic) else x


def _wide(x):
    """An array of single precision in double precision; Python's numbers have no precision."""
    return x.astype(SINGLES[x.dtype]) if getattr(x, "dtype", None) in SINGLES else x
