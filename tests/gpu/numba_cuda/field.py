"""The four element types of the kernels, and what a kernel computes with them.

Kernels are closures over a field: Numba compiles one for each. A Python literal would widen
float32 to float64, so constants are made by the field's own types.
"""

# pyright: reportAttributeAccessIssue=false
# (Numba makes attributes when it is imported)

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba.cuda
import numpy as np
from numba.cuda import libdevice

from refssm._numerics import division

Function = Callable[..., Any]
# for type checkers, which would see what these names are in Python, not in a kernel
cuda: Any = numba.cuda
int64: Any = numba.int64
float32: Any = numba.float32
float64: Any = numba.float64
complex64: Any = numba.complex64
complex128: Any = numba.complex128


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


def _complex_exponential(real, cospi, sinpi):
    """e^x of complex numbers; e^(Re x) as a square, so that it may overflow where e^x does not.

    The angle θ = Im x in half turns, θ/π, has two roundings: it is off by at most 2u|θ|, as θ
    already is where it is a rounded product. `math.cos` would reduce large angles in double
    precision and in local memory.
    """
    half, zero, half_turns = real(0.5), real(0), real(1 / math.pi)

    def exponential(x):
        root, turn = math.exp(half * x.real), x.imag * half_turns
        if x.imag == zero:
            return complex(root * root, x.imag)
        return complex(root * cospi(turn) * root, root * sinpi(turn) * root)

    return exponential


_device = cuda.jit(device=True)
_smith, _divided, _real_exponential = map(_device, (division.quotient, _quotient, _exponential))
_turned32 = _device(_complex_exponential(float32, libdevice.cospif, libdevice.sinpif))
_turned64 = _device(_complex_exponential(float64, libdevice.cospi, libdevice.sinpi))
FIELDS = {
    field.name: field
    for field in (
        Field(float32, float32, _divided, _real_exponential),
        Field(float64, float64, _divided, _real_exponential),
        Field(complex64, float32, _smith, _turned32),
        Field(complex128, float64, _smith, _turned64),
    )
}


@_device
def smaller(i, j):
    """The smaller one of two numbers: Numba 0.68 does not compile `min` for the GPU."""
    return i if i < j else j


def field_of(*arrays) -> Field:
    """The field of all these arrays."""
    return FIELDS[np.result_type(*(x.dtype for x in arrays)).name]
