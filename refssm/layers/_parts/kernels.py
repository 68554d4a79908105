"""Kernels (h, t) of a fixed length: cut or continued to a signal's, or step by step."""

import numpy as np

from refssm.layers._parts.bank import turned


def of_length(k, l):
    """The first l numbers of each kernel, with zeros after its end."""
    after = np.zeros_like(k, shape=(*k.shape[:-1], max(0, l - k.shape[-1])))
    return np.concatenate([k[..., :l], after], axis=-1)


def of_length_vjp(dK, k):
    """The gradient of k: numbers that no step reached have none."""
    return of_length(dK, k.shape[-1])


def stepped(ops, k, D, u, before):
    """k * u + D u for a piece (…, l, h), from the last t inputs (…, h, t); also the next ones."""
    ut = turned(u)
    y, newest = ops.short_convolution_stateful(ut, k, before)
    return turned(y + D[:, None] * ut), newest
