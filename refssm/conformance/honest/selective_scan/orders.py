"""Selective scans in other orders of the same sums and products."""

from itertools import pairwise

import numpy as np

from refssm.conformance.honest.scan.base import hillis_steele, started
from refssm.conformance.honest.selective_scan.forms import batch_of


def discrete(u, dt, A, B, C, x0):
    """e^{dt A} and dt (u B), both (…, l, n) with the axes of all arguments."""
    shape = (*batch_of(u, dt, A, B, C, x0), *B.shape[-2:])
    decay = np.exp(dt[..., None] * A[..., None, :])
    drive = dt[..., None] * (u[..., None] * B)
    return np.broadcast_to(decay, shape), np.broadcast_to(drive, shape)


def one_state(u, dt, A, B, C, x0, resets):
    """Step by step, with only one state in memory."""
    y, x = [], np.broadcast_to(x0, (*batch_of(u, dt, A, B, C, x0), A.shape[-1])).copy()
    for k in range(u.shape[-1]):
        x = x * np.exp(A * dt[..., k, None])
        x = x if resets is None else np.where(resets[..., k, None], 0, x)
        x = (u[..., k] * dt[..., k])[..., None] * B[..., k, :] + x
        y.append(np.einsum("...n,...n->...", C[..., k, :], x))
    return np.stack(y, axis=-1), x


def by_scan(scan):
    """All states by a linear scan, then products with C."""

    def core(u, dt, A, B, C, x0, resets):
        a, b = discrete(u, dt, A, B, C, x0)
        x = started(scan)(a, b, x0) if resets is None else segmented(a, b, x0, resets)
        return np.einsum("...ln,...ln->...l", C, x), x[..., -1, :].copy()

    return core


def segmented(a, b, x0, resets):
    """The associative scan by log₂ l passes: a reset on the right drops all on its left."""
    a = a.astype(np.result_type(a, b, x0))
    first = np.where(resets[..., :1, None], 0, a[..., :1, :] * x0[..., None, :]) + b[..., :1, :]
    x = np.concatenate([first, b[..., 1:, :]], axis=-2).astype(a.dtype)
    gone, step = np.broadcast_to(resets[..., None], x.shape).copy(), 1
    while step < x.shape[-2]:
        kept = ~gone[..., step:, :]
        x[..., step:, :] += np.where(kept, a[..., step:, :] * x[..., :-step, :], 0)
        a[..., step:, :] = np.where(kept, a[..., step:, :] * a[..., :-step, :], 0)
        gone[..., step:, :] |= gone[..., :-step, :]
        step *= 2
    return x


def attention(u, dt, A, B, C, x0, resets):
    """y_k = Σ_j s_kj dt_j u_j with scores s_kj = C_k · (a_{j+1} … a_k B_j), row by row."""
    del resets  # by `apart`
    a, _ = discrete(u, dt, A, B, C, x0)
    v, y = dt * u, []
    row, start = np.ones_like(a), x0
    for k in range(u.shape[-1]):
        past = slice(0, k + 1)  # not 0 · B beyond: NaN would come back in time
        row[..., :k, :] *= a[..., k : k + 1, :]
        start = a[..., k, :] * start
        scores = np.einsum(
            "...n,...jn,...jn->...j", C[..., k, :], row[..., past, :], B[..., past, :]
        )
        first = np.einsum("...n,...n->...", C[..., k, :], start)
        y.append(np.einsum("...j,...j->...", scores, v[..., past]) + first)
    x = np.einsum("...jn,...jn,...j->...n", row, B, v) + start
    return np.stack(y, axis=-1), x


def segment_sums(size, sums):
    """Chunks of `size`: e^{A s_kj} with s_kj = dt_{j+1} + … + dt_k by `sums`."""

    def core(u, dt, A, B, C, x0, resets):
        del resets  # by `apart`
        y, x = [], x0
        for start in range(0, u.shape[-1], size):
            w = slice(start, start + size)
            piece, x = _chunk(sums(dt[..., w]), (dt * u)[..., w], A, B[..., w, :], C[..., w, :], x)
            y.append(piece)
        return np.concatenate(y, axis=-1), x

    return core


def masked_sums(dt):
    """s_kj as the cumulative sum over k of dt_k where k > j: (…, k, j), j = −1 the start."""
    l = dt.shape[-1]
    below = np.arange(l)[:, None] >= np.arange(l + 1)
    return np.cumsum(np.where(below, dt[..., :, None], 0), axis=-2)


def differences(dt):
    """s_kj = S_k − S_j of a chunk's cumulative sum: steps much smaller than S lose digits."""
    S = np.cumsum(dt, axis=-1)
    return S[..., :, None] - np.concatenate([0 * S[..., :1], S], axis=-1)[..., None, :]


def _chunk(s, v, A, B, C, x0):
    """One chunk, row by row: exponentials below the diagonal only, and the part from the state."""
    y, x = [], x0
    drive = v[..., None] * B
    for k in range(v.shape[-1]):
        decay = np.exp(s[..., k, : k + 1, None] * A[..., None, :])
        x = decay[..., 0, :] * x0 + drive[..., k, :]
        x = x + np.einsum("...jn,...jn->...n", decay[..., 1:, :], drive[..., :k, :])
        y.append(np.einsum("...n,...n->...", C[..., k, :], x))
    return np.stack(y, axis=-1), x


def apart(core):
    """For a `core` without resets: each packed sequence by itself, from a zero state."""

    def packed(u, dt, A, B, C, x0, resets):
        if resets is None:
            return core(u, dt, A, B, C, x0, None)
        batch, (l, n) = batch_of(u, dt, A, B, C, x0, resets), B.shape[-2:]
        u, dt, resets = (np.broadcast_to(v, (*batch, l)) for v in (u, dt, resets))
        B, C = (np.broadcast_to(v, (*batch, l, n)) for v in (B, C))
        A, x0 = (np.broadcast_to(v, (*batch, n)) for v in (A, x0))
        y, last = np.empty((*batch, l), np.result_type(u, A, B, C, x0)), np.empty_like(x0)
        for i in np.ndindex(*batch):
            cuts = [0, *(k for k in np.flatnonzero(resets[i]) if k), l]
            for first, end in pairwise(cuts):
                x = (dt[i][first] * u[i][first]) * B[i][first]  # no decay, no 0 · NaN
                y[i][first] = (C[i][first] * x).sum()
                w = slice(first + 1, end)
                if first + 1 < end:
                    y[i][w], x = core(u[i][w], dt[i][w], A[i], B[i][w], C[i][w], x, None)
                last[i] = x
        return y, last

    return packed


def half_and_half(u, dt, A, B, C, x0, resets):
    """The squared exponential of half a step, and the sum over states in reverse order."""
    decay = np.exp(dt[..., None] * (A[..., None, :] * A.real.dtype.type(0.5)))
    _, b = discrete(u, dt, A, B, C, x0)
    a = np.broadcast_to(decay * decay, b.shape)
    x = started(hillis_steele)(a, b, x0) if resets is None else segmented(a, b, x0, resets)
    return (C[..., ::-1] * x[..., ::-1]).sum(-1), x[..., -1, :].copy()
