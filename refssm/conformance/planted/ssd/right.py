"""Right parts of state-space duality into which bugs are planted."""

import numpy as np


def segment_sums(log_a):
    """T_ij = log_a_{j+1} + … + log_a_i for j ≤ i, by sums down a masked matrix; 0 above."""
    i = np.arange(log_a.shape[-1])
    return np.cumsum(np.where(i[:, None] > i, log_a[..., :, None], 0), axis=-2)


def through_attention(dy, dS, x, log_a, B, C, S0, resets, chunk):
    """What autodiff makes of the matrix of weights: the cotangent of T summed where it was summed.

    With M = L∘(C Bᵀ) and dM = dy xᴴ, the cotangent of T_ij = Σ log_a is M* dM, and log_a_t gets
    those of every i ≥ t > j. The state before is one more column, the last state more rows.
    """
    del chunk
    T, begun = segment_sums(log_a), np.cumsum(resets, axis=-1)
    i = np.arange(log_a.shape[-1])
    seen = (i[:, None] >= i) & (begun[..., :, None] == begun[..., None, :])
    L = np.where(seen, np.exp(np.where(seen, T, 0)), 0)
    unbroken = begun == 0
    sums = T[..., 0] + log_a[..., :1]
    decay = np.where(unbroken, np.exp(np.where(unbroken, sums, 0)), 0)
    CB, dyx = C @ _turned(B), dy @ _turned(x).conj()
    M, dM = L * CB, L.conj() * dyx
    dx = _turned(M).conj() @ dy
    dB, dC = _turned(dM) @ C.conj(), dM @ B.conj()
    read = dy @ S0.conj()  # (…, l, n): dy_i through the state before
    dC = dC + decay[..., None].conj() * read
    ddecay = (read * C.conj()).sum(-1)
    dS0 = _turned(decay[..., None].conj() * dy) @ C.conj()
    # the last state
    last, kept = L[..., -1, :, None], decay[..., -1, None, None]
    dx = dx + last.conj() * (B.conj() @ _turned(dS))
    dB = dB + last.conj() * (x.conj() @ dS)
    dS0 = dS0 + kept.conj() * dS
    dT = CB.conj() * dM
    dT[..., -1, :] += last[..., 0].conj() * ((x.conj() @ dS) * B.conj()).sum(-1)
    ddecay[..., -1] += (dS * S0.conj()).sum((-2, -1))
    return dx, _summed(dT, decay.conj() * ddecay), dB, dC, dS0


def _turned(a):
    return np.swapaxes(a, -1, -2)


def _summed(dT, dsums):
    """dlog_a_t = Σ_{i≥t>j} dT_ij + Σ_{i≥t} dsums_i, by reversed cumulative sums."""
    i = np.arange(dsums.shape[-1])
    below = np.cumsum(dT[..., ::-1, :], axis=-2)[..., ::-1, :]
    return np.where(i[:, None] > i, below, 0).sum(-1) + np.cumsum(dsums[..., ::-1], -1)[..., ::-1]
