"""Numba mirrors of refssm.ssd.chunked; the gradients are those of the recurrence."""

from refssm._declaration.operator import COMPILED_TYPES
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, in_kind_of
from refssm.jit.ssd.kernels import at_rest, pulled_back, scan
from refssm.jit.ssd.recurrent import back_from_rest
from refssm.scan.blocks import no_resets
from refssm.ssd import SSD_CHUNKED, SSD_CHUNKED_PACKED, SSD_CHUNKED_STATEFUL


def ssd_chunked(x, log_a, B, C, *, chunk):
    """Mirror of refssm.ssd_chunked."""
    del chunk
    return scan(x, log_a, B, C, at_rest(x, B), begun(x.shape[-2]))[0]


def ssd_chunked_vjp(dy, x, log_a, B, C, *, chunk):
    """Mirror of refssm.ssd_chunked_vjp."""
    del chunk
    return back_from_rest(dy, x, log_a, B, C, begun(x.shape[-2]))


def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """Mirror of refssm.ssd_chunked_stateful."""
    del chunk
    y, S = scan(x, log_a, B, C, S0, no_resets(x.shape[-2]))
    return y, in_kind_of(S, x, log_a, B, S0)


def ssd_chunked_stateful_vjp(dy, dS, x, log_a, B, C, S0, *, chunk):
    """Mirror of refssm.ssd_chunked_stateful_vjp."""
    del chunk
    gradients = pulled_back(dy, dS, x, log_a, B, C, S0, no_resets(x.shape[-2]))
    return unbroadcast_each(gradients, (x, log_a, B, C, S0))


def ssd_chunked_packed(x, log_a, B, C, resets, *, chunk):
    """Mirror of refssm.ssd_chunked_packed."""
    del chunk
    return scan(x, log_a, B, C, at_rest(x, B), resets | begun(x.shape[-2]))[0]


def ssd_chunked_packed_vjp(dy, x, log_a, B, C, resets, *, chunk):
    """Mirror of refssm.ssd_chunked_packed_vjp."""
    del chunk
    return *back_from_rest(dy, x, log_a, B, C, resets | begun(x.shape[-2])), None


ssd_chunked = SSD_CHUNKED.checked(ssd_chunked, COMPILED_TYPES)
ssd_chunked_vjp = SSD_CHUNKED.checked_vjp(ssd_chunked_vjp, COMPILED_TYPES)
ssd_chunked_stateful = SSD_CHUNKED_STATEFUL.checked(ssd_chunked_stateful, COMPILED_TYPES)
ssd_chunked_stateful_vjp = SSD_CHUNKED_STATEFUL.checked_vjp(
    ssd_chunked_stateful_vjp, COMPILED_TYPES
)
ssd_chunked_packed = SSD_CHUNKED_PACKED.checked(ssd_chunked_packed, COMPILED_TYPES)
ssd_chunked_packed_vjp = SSD_CHUNKED_PACKED.checked_vjp(ssd_chunked_packed_vjp, COMPILED_TYPES)
