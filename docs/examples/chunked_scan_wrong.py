"""A scan in chunks of 64 that forgets the state at every chunk boundary: the bug to catch.

refssm verify docs/examples/chunked_scan_wrong.py
"""

import numpy as np


def linear_scan(a, b):
    x = np.empty_like(b, dtype=np.result_type(a, b))
    for start in range(0, b.shape[-2], 64):
        state = np.zeros_like(x[..., 0, :])  # the bug: the carry is lost here
        for k in range(start, min(start + 64, b.shape[-2])):
            state = a[..., k, :] * state + b[..., k, :]
            x[..., k, :] = state
    return x
