"""CuPy mirrors of refssm.ssd.chunked: the kernels choose the chunk; every chunk gives the same."""

from refssm.ssd import SSD_CHUNKED, SSD_CHUNKED_PACKED, SSD_CHUNKED_STATEFUL
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, checked, checked_vjp
from refssm_gpu.ssd.passes import gradients, scan


def ssd_chunked(x, log_a, B, C, *, chunk):
    """Mirror of refssm.ssd_chunked."""
    del chunk
    return scan(x, log_a, B, C)[0]


def ssd_chunked_vjp(dy, x, log_a, B, C, *, chunk):
    """Mirror of refssm.ssd_chunked_vjp."""
    del chunk
    return gradients(dy, None, x, log_a, B, C)


def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """Mirror of refssm.ssd_chunked_stateful."""
    del chunk
    y, S = scan(x, log_a, B, C, S0, ends=True)
    return y, in_type_of(S, x, log_a, B, S0)


def ssd_chunked_stateful_vjp(dy, dS, x, log_a, B, C, S0, *, chunk):
    """Mirror of refssm.ssd_chunked_stateful_vjp."""
    del chunk
    return gradients(dy, dS, x, log_a, B, C, S0)


def ssd_chunked_packed(x, log_a, B, C, resets, *, chunk):
    """Mirror of refssm.ssd_chunked_packed."""
    del chunk
    return scan(x, log_a, B, C, resets=resets)[0]


def ssd_chunked_packed_vjp(dy, x, log_a, B, C, resets, *, chunk):
    """Mirror of refssm.ssd_chunked_packed_vjp."""
    del chunk
    return *gradients(dy, None, x, log_a, B, C, resets=resets), None


ssd_chunked_vjp = checked_vjp(SSD_CHUNKED, ssd_chunked_vjp, WITH_HALVES)
ssd_chunked = checked(SSD_CHUNKED, ssd_chunked, WITH_HALVES)
ssd_chunked_stateful_vjp = checked_vjp(SSD_CHUNKED_STATEFUL, ssd_chunked_stateful_vjp, WITH_HALVES)
ssd_chunked_stateful = checked(SSD_CHUNKED_STATEFUL, ssd_chunked_stateful, WITH_HALVES)
ssd_chunked_packed_vjp = checked_vjp(SSD_CHUNKED_PACKED, ssd_chunked_packed_vjp, WITH_HALVES)
ssd_chunked_packed = checked(SSD_CHUNKED_PACKED, ssd_chunked_packed, WITH_HALVES)
