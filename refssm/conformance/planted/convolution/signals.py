"""Mistakes along time in a signal or a kernel, and mistakes in gradients of convolutions."""

import numpy as np

from refssm.conformance.planted.planting import of_each_result


def back(u):
    """The signal in reversed time."""
    return u[..., ::-1]


def later(u):
    """The signal one step later, with a zero at the start."""
    return np.concatenate([0 * u[..., :1], u[..., :-1]], axis=-1)


def earlier(u):
    """The signal one step earlier, with a zero at the end."""
    return np.concatenate([u[..., 1:], 0 * u[..., :1]], axis=-1)


def rolled(u):
    """The signal one step later, with its last sample at the start."""
    return np.roll(u, 1, axis=-1)


def kept(k, taps):
    """The kernel with only its first taps."""
    return np.where(np.arange(k.shape[-1]) < taps, k, 0).astype(k.dtype)


def first_64(k):
    """The kernel with only its first 64 taps."""
    return kept(k, 64)


def but_last(k):
    """The kernel with its last entry zero."""
    return kept(k, k.shape[-1] - 1)


def not_conjugated(right, *args):
    """The gradients with the arguments instead of their conjugates."""
    cotangents = (len(args) - 1) // 2  # 1 of 3 or 4, 2 of 5
    return right(*args[:cotangents], *(a.conj() for a in args[cotangents:]))


def weights_of_first(right, dy, *args):
    """dk from the cotangent of the first sequence only, if there are several."""
    du, dk, *ds = right(dy, *args)
    if max(g.ndim for g in (du, *ds)) > dk.ndim:
        dk = right(np.concatenate([dy[:1], 0 * dy[1:]]), *args)[1]
    return du, dk, *ds


AS_JAX = ("as_jax", "the conjugate convention", of_each_result(np.conj))
