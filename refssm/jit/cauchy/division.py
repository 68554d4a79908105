"""Complex division by Smith's method, and a Cauchy sum with it: for nodes where |z − w|² over- or
underflows."""

from typing import Any

import numpy as np

from refssm._numerics import division
from refssm.jit._compiling.parts import part

quotient: Any = part(division.quotient)


@part
def carefully(v, w, z):
    """The sum at one node by Smith's division."""
    total = 0j
    for n in range(v.size):
        total += quotient(np.complex128(v[n]), z - np.complex128(w[n]))
    return total
