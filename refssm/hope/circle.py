"""The circle as a step warps it: where HOPE samples its transfer function.

    z' = ((1 + dt) ω + dt − 1) / ((dt − 1) ω + dt + 1),   ω = e^{iθ},   tan(θ'/2) = tan(θ/2) / dt

A system in discrete time is taken to continuous time by s = (z' − 1)/(z' + 1), the bilinear map
of step 2, and brought back with another step, dt s = (ω − 1)/(ω + 1). Both leave the circle what
it is.
"""

import numpy as np

from refssm._overridable import overridable
from refssm._roots import turned


def half_angles(l, *arguments):
    """cos θ/2 and sin θ/2, θ_j = 2πj/l, in double precision at least; the cosine of l/2 is 0."""
    return turned(np.arange(l), 2 * l, np.finfo(np.result_type(*arguments, np.float64)).dtype.type)


@overridable
def all_pass(h, dt, l):
    """1/z'_j = (dt cos θ/2 − i sin θ/2) / (dt cos θ/2 + i sin θ/2): (…, l).

    Tracked arrays take part by NumPy's protocol (NEP 18): a good program has it right to a
    rounding, however near 1 the nodes are and however small the step.
    """
    c, s = half_angles(l, h, dt)
    x = np.asarray(dt)[..., None] * c
    return (x - 1j * s) / (x + 1j * s)


def powers(p, n):
    """p_j^{i+1}, i = 0 … n−1: (…, l, n)."""
    return p[..., None] ** np.arange(1, n + 1)


@overridable
def slope(h, dt, l):
    """sin θ'/dt = −∂θ'/∂dt = 2 sin θ/2 cos θ/2 / ((dt cos θ/2)² + (sin θ/2)²): (…, l).

    Tracked arrays take part by NumPy's protocol (NEP 18): most programs have a sine of θ' here,
    which is not 0 where it should be.
    """
    c, s = half_angles(l, h, dt)
    x = np.asarray(dt)[..., None] * c
    return 2 * s * c / (x * x + s * s)
