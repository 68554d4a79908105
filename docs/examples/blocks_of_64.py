"""A kernel for whole blocks of 64 steps and decays of at least 0.9: `only` makes each case fit.

Inside a block x = P (cumsum(b / P) + state) with P = cumprod(a). The running sum rounds once in
each step, so the kernel declares a larger tolerance than the usual 16.
"""

import numpy as np

from refssm.testing import Budget, implements

BLOCK = 64


def whole_blocks(case):
    a, b = case["a"], case["b"]
    l = b.shape[-2] // BLOCK * BLOCK
    if l == 0:
        return None  # declined
    a = np.where(np.abs(a) < 0.9, 0.9, a).astype(a.dtype)
    return {"a": a[..., :l, :], "b": b[..., :l, :]}


@implements("linear_scan", only=whole_blocks, accuracy=Budget(C=64))
def blockwise(a, b):
    l = b.shape[-2]
    if l % BLOCK:
        raise NotImplementedError(f"l={l} is no multiple of {BLOCK}")
    x = np.empty(b.shape, np.result_type(a, b))
    state = np.zeros_like(x[..., :1, :])
    for k in range(0, l, BLOCK):
        block = slice(k, k + BLOCK)
        P = np.cumprod(a[..., block, :], axis=-2)
        x[..., block, :] = P * (np.cumsum(b[..., block, :] / P, axis=-2) + state)
        state = x[..., block, :][..., -1:, :]
    return x
