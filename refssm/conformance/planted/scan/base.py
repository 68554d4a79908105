"""What the planted bugs of linear scans are made from: a right scan, step by step."""

import numpy as np


def planting():
    """An empty table of (name, check, what, function of a, b, x0), and what fills it."""
    table = []

    def planted(name, caught_by, what):
        def register(function):
            table.append((name, caught_by, what, function))
            return function

        return register

    return table, planted


def stepwise(step, a, b, x0):
    """x_k = step(k, a_k, x_{k-1}, b_k), stored for every k."""
    a, b, start = np.broadcast_arrays(a, b, x0[..., None, :])
    x = np.empty(b.shape, np.result_type(a, b, x0))
    state = start[..., 0, :].astype(x.dtype) if b.shape[-2] else x0
    for k in range(b.shape[-2]):
        state = step(k, a[..., k, :], state, b[..., k, :])
        x[..., k, :] = state
    return x


def right(a, b, x0):
    """The scan without a bug, to plant one around."""
    return stepwise(lambda k, a_k, x, b_k: a_k * x + b_k, a, b, x0)
