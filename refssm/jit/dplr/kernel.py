"""Numba mirror of refssm.dplr.kernel: one pass over the nodes; gradients through the states."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
# (a gufunc allocates its outputs; pyright does not know that)

import math

import numpy as np

from refssm._operator import COMPILED_TYPES
from refssm._powers import through_powers
from refssm.broadcasting import unbroadcast_each
from refssm.dplr import DPLR_KERNEL
from refssm.dplr.system import bilinear, corrected, empty, inverse
from refssm.jit.dplr.nodes import narrow, rows, wide
from refssm.jit.dplr.powers import truncated
from refssm.jit.dplr.steps import steps_back
from refssm.jit.dplr.transfer import closest, ordinary, tangents, transfer, transformed


def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel; each batch member has its own nodes near poles."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    if l == 0:
        return empty(dtype, l, w, P, Q, B, C, dt)
    l, arguments = int(l), (w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = wide(*arguments)
    if not ordinary(w, dt):
        return DPLR_KERNEL.reference(*wide(*arguments), l=l).astype(dtype)
    nodes, (E, B_bar) = _near(w, dt, l), bilinear(w, P, Q, B, dt)
    if nodes.size:
        C_tilde, sums = through_powers(E, B_bar, C, nodes, l)
    else:
        C_tilde, sums = truncated(E.astype(np.complex128), C, np.float64(l)), B
    left, right = rows(C_tilde, Q.conj()), rows(B, P)
    spectrum = transfer(*tangents(l), dt, w.astype(np.complex128), left, right)
    if nodes.size:
        values = (C[..., None, :] * sums).sum(-1)
        nodes, values = (
            np.broadcast_to(x, (*spectrum.shape[:-1], x.shape[-1])) for x in (nodes, values)
        )
        np.put_along_axis(spectrum, nodes, values, axis=-1)
    return transformed(spectrum, dtype)


def _near(w, dt, l):
    """Nodes to sum directly, |1 − z λ̄| ≤ |1 − e^(2πi/l)| (≤ 2 if l = 1) for some mode: as many for
    each batch member; 0 fills up, because an extra node does no harm."""
    nodes, D = closest(w, dt, l)
    reach = 2 * math.sin(math.pi / max(l, 2)) * np.abs(2 / dt[..., None] - w)
    found = np.where(np.abs(D) <= reach[..., None], nodes, l)
    found = np.sort(found.reshape(*found.shape[:-2], -1), axis=-1)
    found[..., 1:][found[..., 1:] == found[..., :-1]] = l
    found = np.sort(found, axis=-1)
    count = (found < l).sum(-1).max(initial=0)
    return found[..., :count] % l


def dplr_kernel_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel_vjp: steps of rank r, without the full matrix dA.

    dA Q = ½ dt Σ_k p_k ((x_k + x_{k+1})ᴴ Q) with p_k = M⁻ᴴ g_{k+1}, which has the recurrence of g.
    """
    del l  # dk has it
    arguments = w, P, Q, B, C, dt
    w, P, Q, B, C, dt = wide(*arguments)
    h = dt[..., None]
    R, RP, V = inverse(w, P, Q, h)
    B_bar = h * (R * B - h / 2 * (RP @ (V @ B[..., None]))[..., 0])
    c = corrected((1 / R)[..., None, :], h / 2, Q.conj(), P.conj(), C[..., None, :])[..., 0, :]
    U, P_rows, Q_rows = (x.swapaxes(-1, -2) for x in (h[..., None] * RP, P, Q.conj()))
    back = steps_back(dk.conj(), h * w * R, U, V, B_bar, c, P_rows, Q_rows)
    dC, T, Fw, FQ, FP = (x.conj() for x in back)
    FQ, FP = FQ.swapaxes(-1, -2) / 2, FP.swapaxes(-1, -2).conj() / 2
    ddt = (w.conj() * Fw).sum(-1) / 2 - (P.conj() * FQ).sum((-1, -2)) + (B.conj() * T).sum(-1)
    h_ = h[..., None]
    gradients = h / 2 * Fw, -h_ * FQ, -h_ * FP, h * T, dC, ddt
    return unbroadcast_each(narrow(gradients, dk, *arguments), arguments)


dplr_kernel_vjp = DPLR_KERNEL.checked_vjp(dplr_kernel_vjp, COMPILED_TYPES)
dplr_kernel = DPLR_KERNEL.checked(dplr_kernel, COMPILED_TYPES)
