"""Rounding to fewer bits, for planted bugs that compute in such an arithmetic."""

import numpy as np


def to_bits(x, bits):
    """Round the significand to `bits` bits, ties to even; the range stays."""
    if np.iscomplexobj(x):
        return (to_bits(x.real, bits) + 1j * to_bits(x.imag, bits)).astype(x.dtype)
    significand, exponent = np.frexp(x)
    return np.ldexp(np.round(significand * 2.0**bits) / 2.0**bits, exponent).astype(x.dtype)


def float16(x):
    """Round to half precision, with its range."""
    if np.iscomplexobj(x):
        return (float16(x.real) + 1j * float16(x.imag)).astype(x.dtype)
    with np.errstate(all="ignore"):
        return x.astype(np.float16).astype(x.dtype)


def bfloat16(x):
    """Round to 8 bits, with the range of float32."""
    return to_bits(x, 8)


def tf32(x):
    """Round to 11 bits, with the range of float32, as inputs of a tensor core."""
    return to_bits(x, 11)


def single(x):
    """float32 or complex64, for any input type; flags stay as they are."""
    if x.dtype.kind in "bi":
        return x
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)
