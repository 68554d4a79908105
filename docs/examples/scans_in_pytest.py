"""Scans as pytest judges them: a right one, a wrong one, a wrong layout and a misspelt mark."""

import numpy as np
import pytest


@pytest.mark.refssm("linear_scan")
def scan(a, b):
    x = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    state = 0
    for k in range(x.shape[-2]):
        x[..., k, :] = state = a[..., k, :] * state + b[..., k, :]
    return x


@pytest.mark.refssm("linear_scan")
def chunked(a, b):
    """The state is lost between chunks of 64 steps."""
    x = scan(a, b)
    for start in range(64, x.shape[-2], 64):
        steps = slice(start, start + 64)
        x[..., steps, :] = scan(a[..., steps, :], b[..., steps, :])
    return x


@pytest.mark.refssm("linear_scan", layout="l b n, l b n -> l b n")
def time_first(a, b):
    return scan(a.swapaxes(0, 1), b.swapaxes(0, 1))


@pytest.mark.refssm("linear_scann")
def misspelt(a, b):
    return scan(a, b)
