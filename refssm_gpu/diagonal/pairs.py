"""CuPy mirrors of refssm.diagonal.pairs: the modes of S4D's kernels, and real sums of powers."""

from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR_REAL, DIAGONAL_KERNEL_ZOH_REAL
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._parts.modes import BILINEAR, HOLD, modes


def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_zoh_real."""
    return modes(HOLD, w, B, C, dt).real_kernel(l)


def diagonal_kernel_zoh_real_vjp(dk, w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_zoh_real_vjp."""
    del l  # dk has it
    return _gradients(HOLD, dk, w, B, C, dt)


def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_bilinear_real; powers of a small Ā also by its logarithm."""
    return modes(BILINEAR, w, B, C, dt).real_kernel(l)


def diagonal_kernel_bilinear_real_vjp(dk, w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_bilinear_real_vjp."""
    del l  # dk has it
    return _gradients(BILINEAR, dk, w, B, C, dt)


def _gradients(method, dk, w, B, C, dt):
    """Those of the complex kernel for the cotangent 2 dk, in the type of the arguments."""
    twice = namespace(dk).astype(2 * dk, common(w, B, C, dt))
    return unbroadcast_and_round(modes(method, w, B, C, dt).gradients(twice), (w, B, C, dt))


diagonal_kernel_zoh_real_vjp = checked_vjp(DIAGONAL_KERNEL_ZOH_REAL, diagonal_kernel_zoh_real_vjp)
diagonal_kernel_zoh_real = checked(DIAGONAL_KERNEL_ZOH_REAL, diagonal_kernel_zoh_real)
diagonal_kernel_bilinear_real_vjp = checked_vjp(
    DIAGONAL_KERNEL_BILINEAR_REAL, diagonal_kernel_bilinear_real_vjp
)
diagonal_kernel_bilinear_real = checked(
    DIAGONAL_KERNEL_BILINEAR_REAL, diagonal_kernel_bilinear_real
)
