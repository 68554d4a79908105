"""Mirrors of refssm.hippo.rescale: elementwise formulas."""

from __future__ import annotations

from refssm.hippo import HIPPO_RESCALE
from refssm_gpu._algebra.parts import along, batch_of, conj
from refssm_gpu._launching.arrays import namespace, unbroadcast
from refssm_gpu._launching.checked import mirror


@mirror(HIPPO_RESCALE)
def hippo_rescale(A, B, s):
    batch = batch_of((A, B, s), (2, 1, 1))
    A_scaled = s[..., :, None] * A / s[..., None, :]
    return along(A_scaled, batch, 2), along(s * B, batch, 1)


@mirror(HIPPO_RESCALE)
def hippo_rescale_vjp(dA_scaled, dB_scaled, A, B, s):
    xp, rows, columns = namespace(A), conj(s)[..., :, None], conj(s)[..., None, :]
    grown = dA_scaled * conj(A) / columns
    ds = xp.sum(grown, axis=-1) - xp.sum(grown * rows / columns, axis=-2) + dB_scaled * conj(B)
    dA, dB = dA_scaled * rows / columns, dB_scaled * conj(s)
    return unbroadcast(dA, A), unbroadcast(dB, B), unbroadcast(ds, s)
