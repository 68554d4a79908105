"""Results as the sum over pieces of arguments in which they are linear: other sums than the whole.

Gradients are linear in their cotangents, outputs in the arguments that the operator declares.
"""

import numpy as np

from refssm._declaration.arguments import several


def in_pieces(function, linear=(0,)):
    """`function` for the first half of its linear arguments, plus that for the second half."""
    return _summed(function, linear, lambda length: np.arange(length) * 2 >= length)


def interleaved(function, linear=(0,)):
    """`function` for the even entries of its linear arguments, plus that for odd ones."""
    return _summed(function, linear, lambda length: np.arange(length) % 2 == 1)


def of_any(function, linear, other=None):
    """The three programs of a function that is linear in the arguments with these indices.

    `other`: the indices of other arguments in which it is linear, too.
    """
    return {
        "defined": function,
        "in_pieces": in_pieces(function, linear),
        "interleaved": interleaved(function, other or linear),
    }


def _summed(function, linear, second):
    """The sum of two runs; `second` says which entries belong to the second."""

    def program(*arrays, **sizes):
        runs = [
            np.stack([_only(second, piece, a) for piece in (False, True)])
            if i in linear
            else np.broadcast_to(a, (2, *a.shape))
            for i, a in enumerate(arrays)
        ]
        found = several(function(*runs, **sizes))
        return tuple(None if x is None else x[0] + x[1] for x in found)

    return program


def _only(second, piece, a):
    """`a` in one piece of its last axis longer than 1 (not the first, of copies), else 0."""
    axis = next((k for k in range(a.ndim - 1, 0, -1) if a.shape[k] > 1), a.ndim - 1)
    keep = (second(a.shape[axis]) == piece).reshape([-1] + [1] * (a.ndim - 1 - axis))
    return np.where(keep, a, 0).astype(a.dtype)
