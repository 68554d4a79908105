"""The circle, warped by the step size: where HOPE samples its transfer function.

    z' = ((1 + dt) ω + dt − 1) / ((dt − 1) ω + dt + 1),   ω = e^{iθ},   tan(θ'/2) = tan(θ/2) / dt

The bilinear map with step size 2, s = (z' − 1)/(z' + 1), makes the discrete system continuous; the
one with another step size, dt s = (ω − 1)/(ω + 1), makes it discrete again. Both map the unit
circle to the imaginary axis, so z' stays on the unit circle.
"""

import numpy as np

from refssm._numerics.overridable import overridable
from refssm._numerics.roots import turned


def half_angles(l, *arguments):
    """cos θ/2 and sin θ/2, θ_j = 2πj/l, at least in double precision; cos = 0 at j = l/2."""
    return turned(np.arange(l), 2 * l, np.finfo(np.result_type(*arguments, np.float64)).dtype.type)


@overridable
def all_pass(h, dt, l):
    """1/z'_j = (dt cos θ/2 − i sin θ/2) / (dt cos θ/2 + i sin θ/2): (…, l).

    The judge's tracked arrays bring their own rule (`__array_function__`): a good program computes
    this to one rounding error, however near 1 the nodes are and however small the step size.
    """
    c, s = half_angles(l, h, dt)
    x = np.asarray(dt)[..., None] * c
    return (x - 1j * s) / (x + 1j * s)


@overridable
def powers(p, n):
    """p_j^{i+1} = (p_j^64)^a p_j^b, i + 1 = 64 a + b, i = 0 … n−1: (…, l, n).

    NumPy multiplies where an exponent is below 100. For larger ones it takes a logarithm, and where
    p is near −1 its power errs by π i u. The judge's tracked arrays bring their own rule.
    """
    a, b = np.divmod(np.arange(1, n + 1), 64)
    p = p[..., None]
    return (p**64) ** a * p**b


@overridable
def slope(h, dt, l):
    """sin θ'/dt = −∂θ'/∂dt = 2 sin θ/2 cos θ/2 / ((dt cos θ/2)² + (sin θ/2)²): (…, l).

    The judge's tracked arrays bring their own rule (`__array_function__`): most programs compute a
    sine of θ', whose rounding error remains where it should be 0.
    """
    c, s = half_angles(l, h, dt)
    x = np.asarray(dt)[..., None] * c
    return 2 * s * c / (x * x + s * s)
