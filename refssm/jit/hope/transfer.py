"""Numba mirror of refssm.hope.transfer; computes half of the nodes."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hope import HOPE_TRANSFER
from refssm.jit._compiling.mirror import mirror
from refssm.jit.hope.sums import adjoint, summed


@mirror(HOPE_TRANSFER)
def hope_transfer(h, dt, *, l):
    """Computed in double precision and rounded once."""
    return summed(h, dt, l, np.result_type(h, dt, np.complex64))


@mirror(HOPE_TRANSFER)
def hope_transfer_vjp(dk, h, dt, *, l):
    del l  # dk has it
    kind = np.result_type(dk, h, dt, np.complex64)
    return unbroadcast_each((g.astype(kind) for g in adjoint(dk, h, dt)), (h, dt))
