"""Numba mirror of refssm.hope.transfer; computes half of the nodes if h is real."""

import numpy as np

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast_each
from refssm.hope import HOPE_TRANSFER
from refssm.hope.circle import slope
from refssm.jit.hope.sums import adjoint, summed


def half(h, l):
    """The number of nodes to compute: up to l/2 for a real h, because the others are conjugates."""
    return l if np.iscomplexobj(h) else min(l, l // 2 + 1)


def hope_transfer(h, dt, *, l):
    """Mirror of refssm.hope_transfer; computed in double precision and rounded once."""
    return summed(h, dt, l, half(h, l), np.result_type(h, dt, np.complex64))


def hope_transfer_vjp(dk, h, dt, *, l):
    """Mirror of refssm.hope_transfer_vjp; a real h is computed as complex."""
    kind = np.result_type(dk, h, dt, np.complex64)
    gradients = through_nodes(dk, h, dt, l)
    return unbroadcast_each((g.astype(kind) for g in gradients), (h, dt))


def through_nodes(dk, h, dt, l):
    """dh and ddt in double precision, before the sum over broadcast axes."""
    n = h.shape[-1]
    dh, warped = adjoint(dk, dt, n, slope(np.float64(1), dt.astype(np.float64), l))
    return dh, -1j * (np.arange(1, n + 1) * h.conj() * warped).sum(-1)


hope_transfer = HOPE_TRANSFER.checked(hope_transfer, COMPILED_TYPES)
hope_transfer_vjp = HOPE_TRANSFER.checked_vjp(hope_transfer_vjp, COMPILED_TYPES)
