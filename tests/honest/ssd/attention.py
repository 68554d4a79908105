"""Honest state-space duality as masked attention: by rows, by one matrix, and by chunks.

Masked entries are left out or selected, because 0·NaN is NaN. Only `masked_product` multiplies
them by zero, as tensor cores do.
"""

import numpy as np

from refssm.conformance.planted.ssd.right import segment_sums


def differences(log_a):
    """T_ij = c_i − c_j of one cumulative sum; its error is relative to the size of c."""
    c, i = np.cumsum(log_a, axis=-1), np.arange(log_a.shape[-1])
    return np.where(i[:, None] >= i, c[..., :, None] - c[..., None, :], 0)


def row_by_row(x, log_a, B, C, S0, resets, chunk):
    """Row by row, with exponents summed from each row's end; the first state is one more key."""
    del chunk
    y, l = [], x.shape[-2]
    for i in range(l):
        backwards = log_a[..., i::-1]
        T = np.cumsum(np.concatenate([np.zeros_like(log_a[..., :1]), backwards], axis=-1), axis=-1)
        begun = np.logical_or.accumulate(resets[..., i::-1], axis=-1)
        kept = np.concatenate([np.ones_like(begun[..., :1]), ~begun], axis=-1)
        weights = np.exp(np.where(kept, T, 0))
        past, keys = (
            _kept(kept[..., :-1], x[..., i::-1, :]),
            _kept(kept[..., :-1], B[..., i::-1, :]),
        )
        start = _kept(kept[..., -1, None], S0)
        scores = (keys @ C[..., i, :, None])[..., 0] * weights[..., :-1]
        read = (start @ C[..., i, :, None])[..., 0]
        y.append((scores[..., None, :] @ past)[..., 0, :] + read * weights[..., -1, None])
    added = np.swapaxes(past, -1, -2) @ (keys * weights[..., :-1, None])
    return np.stack(y, axis=-2), added + start * weights[..., -1, None, None]


def _kept(kept, rows):
    """The rows that are kept, and zeros for the others."""
    return np.where(kept[..., None], rows, 0)


def by_matrix(x, log_a, B, C, S0, resets, chunk):
    """One chunk: the whole matrix of weights."""
    return as_one_chunk(None)(x, log_a, B, C, S0, resets, chunk)


def as_one_chunk(inside):
    """One chunk, with its outputs by `inside`."""

    def whole(x, log_a, B, C, S0, resets, chunk):
        del chunk
        return by_chunks(inside=inside)(x, log_a, B, C, S0, resets, x.shape[-2])

    return whole


def masked_product(L, same, x, B, C):
    """(L ∘ C Bᵀ) x as a matrix product: the weights above the diagonal are zeros."""
    seen = same & np.tri(L.shape[-1], dtype=bool)
    return (L * seen * (C @ np.swapaxes(B, -1, -2))) @ x


def by_chunks(size=0, sums=segment_sums, inside=None):
    """Mamba-2's four steps: inside chunks, their states, between chunks, from states to outputs.

    Chunks have `size` steps, or as many as the call's `chunk`. The length is padded with zeros.
    `inside` computes the outputs inside of chunks.
    """

    def whole(x, log_a, B, C, S0, resets, chunk):
        l = x.shape[-2]
        q = min(size or chunk, l)
        x, B, C = (_cut(a, q, 2) for a in (x, B, C))
        log_a, resets = _cut(log_a, q, 1), _cut(resets, q, 1)
        T, begun = sums(log_a), np.cumsum(resets, axis=-1)
        same = begun[..., :, None] == begun[..., None, :]
        unbroken = begun == 0  # what the state before the chunk still reaches
        decay = np.exp(np.where(unbroken, T[..., 0] + log_a[..., :1], 0))
        L = np.exp(np.where(same, T, 0))
        y = (inside or _inside)(L, same, x, B, C)
        ends = _end_states(L, same, x, B)
        before, S = _between(ends, decay, unbroken, S0)
        read = decay[..., None] * (C @ np.swapaxes(before, -1, -2))
        y = y + np.where(unbroken[..., None], read, 0)
        return y.reshape(*y.shape[:-3], -1, y.shape[-1])[..., :l, :], S

    return whole


def _cut(a, q, rank):
    """Time (axis −rank) as chunks of q steps, one more axis; padded with zeros."""
    axis = a.ndim - rank
    l = a.shape[axis]
    widths = [(0, -l % q if k == axis else 0) for k in range(a.ndim)]
    return np.pad(a, widths).reshape(*a.shape[:axis], -1, q, *a.shape[axis + 1 :])


def _inside(L, same, x, B, C):
    """y_i = Σ_{j≤i} L_ij (C_i·B_j) x_j, one row of all chunks at a time."""
    y = []
    for i in range(x.shape[-2]):
        past = slice(0, i + 1)
        kept = same[..., i, past]
        scores = np.einsum("...n,...jn->...j", C[..., i, :], B[..., past, :])
        scores = np.where(kept, L[..., i, past] * scores, 0)
        y.append(np.einsum("...j,...jp->...p", scores, _kept(kept, x[..., past, :])))
    return np.stack(y, axis=-2)


def _end_states(L, same, x, B):
    """The state at the end of each chunk, from a zero state at its start."""
    kept = same[..., -1, :]
    weighted = L[..., -1, :, None] * _kept(kept, x)
    return np.einsum("...jp,...jn->...pn", weighted, _kept(kept, B))


def _between(ends, decay, unbroken, S0):
    """The state before each chunk, on one more axis, and the last state."""
    before, S = [], S0
    for c in range(ends.shape[-3]):
        before.append(S)
        carried = decay[..., c, -1, None, None] * S
        S = np.where(unbroken[..., c, -1, None, None], carried, 0) + ends[..., c, :, :]
    return np.stack(np.broadcast_arrays(*before), axis=-3), S
