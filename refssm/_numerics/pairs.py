"""Conjugate pairs of which one half is stored: the whole from the half, and back."""

import numpy as np


def paired(x, axis=-1, blocks=1):
    """(x, x*) along an axis, for each of the blocks that the axis has."""
    parts = [x] if blocks == 1 else np.split(x, blocks, axis=axis)
    return np.concatenate([y for part in parts for y in (part, part.conj())], axis=axis)


def folded(gradient, axis=-1, blocks=1):
    """The gradient of x from that of (x, x*): its first half plus the conjugate of its second."""
    if blocks > 1:
        parts = np.split(gradient, blocks, axis=axis)
        return np.concatenate([folded(part, axis) for part in parts], axis=axis)
    n, after = gradient.shape[axis] // 2, (slice(None),) * (-1 - axis)
    return gradient[..., :n, *after] + gradient[..., n:, *after].conj()
