"""Selective scans in other orders of the same sums and products."""

from itertools import pairwise

import numpy as np

from refssm.conformance.planted.scan.right import hillis_steele, started
from refssm.conformance.planted.selective_scan.forms import batch_of
from refssm.conformance.planted.selective_scan.right import (
    discrete,
    segmented,
)


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


def _on_one_axis(batch, arrays, cores):
    """The arrays (…, g, d, core) as (…, g d, core): channel k of all belongs to k // d."""
    wide = (*batch[:-2], batch[-2] * batch[-1])
    owns = [x.shape[x.ndim - core :] for x, core in zip(arrays, cores, strict=True)]
    filled = [np.broadcast_to(x, (*batch, *own)) for x, own in zip(arrays, owns, strict=True)]
    return [x.reshape(*wide, *own) for x, own in zip(filled, owns, strict=True)]


def on_one_axis(core):
    """All channels on one axis, each with its group's B and C copied."""

    def wide(u, dt, A, B, C, x0, resets):
        batch = batch_of(u, dt, A, B, C, x0)
        if len(batch) < 2:
            return core(u, dt, A, B, C, x0, resets)
        arrays, cores = (u, dt, A, B, C, x0), (1, 1, 1, 2, 2, 1)
        if resets is not None:
            (resets,) = _on_one_axis(batch, (resets,), (1,))
        y, x = core(*_on_one_axis(batch, arrays, cores), resets)
        return y.reshape(*batch, y.shape[-1]), x.reshape(*batch, x.shape[-1])

    return wide


def on_one_axis_back(back):
    """The gradients of channels on one axis, which the caller adds up for each group."""

    def wide(dy, dx, u, dt, A, B, C, x0, resets):
        batch = batch_of(u, dt, A, B, C, x0, dy)
        if len(batch) < 2:
            return back(dy, dx, u, dt, A, B, C, x0, resets)
        arrays, cores = (dy, dx, u, dt, A, B, C, x0), (1, 1, 1, 1, 1, 2, 2, 1)
        if resets is not None:
            (resets,) = _on_one_axis(batch, (resets,), (1,))
        gradients = back(*_on_one_axis(batch, arrays, cores), resets)
        own = (1, 1, 1, 2, 2, 1)
        return tuple(
            g.reshape(*batch, *g.shape[g.ndim - core :])
            for g, core in zip(gradients, own, strict=True)
        )

    return wide


def half_and_half(u, dt, A, B, C, x0, resets):
    """The squared exponential of half a step, and the sum over states in reverse order."""
    decay = np.exp(dt[..., None] * (A[..., None, :] * A.real.dtype.type(0.5)))
    _, b = discrete(u, dt, A, B, C, x0)
    a = np.broadcast_to(decay * decay, b.shape)
    x = started(hillis_steele)(a, b, x0) if resets is None else segmented(a, b, x0, resets)
    return (C[..., ::-1] * x[..., ::-1]).sum(-1), x[..., -1, :].copy()
