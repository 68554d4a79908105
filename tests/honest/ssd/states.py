"""Honest state-space duality by its states: step by step, and as scans of flattened states."""

import numpy as np


def transposed_state(x, log_a, B, C, S0, resets, chunk):
    """The state as (n, p); y by a matrix product."""
    del chunk
    a, S, y = np.exp(log_a), np.swapaxes(S0, -1, -2), []
    for t in range(x.shape[-2]):
        carried = S * a[..., t, None, None]
        carried = np.where(resets[..., t, None, None], np.zeros_like(carried), carried)
        S = B[..., t, :, None] * x[..., t, None, :] + carried
        y.append((C[..., t, None, :] @ S)[..., 0, :])
    return np.stack(y, axis=-2), np.swapaxes(S, -1, -2).copy()


def doubling(x, log_a, B, C, S0, resets, chunk):
    """Hillis and Steele's scan of the states, with flags for spans in which a sequence starts."""
    del chunk
    a, S, flags = _elements(x, log_a, B, S0, resets)
    step = 1
    while step < S.shape[-3]:
        early, late = slice(0, S.shape[-3] - step), slice(step, None)
        carried = a[..., late, :, :] * S[..., early, :, :]
        kept = ~flags[..., late, :, :]
        S[..., late, :, :] = np.where(kept, carried, 0) + S[..., late, :, :]
        a[..., late, :, :] = np.where(kept, a[..., late, :, :] * a[..., early, :, :], 0)
        flags[..., late, :, :] |= flags[..., early, :, :].copy()
        step *= 2
    return _read(S, C), S[..., -1, :, :].copy()


def _elements(x, log_a, B, S0, resets):
    """Decays and inputs (…, l, p, n) whose scan from zero gives the states."""
    a = np.exp(log_a)[..., None, None]
    S = x[..., :, :, None] * B[..., :, None, :]
    start = np.where(resets[..., :1, None, None], 0, a[..., :1, :, :] * S0[..., None, :, :])
    shape = np.broadcast_shapes(a.shape, S.shape, start[..., :1, :, :].shape)
    S = np.broadcast_to(S, shape).astype(np.result_type(a, S, start))
    S[..., :1, :, :] += start
    a = np.broadcast_to(a, (*shape[:-2], 1, 1)).copy()
    flags = np.broadcast_to(resets[..., None, None] != 0, a.shape).copy()
    return a, S, flags


def _read(S, C):
    return (S @ C[..., :, :, None])[..., 0]


def as_linear_scan(scan):
    """The states as a linear scan of p·n numbers; for one sequence, as 0·NaN is NaN there."""

    def whole(x, log_a, B, C, S0, resets, chunk):
        del chunk
        a, S, _ = _elements(x, log_a, B, S0, resets)
        flat = S.reshape(*S.shape[:-2], -1)
        decays = np.broadcast_to(a[..., 0], flat.shape)
        S = scan(decays, flat).reshape(S.shape)
        return _read(S, C), S[..., -1, :, :].copy()

    return whole
