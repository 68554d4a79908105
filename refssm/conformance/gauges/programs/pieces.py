"""Gradients as the sum over pieces of the cotangents: other sums than those of the whole."""

import numpy as np

from refssm._arguments import several


def in_pieces(vjp, of=1):
    """`vjp` for the first half of the cotangents' time, plus that for the second half."""
    return _summed(vjp, of, lambda length: np.arange(length) * 2 >= length)


def interleaved(vjp, of=1):
    """`vjp` for the cotangents at even times, plus that for odd ones."""
    return _summed(vjp, of, lambda length: np.arange(length) % 2 == 1)


def of_any(vjp, of):
    """The three programs that every VJP has, because it is linear in its cotangents."""
    return {
        "defined": vjp,
        "in_pieces": in_pieces(vjp, of),
        "interleaved": interleaved(vjp, of),
    }


def _summed(vjp, of, second):
    """The sum of two runs; `second` says which times belong to the second; `of` cotangents."""

    def program(*arrays, **sizes):
        found = []
        for piece in (False, True):
            cut = [_only(second, piece, dy) for dy in arrays[:of]]
            found.append(several(vjp(*cut, *arrays[of:], **sizes)))
        return tuple(None if x is None else x + y for x, y in zip(*found, strict=True))

    return program


def _only(second, piece, dy):
    """dy in one piece of its last axis that is longer than 1 (not the first, of copies), else 0."""
    axis = next((k for k in range(dy.ndim - 1, 0, -1) if dy.shape[k] > 1), dy.ndim - 1)
    keep = (second(dy.shape[axis]) == piece).reshape([-1] + [1] * (dy.ndim - 1 - axis))
    return np.where(keep, dy, 0).astype(dy.dtype)
