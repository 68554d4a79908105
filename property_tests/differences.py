"""Derivatives by differences in long double, for programs that take it."""

from contextlib import contextmanager

import mpmath
import numpy as np
import pytest
from layered import U

from refssm import activations

needs_long_double = pytest.mark.skipif(
    bool(np.finfo(np.longdouble).eps > U / 1000), reason="long double is no wider than double here"
)
LEVELS = 6  # steps 2^-5 … 2^-10 of the difference quotients


@contextmanager
def error_function_of_long_double():
    """SciPy's erf has no long double; mpmath's has."""
    erf = np.frompyfunc(
        lambda x: np.longdouble(mpmath.nstr(mpmath.erf(mpmath.mp.convert(x)), 25)), 1, 1
    )
    with pytest.MonkeyPatch.context() as patch, mpmath.workdps(30):
        patch.setattr(activations, "erf", lambda x: erf(x).astype(np.longdouble))
        yield


def extended(x):
    return x.astype(np.result_type(x, np.longdouble))


def derivative(f):
    """f'(0) by Romberg's extrapolation of central differences, and how far the last two differ."""
    row: list = []
    for level in range(LEVELS):
        e = np.longdouble(2.0) ** -(5 + level)
        new = [(f(e) - f(-e)) / (2 * e)]
        for j, old in enumerate(row):
            new.append(new[j] + (new[j] - old) / (4 ** (j + 1) - 1))
        previous, row = row, new
    return row[-1], abs(row[-1] - previous[-1])
