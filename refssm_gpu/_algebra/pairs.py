"""Conjugate pairs of which one half is stored: the whole from the half, and back."""

from __future__ import annotations

from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import Array, namespace


def paired(x: Array, axis: int = -1) -> Array:
    """(x, x*) along an axis."""
    return namespace(x).concat([x, conj(x)], axis=axis)


def folded(gradient: Array, axis: int = -1) -> Array:
    """The gradient of x from that of (x, x*): its first half plus the conjugate of its second."""
    n, after = gradient.shape[axis] // 2, (slice(None),) * (-1 - axis)
    return gradient[..., :n, *after] + conj(gradient[..., n:, *after])
