"""What is done by mistake to a signal or a kernel along time, and to gradients of convolutions."""

import numpy as np

from refssm.conformance.planted.planting import of_each_result


def back(u):
    """Backwards in time."""
    return u[..., ::-1]


def later(u):
    """One step later, a zero in front."""
    return np.concatenate([0 * u[..., :1], u[..., :-1]], axis=-1)


def earlier(u):
    """One step earlier, a zero behind."""
    return np.concatenate([u[..., 1:], 0 * u[..., :1]], axis=-1)


def rolled(u):
    """One step later, the last in front."""
    return np.roll(u, 1, axis=-1)


def kept(k, taps):
    """Only the first taps of a kernel."""
    return np.where(np.arange(k.shape[-1]) < taps, k, 0).astype(k.dtype)


def first_64(k):
    """Only the first 64 taps."""
    return kept(k, 64)


def but_last(k):
    """The last entry zero."""
    return kept(k, k.shape[-1] - 1)


def not_conjugated(right, *args):
    """Gradients with the arguments in place of their conjugates."""
    cotangents = (len(args) - 1) // 2  # 1 of 3 or 4, 2 of 5
    return right(*args[:cotangents], *(a.conj() for a in args[cotangents:]))


def weights_of_first(right, dy, *args):
    """dk of no cotangents but those of the first sequence, where there are several."""
    du, dk, *ds = right(dy, *args)
    if max(g.ndim for g in (du, *ds)) > dk.ndim:
        dk = right(np.concatenate([dy[:1], 0 * dy[1:]]), *args)[1]
    return du, dk, *ds


AS_JAX = ("as_jax", "the conjugate convention", of_each_result(np.conj))
