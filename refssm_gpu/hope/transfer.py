"""CuPy mirror of refssm.hope.transfer; computes half of the nodes."""

import numpy as np

from refssm.hope import HOPE_TRANSFER
from refssm_gpu._launching.arrays import common, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu.hope.sums import at_nodes, at_nodes_back


@mirror(HOPE_TRANSFER)
def hope_transfer(h, dt, *, l):
    """Computed in double precision and rounded once."""
    return at_nodes(h, dt, l, np.result_type(common(h, dt), np.complex64))


@mirror(HOPE_TRANSFER)
def hope_transfer_vjp(dk, h, dt, *, l):
    del l  # dk has it
    return unbroadcast_and_round(at_nodes_back(dk, h, dt), (h, dt))
