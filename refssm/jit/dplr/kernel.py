"""Numba mirror of refssm.dplr.kernel: blocks of √l steps, heads times places, and back."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.elimination import eliminated
from refssm.dplr import DPLR_KERNEL
from refssm.dplr.system import inverse
from refssm.jit._compiling.mirror import mirror
from refssm.jit.dplr.blocks import FACTORS, HEADS, PLACES, multiplied
from refssm.jit.dplr.blocks_back import multiplied_back
from refssm.jit.dplr.nodes import narrow, wide


def _transposed(X):
    return X.swapaxes(-1, -2)


def _system(R, RP, V, w, B, C, h):
    """The rows e, C, B̄, U and V."""
    e, B_bar = h * w * R, h * (R * B - h / 2 * (RP @ (V @ B[..., None]))[..., 0])
    parts = [x[..., None, :] for x in (e, C, B_bar)] + [_transposed(h[..., None] * RP), V]
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in parts))
    parts = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in parts]
    return np.concatenate(parts, axis=-2, dtype=np.complex128)


@mirror(DPLR_KERNEL)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """Without the transform; in double precision, rounded once."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = wide(w, P, Q, B, C, dt)
    h = dt[..., None]
    system = _system(*inverse(w, P, Q, h), w, B, C, h)
    K = multiplied(system, np.empty(int(l), np.result_type(dtype, np.complex64)))
    return K if dtype.kind == "c" else K.real.copy()


@mirror(DPLR_KERNEL)
def dplr_kernel_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Back through the blocks, then through the bilinear map."""
    del l  # dk has it
    arguments = w, P, Q, B, C, dt
    w, P, Q, B, C, dt = wide(*arguments)
    h = dt[..., None]
    factors = inverse(w, P, Q, h)
    given = multiplied_back(dk.conj().astype(np.complex128), _system(*factors, w, B, C, h))
    gradients = _through_map(given, *factors, w, P, Q, B, h)
    return unbroadcast_each(narrow(gradients, dk, *arguments), arguments)


def _through_map(given, R, RP, V, w, P, Q, B, h):
    """dw, dP, dQ, dB, dC and ddt from the derivatives by the rows of a system.

    With G = I_r + ½dt QᴴRP and V = G⁻¹QᴴR. `of_X` is the derivative by X, without conjugates.
    """
    r, h_ = P.shape[-1], h[..., None]
    of_e, of_C, of_B_bar = (given[..., i, :] for i in (0, HEADS, PLACES))
    of_U, of_V = _transposed(given[..., FACTORS : FACTORS + r, :]), given[..., FACTORS + r :, :]
    VB, QR = V @ B[..., None], _transposed(Q.conj()) * R[..., None, :]
    of_VB = -h * h / 2 * (_transposed(RP) @ of_B_bar[..., None])[..., 0]
    G = np.eye(r) + h_ / 2 * (QR @ P)
    of_QR = eliminated(_transposed(G), of_V + of_VB[..., None] * B[..., None, :])
    of_G = -of_QR @ _transposed(V)
    of_QR = of_QR + h_ / 2 * of_G @ _transposed(P)
    of_RP = h_ * (of_U - h_ / 2 * of_B_bar[..., None] * _transposed(VB))
    of_B = h * R * of_B_bar + (_transposed(V) @ of_VB[..., None])[..., 0]
    of_P = h_ / 2 * _transposed(QR) @ of_G + R[..., None] * of_RP
    of_R = h * B * of_B_bar + (P * of_RP).sum(-1) + (_transposed(Q.conj()) * of_QR).sum(-2)
    of_rates = R * R * (of_e + of_R / 2)  # by dt w
    of_dt = (w * of_rates + of_B_bar * (R * B - h * (RP @ VB)[..., 0])).sum(-1)
    of_dt = of_dt + (RP * of_U).sum((-1, -2)) + (QR @ P * of_G).sum((-1, -2)) / 2
    of_Q = _transposed(R[..., None, :] * of_QR)  # by Q*
    conjugated = (x.conj() for x in (h * of_rates, of_P, of_Q.conj(), of_B, of_C, of_dt))
    return tuple(conjugated)
