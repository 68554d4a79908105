"""Numba mirrors of refssm.ssd.recurrent and .packed: one kernel for each direction."""

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, in_kind_of
from refssm.jit._compiling.mirror import mirror
from refssm.jit.ssd.kernels import at_rest, pulled_back, scan
from refssm.scan.blocks import no_resets
from refssm.ssd import (
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
    SSD_STEP,
)


@mirror(SSD_RECURRENT)
def ssd_recurrent(x, log_a, B, C):
    return scan(x, log_a, B, C, at_rest(x, B), begun(x.shape[-2]))[0]


@mirror(SSD_RECURRENT)
def ssd_recurrent_vjp(dy, x, log_a, B, C):
    return back_from_rest(dy, x, log_a, B, C, begun(x.shape[-2]))


def back_from_rest(dy, x, log_a, B, C, resets):
    """Gradients of a scan from rest."""
    rest = at_rest(x, B)
    gradients = pulled_back(dy, rest, x, log_a, B, C, rest, resets)
    return unbroadcast_each(gradients[:-1], (x, log_a, B, C))


@mirror(SSD_RECURRENT_STATEFUL)
def ssd_recurrent_stateful(x, log_a, B, C, S0):
    return _resumed(x, log_a, B, C, S0)


def _resumed(x, log_a, B, C, S0):
    """All outputs, and the last state; C alone does not make the state complex."""
    y, S = scan(x, log_a, B, C, S0, no_resets(x.shape[-2]))
    return y, in_kind_of(S, x, log_a, B, S0)


@mirror(SSD_RECURRENT_STATEFUL)
def ssd_recurrent_stateful_vjp(dy, dS, x, log_a, B, C, S0):
    gradients = pulled_back(dy, dS, x, log_a, B, C, S0, no_resets(x.shape[-2]))
    return unbroadcast_each(gradients, (x, log_a, B, C, S0))


@mirror(SSD_RECURRENT_PACKED)
def ssd_recurrent_packed(x, log_a, B, C, resets):
    return scan(x, log_a, B, C, at_rest(x, B), resets | begun(x.shape[-2]))[0]


@mirror(SSD_RECURRENT_PACKED)
def ssd_recurrent_packed_vjp(dy, x, log_a, B, C, resets):
    return *back_from_rest(dy, x, log_a, B, C, resets | begun(x.shape[-2])), None


@mirror(SSD_STEP)
def ssd_step(x, log_a, B, C, S):
    """A scan of length 1."""
    y, S_next = _resumed(*_one_step(x, log_a, B, C), S)
    return y[..., 0, :], S_next


@mirror(SSD_STEP)
def ssd_step_vjp(dy, dS_next, x, log_a, B, C, S):
    arguments = _one_step(x, log_a, B, C)
    gradients = pulled_back(dy[..., None, :], dS_next, *arguments, S, no_resets(1))
    dx, dlog_a, dB, dC, dS = unbroadcast_each(gradients, (*arguments, S))
    return dx[..., 0, :], dlog_a[..., 0], dB[..., 0, :], dC[..., 0, :], dS


def _one_step(x, log_a, B, C):
    """The arguments of a scan of length 1."""
    return x[..., None, :], log_a[..., None], B[..., None, :], C[..., None, :]
