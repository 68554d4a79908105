"""Numba mirror of refssm.dplr.aliased: one pass over the nodes, forward and backward."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numpy.fft import fft

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm.dplr.system import empty
from refssm.jit._compiling.mirror import mirror
from refssm.jit.dplr.nodes import circle, narrow, rows, transfer_back, wide
from refssm.jit.dplr.transfer import closest, ordinary, tangents, transfer, transformed


def is_plain(w, dt, l):
    """True if no number is near over- or underflow, and no mode has its pole exactly at a node."""
    return ordinary(w, dt) and not met(w, dt, l)


def met(w, dt, l):
    """True if a mode has its pole exactly at a node."""
    return (closest(w, dt, l)[1] == 0).any()


def spectrum(tangent, turn, w, P, Q, B, C, dt):
    """K̂ at these nodes."""
    left, right = rows(*wide(C, Q.conj())), rows(*wide(B, P))
    return transfer(tangent, turn, *wide(dt), w.astype(np.complex128), left, right)


def gradients(d, below, above, dk, *arguments):
    """dw, dP, dQ, dB, dC and ddt from `d`, that of ½K̂* at nodes, in the precision of all."""
    w, P, Q, B, C, dt = arguments
    (rates,) = wide(dt)
    left, right = rows(C, Q.conj()), rows(B, P)
    g = 2 * below / rates[..., None]
    dleft, dright, dw, ddt = narrow(
        transfer_back(d, below, g, above, w, left, right), dk, *arguments
    )
    dC, dQ = dleft[..., 0, :].conj(), dleft[..., 1:, :].swapaxes(-1, -2)  # by Q*, not Q
    dB, dP = dright[..., 0, :].conj(), dright[..., 1:, :].swapaxes(-1, -2).conj()
    ddt = 2 * ddt / (dt * dt)  # real
    return unbroadcast_each((dw.conj(), dP, dQ, dB, dC, ddt), arguments)


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Calls the reference if a D_n is exactly 0."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    if l == 0:
        return empty(dtype, l, w, P, Q, B, C, dt)
    l, (modes, rates) = int(l), wide(w, dt)
    if not is_plain(modes, rates, l):
        return DPLR_KERNEL_ALIASED.reference(w, P, Q, B, C, dt, l=l)
    return transformed(spectrum(*tangents(l), w, P, Q, B, C, dt), dtype)


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Calls the reference if a D_n is exactly 0."""
    arguments = w, P, Q, B, C, dt
    modes, rates, wide_dk = wide(w, dt, dk)
    if l and met(modes, rates, int(l)):
        return DPLR_KERNEL_ALIASED.bare_vjp(dk, *arguments, l=l)
    d = 2 * fft(wide_dk).conj() / l if l else wide_dk
    return gradients(d, *circle(l), dk, *arguments)
