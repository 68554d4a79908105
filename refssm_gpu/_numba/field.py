"""The four element types of the kernels, and what a kernel computes with them.

Kernels are closures over a field: Numba compiles one for each. A Python literal would widen
float32 to float64, so constants are made by the field's own types.
"""

# pyright: reportAttributeAccessIssue=false
# (Numba makes attributes when it is imported)

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import complex64, complex128, cuda, float32, float64

from refssm import _division

Function = Callable[..., Any]


class Field(NamedTuple):
    """An element type, as Numba names it, and functions that compiled kernels call."""

    element: Any
    real: Any  # the type of its real part
    quotient: Function
    exponential: Function

    @property
    def name(self) -> str:
        """NumPy's name of the element type."""
        return str(self.element)


def _quotient(x, d):
    """x / d of real numbers."""
    return x / d


def _exponential(x):
    """e^x of a real number."""
    return math.exp(x)


def _complex_exponential(real):
    """e^x of complex numbers; e^(Re x) as a square, so that it may overflow where e^x does not."""
    half, zero = real(0.5), real(0)

    def exponential(x):
        root = math.exp(half * x.real)
        if x.imag == zero:
            return complex(root * root, x.imag)
        return complex(root * math.cos(x.imag) * root, root * math.sin(x.imag) * root)

    return exponential


_device = cuda.jit(device=True)
_smith, _divided, _real_exponential = map(_device, (_division.quotient, _quotient, _exponential))
FIELDS = {
    field.name: field
    for field in (
        Field(float32, float32, _divided, _real_exponential),
        Field(float64, float64, _divided, _real_exponential),
        Field(complex64, float32, _smith, _device(_complex_exponential(float32))),
        Field(complex128, float64, _smith, _device(_complex_exponential(float64))),
    )
}


def field_of(*arrays) -> Field:
    """The field of all these arrays."""
    return FIELDS[np.result_type(*(x.dtype for x in arrays)).name]
