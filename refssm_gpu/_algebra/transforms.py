"""Transforms of real signals whose rows never meet, and lengths that cuFFT transforms fast.

cuFFT packs pairs of rows of an odd length into complex ones: NaN of one row, and the rounding of a
large one, then reach its neighbour (`docs/findings.md`). So an odd length is transformed as complex
numbers, which costs twice the work; an even length is not packed.
"""

from functools import lru_cache

from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import Array, namespace

FACTORS = (2, 3, 5, 7)  # for which cuFFT has kernels of its own


def half_spectrum(u: Array, p: int) -> Array:
    """The first p // 2 + 1 entries of the transform of p numbers; the others are conjugate."""
    xp = namespace(u)
    if p % 2 == 0:
        return xp.fft.rfft(u, n=p)
    return xp.fft.fft(xp.astype(u, xp.result_type(u, xp.complex64)), n=p)[..., : p // 2 + 1]


def real_signal(half: Array, p: int) -> Array:
    """The p real numbers with this half of a spectrum; the imaginary part at node 0 is dropped."""
    xp = namespace(half)
    if p % 2 == 0:
        return xp.fft.irfft(half, n=p)
    others = conj(xp.flip(half[..., 1:], axis=-1))
    return xp.real(xp.fft.ifft(xp.concat([half, others], axis=-1)))


@lru_cache(1024)
def good_length(least: int) -> int:
    """The smallest even product of powers of FACTORS that is not below `least`.

    A real transform halves it.
    """
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
