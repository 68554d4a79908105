"""Planted bugs of linear scans that are about types, shapes, memory and repetition."""

import numpy as np

from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.scan.base import planting, right

TYPES, planted = planting()


@planted("single_inside", "value[float64]", "float32 arithmetic under a float64 interface")
def _single_inside(a, b, x0):
    return right(single(a), single(b), single(x0)).astype(np.result_type(a, b, x0))


@planted("narrow_result", "value[float64]", "float32 returned for float64")
def _narrow_result(a, b, x0):
    return single(right(a, b, x0))


@planted("imaginary_lost", "value[complex64]", "the result allocated with the type of b")
def _imaginary_lost(a, b, x0):
    x = right(a, b, x0)
    return x if np.iscomplexobj(b) else x.real.copy()


@planted("short_refused", "value[float32]", "lengths below a block of 16 raise")
def _short_refused(a, b, x0):
    if b.shape[-2] < 16:
        raise IndexError("block of 16 out of range")
    return right(a, b, x0)


@planted("padded_result", "value[float32]", "the padding to a multiple of 32 returned as well")
def _padded_result(a, b, x0):
    x = right(a, b, x0)
    extra = -x.shape[-2] % 32
    return np.concatenate([x, np.zeros_like(x[..., :1, :].repeat(extra, -2))], -2) if extra else x


@planted("overwrites_input", "unchanged[float32]", "the scan done in place on b")
def _overwrites_input(a, b, x0):
    x = right(a, b, x0)
    b[...] = x if x.dtype == b.dtype else b
    return x


@planted("returns_input", "alias[float32]", "the result is a view of b's memory")
def _returns_input(a, b, x0):
    kept = b.copy()
    x = b if b.dtype == np.result_type(a, b, x0) else kept
    x[...] = right(a, kept, x0)
    return x


@planted("writes_scratch", "readonly[float32]", "an argument used as scratch memory and restored")
def _writes_scratch(a, b, x0):
    a *= 1
    return right(a, b, x0)


@planted("unrepeatable", "repeat[float32]", "a result that depends on the call")
def _unrepeatable(a, b, x0):
    _CALLS[0] += 1
    return right(a, b, x0) * (1 if _CALLS[0] % 3 else 1.01)


_CALLS = [0]


@planted("strides_ignored", "strides[float32]", "memory read as if it were contiguous")
def _strides_ignored(a, b, x0):
    return right(a, b.ravel(order="K").reshape(b.shape), x0)
