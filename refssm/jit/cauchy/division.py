"""Complex division by Smith's method, and a Cauchy sum with it: for nodes where |z − w|² over- or
underflows."""

import numpy as np

from refssm.jit._compiling.parts import part


@part
def quotient(x, d):
    """x / d by Smith's method; ∞ or NaN if d = 0, as in NumPy."""
    if d.real == 0 and d.imag == 0:
        return complex(x.real / 0.0, x.imag / 0.0)
    if abs(d.real) >= abs(d.imag):
        ratio = d.imag / d.real
        scale = d.real + d.imag * ratio
        return complex((x.real + x.imag * ratio) / scale, (x.imag - x.real * ratio) / scale)
    ratio = d.real / d.imag
    scale = d.real * ratio + d.imag
    return complex((x.real * ratio + x.imag) / scale, (x.imag * ratio - x.real) / scale)


@part
def carefully(v, w, z):
    """The sum at one node by Smith's division."""
    total = 0j
    for n in range(v.size):
        total += quotient(np.complex128(v[n]), z - np.complex128(w[n]))
    return total
