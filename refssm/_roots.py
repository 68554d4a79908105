"""Roots of unity, the exact ones exact: 1, −1, ±i, and ½ where sine or cosine is ½.

Powers of one rounded root drift, by l u at the end, and 1 + ω at ω = −1 is then what rounding left
of 0.
"""

import numpy as np

PI = 4 * np.arctan(np.longdouble(1))


def roots_of_unity(l, precision):
    """ω_j = e^(−2πij/l), j = 0 … l−1, complex, of the given real precision."""
    cosine, sine = turned(np.arange(l), l, precision)
    return cosine - 1j * sine


def turned(j, l, precision):
    """cos 2πj/l and sin 2πj/l, each to a rounding: the angle is brought below an octant first."""
    l = max(l, 1)
    octant, rest = np.divmod(8 * (j % l), l)  # integers: nothing is rounded
    odd = octant % 2 == 1
    rest = np.where(odd, l - rest, rest)  # from the nearest axis, in 8l-ths of a turn
    angle = PI * rest / (4 * l)
    c, s = np.cos(angle).astype(precision), np.sin(angle).astype(precision)
    s = np.where(3 * rest == 2 * l, c.dtype.type(0.5), s)
    s = np.where(odd, -s, s)
    quarter = (octant + 1) // 2 % 4
    return np.choose(quarter, [c, -s, -c, s]), np.choose(quarter, [s, c, -s, -c])
