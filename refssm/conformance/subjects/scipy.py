"""SciPy: `lfilter` is a linear scan whose decay is constant in time."""

import numpy as np
from scipy.signal import lfilter

from refssm.testing import implements


def _constant_in_time(x):
    """Every decay that of the first step."""
    a = np.broadcast_to(x["a"][..., :1, :], x["a"].shape).copy()
    return {**x, "a": a}


def _filtered(a, b, x0):
    """x_k = a x_{k-1} + b_k channel by channel, from x_{-1} = x0, in the common type."""
    dtype = np.result_type(a, b, x0)
    x = np.empty(b.shape, dtype)
    for i in np.ndindex(*b.shape[:-2], b.shape[-1]):
        channel = (*i[:-1], slice(None), i[-1])
        pole = a[(*i[:-1], 0, i[-1])].astype(dtype)
        start = (pole * x0[i]).reshape(1)
        one = np.ones(1, dtype)
        denominator = np.array([1, -pole], dtype)
        x[channel], _ = lfilter(one, denominator, b[channel].astype(dtype), zi=start)
    return x


@implements("linear_scan", only=_constant_in_time)
def linear_scan(a, b):
    """lfilter([1], [1, −a], b) along time."""
    if b.shape[-2] == 0:
        raise NotImplementedError("lfilter has no filter for no samples here")
    return _filtered(a, b, np.zeros_like(b[..., 0, :]))


@implements("linear_scan_from", only=_constant_in_time)
def linear_scan_from(a, b, x0):
    """The same with the initial condition zi = a x0."""
    if b.shape[-2] == 0:
        raise NotImplementedError("lfilter has no filter for no samples here")
    return _filtered(a, b, x0)
