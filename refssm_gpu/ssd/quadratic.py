"""CuPy mirrors of refssm.ssd.quadratic: the same function, by the same kernels.

The masked matrix of weights is made for one chunk at a time and never in the card's memory, so
operations grow with the length and not with its square.
"""

from refssm.ssd import SSD_QUADRATIC
from refssm_gpu._launching.checked import WITH_HALVES, checked, checked_vjp
from refssm_gpu.ssd.passes import gradients, scan


def ssd_quadratic(x, log_a, B, C):
    """Mirror of refssm.ssd_quadratic."""
    return scan(x, log_a, B, C)[0]


def ssd_quadratic_vjp(dy, x, log_a, B, C):
    """Mirror of refssm.ssd_quadratic_vjp."""
    return gradients(dy, None, x, log_a, B, C)


ssd_quadratic_vjp = checked_vjp(SSD_QUADRATIC, ssd_quadratic_vjp, WITH_HALVES)
ssd_quadratic = checked(SSD_QUADRATIC, ssd_quadratic, WITH_HALVES)
