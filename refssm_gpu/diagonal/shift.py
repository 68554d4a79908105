"""Mirrors of refssm.diagonal.shift: a gather and a sum; entries from l = n on are zeros."""

from __future__ import annotations

from refssm.diagonal import SHIFT_KERNEL
from refssm_gpu._algebra.parts import at_places, conj
from refssm_gpu._launching.arrays import namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror


@mirror(SHIFT_KERNEL)
def shift_kernel(B, C, *, l):
    xp, n = namespace(B, C), B.shape[-1]
    i, k = xp.arange(n), xp.arange(min(l, n))[:, None]
    products = B[..., None, :] * at_places(C, i + k)
    K = xp.sum(xp.where(i + k < n, products, 0.0), axis=-1)  # NaN in B stays where it is read
    return xp.concat([K, xp.zeros((*K.shape[:-1], l - K.shape[-1]), dtype=K.dtype)], axis=-1)


@mirror(SHIFT_KERNEL)
def shift_kernel_vjp(dk, B, C, *, l):
    xp, n = namespace(dk), B.shape[-1]
    i, k = xp.arange(n)[:, None], xp.arange(min(l, n))
    dk = dk[..., None, : k.shape[0]]
    later, earlier = at_places(C, i + k), at_places(B, xp.where(k <= i, i - k, n))
    dB = xp.sum(xp.where(i + k < n, dk * conj(later), 0.0), axis=-1)
    dC = xp.sum(xp.where(k <= i, dk * conj(earlier), 0.0), axis=-1)
    return unbroadcast_each((dB, dC), (B, C))
