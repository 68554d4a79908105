"""CuPy mirrors of refssm.ssd: all forms by chunks, in matrix products (refssm_gpu.ssd.passes).

The kernels choose the chunk; every chunk gives the same. The masked matrix of weights of the
quadratic form is made for one chunk at a time and never in the card's memory, so operations grow
with the length and not with its square. A step is one launch.

For float16 and bfloat16 states inside are float32, rounded once at the end; tensor cores multiply
numbers of eleven bits.
"""

from refssm.ssd import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
    SSD_STEP,
)
from refssm_gpu._launching.arrays import in_type_of, unbroadcast_and_round
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import gradients, scan, step, step_back


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


@mirror(SSD_QUADRATIC, WITH_HALVES)
def ssd_quadratic(x, log_a, B, C):
    return scan(x, log_a, B, C)[0]


@mirror(SSD_QUADRATIC, WITH_HALVES)
def ssd_quadratic_vjp(dy, x, log_a, B, C):
    return gradients(dy, None, x, log_a, B, C)


@mirror(SSD_CHUNKED, WITH_HALVES)
def ssd_chunked(x, log_a, B, C, *, chunk):
    del chunk
    return scan(x, log_a, B, C)[0]


@mirror(SSD_CHUNKED, WITH_HALVES)
def ssd_chunked_vjp(dy, x, log_a, B, C, *, chunk):
    del chunk
    return gradients(dy, None, x, log_a, B, C)


@mirror(SSD_CHUNKED_STATEFUL, WITH_HALVES)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    del chunk
    y, S = scan(x, log_a, B, C, S0, ends=True)
    return y, in_type_of(S, x, log_a, B, S0)


@mirror(SSD_CHUNKED_STATEFUL, WITH_HALVES)
def ssd_chunked_stateful_vjp(dy, dS, x, log_a, B, C, S0, *, chunk):
    del chunk
    return gradients(dy, dS, x, log_a, B, C, S0)


@mirror(SSD_CHUNKED_PACKED, WITH_HALVES)
def ssd_chunked_packed(x, log_a, B, C, resets, *, chunk):
    del chunk
    return scan(x, log_a, B, C, resets=resets)[0]


@mirror(SSD_CHUNKED_PACKED, WITH_HALVES)
def ssd_chunked_packed_vjp(dy, x, log_a, B, C, resets, *, chunk):
    del chunk
    return *gradients(dy, None, x, log_a, B, C, resets=resets), None


@mirror(SSD_RECURRENT_PACKED, WITH_HALVES)
def ssd_recurrent_packed(x, log_a, B, C, resets):
    return scan(x, log_a, B, C, resets=resets)[0]


@mirror(SSD_RECURRENT_PACKED, WITH_HALVES)
def ssd_recurrent_packed_vjp(dy, x, log_a, B, C, resets):
    return *gradients(dy, None, x, log_a, B, C, resets=resets), None


@mirror(SSD_STEP, WITH_HALVES)
def ssd_step(x, log_a, B, C, S):
    """The state is read once and written once."""
    y, after = step(x, log_a, B, C, S)
    return y, in_type_of(after, x, log_a, B, S)


@mirror(SSD_STEP, WITH_HALVES)
def ssd_step_vjp(dy, dS_next, x, log_a, B, C, S):
    dx, dlog_a, dB, dC, dS = step_back(dy, dS_next, x, log_a, B, C, S)
    made = dx[..., 0, :], dlog_a[..., 0], dB[..., 0, :], dC[..., 0, :], dS
    return unbroadcast_and_round(made, (x, log_a, B, C, S))
