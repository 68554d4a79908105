"""Complex division of one number by Smith's method, which mirrors on the CPU and the GPU compile.

Every operation keeps the precision of its operands, so there is no number literal in it.
"""


def quotient(x, d):
    """x / d by Smith's method; ∞ or NaN if d = 0, as in NumPy."""
    if not d:
        return complex(x.real / abs(d.real), x.imag / abs(d.real))
    if abs(d.real) >= abs(d.imag):
        ratio = d.imag / d.real
        scale = d.real + d.imag * ratio
        return complex((x.real + x.imag * ratio) / scale, (x.imag - x.real * ratio) / scale)
    ratio = d.real / d.imag
    scale = d.real * ratio + d.imag
    return complex((x.real * ratio + x.imag) / scale, (x.imag * ratio - x.real) / scale)
