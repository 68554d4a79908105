"""CuPy mirrors of refssm.ssd.chunked: the kernels choose the chunk; every chunk gives the same."""

from refssm.ssd import SSD_CHUNKED, SSD_CHUNKED_PACKED, SSD_CHUNKED_STATEFUL
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import gradients, scan


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
