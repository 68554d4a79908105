"""CuPy mirrors of refssm.ssd.quadratic: the same function, by the same kernels.

The masked matrix of weights is made for one chunk at a time and never in the card's memory, so
operations grow with the length and not with its square.
"""

from refssm.ssd import SSD_QUADRATIC
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import gradients, scan


@mirror(SSD_QUADRATIC, WITH_HALVES)
def ssd_quadratic(x, log_a, B, C):
    return scan(x, log_a, B, C)[0]


@mirror(SSD_QUADRATIC, WITH_HALVES)
def ssd_quadratic_vjp(dy, x, log_a, B, C):
    return gradients(dy, None, x, log_a, B, C)
