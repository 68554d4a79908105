"""Numba mirror of refssm.dplr.aliased: forward and back, one pass over the nodes."""

import numpy as np
from numpy.fft import fft

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast_each
from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm.dplr.system import empty, inverse_transform
from refssm.jit.dplr.nodes import circle, narrow, near, rows, transfer, transfer_back, wide


def _met(g, s, w):
    """Whether a mode has its pole exactly at a node."""
    return near(g, s, w, np.zeros(w.shape)).any()


def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel_aliased; the reference itself where a D_n is exactly 0."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    if l == 0:
        return empty(dtype, l, w, P, Q, B, C, dt)
    modes, rates = wide(w, dt)
    below, above = circle(l)
    g = 2 * below / rates[..., None]
    if _met(g, above, modes):
        return DPLR_KERNEL_ALIASED.reference(w, P, Q, B, C, dt, l=l)
    return inverse_transform(transfer(g, above, w, rows(C, Q.conj()), rows(B, P)), dtype)


def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel_aliased_vjp; the reference itself where a D_n is exactly 0."""
    arguments = w, P, Q, B, C, dt
    below, above = circle(l)
    modes, rates, wide_dk = wide(w, dt, dk)
    g = 2 * below / rates[..., None]
    if _met(g, above, modes):
        return DPLR_KERNEL_ALIASED.bare_vjp(dk, *arguments, l=l)
    ds = 2 * fft(wide_dk) / l if l else wide_dk
    left, right = rows(C, Q.conj()), rows(B, P)
    back = transfer_back(ds, below, g, above, w, left, right, np.empty(P.shape[-1]))
    dleft, dright, dw, ddt = narrow(back, dk, *arguments)
    dC, dQ = dleft[..., 0, :], dleft[..., 1:, :].swapaxes(-1, -2)
    dB, dP = dright[..., 0, :], dright[..., 1:, :].swapaxes(-1, -2)
    return unbroadcast_each((dw, dP, dQ, dB, dC, 2 * ddt / (dt * dt)), arguments)


dplr_kernel_aliased_vjp = DPLR_KERNEL_ALIASED.checked_vjp(dplr_kernel_aliased_vjp, COMPILED_TYPES)
dplr_kernel_aliased = DPLR_KERNEL_ALIASED.checked(dplr_kernel_aliased, COMPILED_TYPES)
