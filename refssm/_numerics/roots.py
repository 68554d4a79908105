"""Roots of unity: 1, −1, ±i are exact, and so is ½ where sine or cosine is ½.

Powers of one rounded root would drift by up to l u, and 1 + ω at ω = −1 would be only rounding
error instead of 0.
"""

import numpy as np

PI = 4 * np.arctan(np.longdouble(1))


def roots_of_unity(l, precision):
    """ω_j = e^(−2πij/l), j = 0 … l−1, complex, in the given real precision."""
    cosine, sine = turned(np.arange(l), l, precision)
    return cosine - 1j * sine


def turned(j, l, precision):
    """cos 2πj/l and sin 2πj/l, each rounded once: first, the angle is reduced below an octant."""
    l = max(l, 1)
    octant, rest = np.divmod(8 * (j % l), l)  # integers: no rounding
    odd = octant % 2 == 1
    rest = np.where(odd, l - rest, rest)  # distance to the nearest axis; 8l units make a turn
    angle = PI * rest / (4 * l)
    c, s = np.cos(angle).astype(precision), np.sin(angle).astype(precision)
    s = np.where(3 * rest == 2 * l, c.dtype.type(0.5), s)
    s = np.where(odd, -s, s)
    quarter = (octant + 1) // 2 % 4
    return np.choose(quarter, [c, -s, -c, s]), np.choose(quarter, [s, c, -s, -c])
