"""Numba mirrors of refssm.ssd.chunked; the gradients are those of the recurrence."""

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, in_kind_of
from refssm.jit._compiling.mirror import mirror
from refssm.jit.ssd.kernels import at_rest, pulled_back, scan
from refssm.jit.ssd.recurrent import back_from_rest
from refssm.scan.blocks import no_resets
from refssm.ssd import SSD_CHUNKED, SSD_CHUNKED_PACKED, SSD_CHUNKED_STATEFUL


@mirror(SSD_CHUNKED)
def ssd_chunked(x, log_a, B, C, *, chunk):
    del chunk
    return scan(x, log_a, B, C, at_rest(x, B), begun(x.shape[-2]))[0]


@mirror(SSD_CHUNKED)
def ssd_chunked_vjp(dy, x, log_a, B, C, *, chunk):
    del chunk
    return back_from_rest(dy, x, log_a, B, C, begun(x.shape[-2]))


@mirror(SSD_CHUNKED_STATEFUL)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    del chunk
    y, S = scan(x, log_a, B, C, S0, no_resets(x.shape[-2]))
    return y, in_kind_of(S, x, log_a, B, S0)


@mirror(SSD_CHUNKED_STATEFUL)
def ssd_chunked_stateful_vjp(dy, dS, x, log_a, B, C, S0, *, chunk):
    del chunk
    gradients = pulled_back(dy, dS, x, log_a, B, C, S0, no_resets(x.shape[-2]))
    return unbroadcast_each(gradients, (x, log_a, B, C, S0))


@mirror(SSD_CHUNKED_PACKED)
def ssd_chunked_packed(x, log_a, B, C, resets, *, chunk):
    del chunk
    return scan(x, log_a, B, C, at_rest(x, B), resets | begun(x.shape[-2]))[0]


@mirror(SSD_CHUNKED_PACKED)
def ssd_chunked_packed_vjp(dy, x, log_a, B, C, resets, *, chunk):
    del chunk
    return *back_from_rest(dy, x, log_a, B, C, resets | begun(x.shape[-2])), None
