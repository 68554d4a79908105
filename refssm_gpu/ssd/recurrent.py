"""CuPy mirrors of refssm.ssd.recurrent: by chunks, in matrix products (refssm_gpu.ssd.passes).

For float16 and bfloat16 states inside are float32, rounded once at the end; tensor cores multiply
numbers of eleven bits.
"""

from refssm.ssd import SSD_RECURRENT, SSD_RECURRENT_STATEFUL
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import gradients, scan


@mirror(SSD_RECURRENT, WITH_HALVES)
def ssd_recurrent(x, log_a, B, C):
    return scan(x, log_a, B, C)[0]


@mirror(SSD_RECURRENT, WITH_HALVES)
def ssd_recurrent_vjp(dy, x, log_a, B, C):
    return gradients(dy, None, x, log_a, B, C)


@mirror(SSD_RECURRENT_STATEFUL, WITH_HALVES)
def ssd_recurrent_stateful(x, log_a, B, C, S0):
    y, S = scan(x, log_a, B, C, S0, ends=True)
    return y, in_type_of(S, x, log_a, B, S0)


@mirror(SSD_RECURRENT_STATEFUL, WITH_HALVES)
def ssd_recurrent_stateful_vjp(dy, dS, x, log_a, B, C, S0):
    return gradients(dy, dS, x, log_a, B, C, S0)
