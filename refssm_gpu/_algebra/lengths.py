"""Lengths that cuFFT transforms fast: products of powers of 2, 3, 5 and 7."""

from __future__ import annotations

from functools import lru_cache

FACTORS = (2, 3, 5, 7)  # for which cuFFT has kernels of its own


@lru_cache(1024)
def good_length(least: int) -> int:
    """The smallest such number that is even and not below `least`; a real transform halves it."""
    return 2 * _smooth(max(-(-least // 2), 1), FACTORS)


def _smooth(least: int, factors: tuple[int, ...]) -> int:
    """The smallest product of powers of `factors` that is not below `least`."""
    if least <= 1:
        return 1
    first, *others = factors
    if not others:
        return first ** next(e for e in range(least.bit_length() + 1) if first**e >= least)
    best, power = None, 1
    while best is None or power < best:
        found = power * _smooth(-(-least // power), tuple(others))
        best = found if best is None else min(best, found)
        power *= first
    return best
