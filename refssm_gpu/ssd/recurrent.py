"""CuPy mirrors of refssm.ssd.recurrent: by chunks, in matrix products (refssm_gpu.ssd.passes).

For float16 and bfloat16 states inside are float32, rounded once at the end; tensor cores multiply
numbers of eleven bits.
"""

from refssm.ssd import SSD_RECURRENT, SSD_RECURRENT_STATEFUL
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, checked, checked_vjp
from refssm_gpu.ssd.passes import gradients, scan


def ssd_recurrent(x, log_a, B, C):
    """Mirror of refssm.ssd_recurrent."""
    return scan(x, log_a, B, C)[0]


def ssd_recurrent_vjp(dy, x, log_a, B, C):
    """Mirror of refssm.ssd_recurrent_vjp."""
    return gradients(dy, None, x, log_a, B, C)


def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """Mirror of refssm.ssd_recurrent_stateful."""
    y, S = scan(x, log_a, B, C, S0, ends=True)
    return y, in_type_of(S, x, log_a, B, S0)


def ssd_recurrent_stateful_vjp(dy, dS, x, log_a, B, C, S0):
    """Mirror of refssm.ssd_recurrent_stateful_vjp."""
    return gradients(dy, dS, x, log_a, B, C, S0)


ssd_recurrent_vjp = checked_vjp(SSD_RECURRENT, ssd_recurrent_vjp, WITH_HALVES)
ssd_recurrent = checked(SSD_RECURRENT, ssd_recurrent, WITH_HALVES)
ssd_recurrent_stateful_vjp = checked_vjp(
    SSD_RECURRENT_STATEFUL, ssd_recurrent_stateful_vjp, WITH_HALVES
)
ssd_recurrent_stateful = checked(SSD_RECURRENT_STATEFUL, ssd_recurrent_stateful, WITH_HALVES)
