"""CuPy mirror of refssm.hope.transfer; computes half of the nodes."""

import numpy as np

from refssm.hope import HOPE_TRANSFER
from refssm_gpu._launching.arrays import common, unbroadcast_and_round
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu.hope.sums import at_nodes, at_nodes_back


def hope_transfer(h, dt, *, l):
    """Mirror of refssm.hope_transfer; computed in double precision and rounded once."""
    return at_nodes(h, dt, l, np.result_type(common(h, dt), np.complex64))


def hope_transfer_vjp(dk, h, dt, *, l):
    """Mirror of refssm.hope_transfer_vjp."""
    del l  # dk has it
    return unbroadcast_and_round(at_nodes_back(dk, h, dt), (h, dt))


hope_transfer_vjp = checked_vjp(HOPE_TRANSFER, hope_transfer_vjp)
hope_transfer = checked(HOPE_TRANSFER, hope_transfer)
