"""Honest impulse responses: the sum in another order, the exponential of parts."""

import numpy as np

from honest import Honest


def pole_by_pole(v, w, t):
    """A loop that adds one pole at a time."""
    shape = np.broadcast_shapes(v[..., :1].shape, w[..., :1].shape, t.shape)
    y = np.zeros(shape, np.result_type(v, w, t))
    for n in range(v.shape[-1]):
        y = y + v[..., n, None] * np.exp(w[..., n, None] * t)
    return y


def polar(v, w, t):
    """e^(Re w t) (cos + i sin)(Im w t)."""
    x = w[..., None, :] * t[..., :, None]
    E = np.exp(x.real) * (np.cos(x.imag) + 1j * np.sin(x.imag))
    return (v[..., None, :] * E).sum(-1)


IMPLEMENTATIONS = [
    Honest("impulse_response", "pole_by_pole", pole_by_pole),
    Honest("impulse_response", "polar", polar),
]
