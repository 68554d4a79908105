"""Programs of the gradients of `resolvent_at_roots`: at the nodes, in pieces, and transformed."""

import numpy as np
from numpy.fft import ifft

from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm.conformance.gauges.programs.pieces import in_pieces


def transformed(dk, v, a, *, l):
    """W_k = a^k/(1 − a^l) is the transform of 1/(1 − a ω); dW_k/da = k W_{k−1} + l W_k W_{l−1}."""
    if l == 0:
        return None
    g = (ifft(dk) * np.float32(l))[..., None, :]
    k = np.arange(l, dtype=a.real.dtype)
    powers = np.cumprod(np.repeat(a[..., None], l, axis=-1), axis=-1)
    last = powers[..., -1:]
    W = np.concatenate([np.ones_like(last), powers[..., :-1]], axis=-1) / (1 - last)
    earlier = np.concatenate([np.zeros_like(last), W[..., :-1]], axis=-1)
    slopes = k * earlier + np.float32(l) * W * W[..., -1:]
    return (g * W.conj()).sum(-1), (g * (v[..., None] * slopes).conj()).sum(-1)


GRADIENTS = {
    RESOLVENT_AT_ROOTS.name: {
        "at_nodes": RESOLVENT_AT_ROOTS.bare_vjp,
        "in_pieces": in_pieces(RESOLVENT_AT_ROOTS.bare_vjp),
        "transformed": transformed,
    }
}
