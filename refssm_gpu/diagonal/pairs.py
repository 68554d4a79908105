"""CuPy mirrors of refssm.diagonal.pairs: the modes of S4D's kernels, and real sums of powers."""

from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR_REAL, DIAGONAL_KERNEL_ZOH_REAL
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu._parts.modes import BILINEAR, HOLD, modes


@mirror(DIAGONAL_KERNEL_ZOH_REAL)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    return modes(HOLD, w, B, C, dt).real_kernel(l)


@mirror(DIAGONAL_KERNEL_ZOH_REAL)
def diagonal_kernel_zoh_real_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    return _gradients(HOLD, dk, w, B, C, dt)


@mirror(DIAGONAL_KERNEL_BILINEAR_REAL)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """Powers of a small Ā also by its logarithm."""
    return modes(BILINEAR, w, B, C, dt).real_kernel(l)


@mirror(DIAGONAL_KERNEL_BILINEAR_REAL)
def diagonal_kernel_bilinear_real_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    return _gradients(BILINEAR, dk, w, B, C, dt)


def _gradients(method, dk, w, B, C, dt):
    """Those of the complex kernel for the cotangent 2 dk, in the type of the arguments."""
    twice = namespace(dk).astype(2 * dk, common(w, B, C, dt))
    return unbroadcast_and_round(modes(method, w, B, C, dt).gradients(twice), (w, B, C, dt))
