"""CuPy mirrors of refssm.diagonal.discretized: modes first, then their sums of powers.

All that is of size n is in double precision, in one launch, and rounded once, in the tables.
"""

from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR, DIAGONAL_KERNEL_ZOH
from refssm_gpu._launching.arrays import unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu._parts.modes import BILINEAR, HOLD, modes


@mirror(DIAGONAL_KERNEL_ZOH)
def diagonal_kernel_zoh(w, B, C, dt, *, l):
    return modes(HOLD, w, B, C, dt).kernel(l)


@mirror(DIAGONAL_KERNEL_ZOH)
def diagonal_kernel_zoh_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    gradients = modes(HOLD, w, B, C, dt).gradients(dk)
    return unbroadcast_and_round(gradients, (w, B, C, dt))


@mirror(DIAGONAL_KERNEL_BILINEAR)
def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Powers of a small Ā also by its logarithm."""
    return modes(BILINEAR, w, B, C, dt).kernel(l)


@mirror(DIAGONAL_KERNEL_BILINEAR)
def diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    gradients = modes(BILINEAR, w, B, C, dt).gradients(dk)
    return unbroadcast_and_round(gradients, (w, B, C, dt))
