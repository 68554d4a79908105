"""Numba mirror of refssm.hope.transfer; computes half of the nodes."""

import numpy as np

from refssm._declaration.operator import COMPILED_TYPES
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hope import HOPE_TRANSFER
from refssm.jit.hope.sums import adjoint, summed


def hope_transfer(h, dt, *, l):
    """Mirror of refssm.hope_transfer; computed in double precision and rounded once."""
    return summed(h, dt, l, np.result_type(h, dt, np.complex64))


def hope_transfer_vjp(dk, h, dt, *, l):
    """Mirror of refssm.hope_transfer_vjp."""
    del l  # dk has it
    kind = np.result_type(dk, h, dt, np.complex64)
    return unbroadcast_each((g.astype(kind) for g in adjoint(dk, h, dt)), (h, dt))


hope_transfer = HOPE_TRANSFER.checked(hope_transfer, COMPILED_TYPES)
hope_transfer_vjp = HOPE_TRANSFER.checked_vjp(hope_transfer_vjp, COMPILED_TYPES)
