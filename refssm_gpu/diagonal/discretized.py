"""CuPy mirrors of refssm.diagonal.discretized: modes first, then their sums of powers.

All that is of size n is in double precision, in one launch, and rounded once, in the tables.
"""

from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR, DIAGONAL_KERNEL_ZOH
from refssm_gpu._launching.arrays import unbroadcast_and_round
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._parts.modes import BILINEAR, HOLD, modes


def diagonal_kernel_zoh(w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_zoh."""
    return modes(HOLD, w, B, C, dt).kernel(l)


def diagonal_kernel_zoh_vjp(dk, w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_zoh_vjp."""
    del l  # dk has it
    gradients = modes(HOLD, w, B, C, dt).gradients(dk)
    return unbroadcast_and_round(gradients, (w, B, C, dt))


def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_bilinear; powers of a small Ā also by its logarithm."""
    return modes(BILINEAR, w, B, C, dt).kernel(l)


def diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_bilinear_vjp."""
    del l  # dk has it
    gradients = modes(BILINEAR, w, B, C, dt).gradients(dk)
    return unbroadcast_and_round(gradients, (w, B, C, dt))


diagonal_kernel_zoh_vjp = checked_vjp(DIAGONAL_KERNEL_ZOH, diagonal_kernel_zoh_vjp)
diagonal_kernel_zoh = checked(DIAGONAL_KERNEL_ZOH, diagonal_kernel_zoh)
diagonal_kernel_bilinear_vjp = checked_vjp(DIAGONAL_KERNEL_BILINEAR, diagonal_kernel_bilinear_vjp)
diagonal_kernel_bilinear = checked(DIAGONAL_KERNEL_BILINEAR, diagonal_kernel_bilinear)
