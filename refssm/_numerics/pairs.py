"""Conjugate pairs of which one half is stored: the whole from the half, and back."""

import numpy as np


def paired(x, axis=-1):
    """(x, x*) along an axis."""
    return np.concatenate([x, x.conj()], axis=axis)


def folded(gradient, axis=-1):
    """The gradient of x from that of (x, x*): its first half plus the conjugate of its second."""
    n, after = gradient.shape[axis] // 2, (slice(None),) * (-1 - axis)
    return gradient[..., :n, *after] + gradient[..., n:, *after].conj()
