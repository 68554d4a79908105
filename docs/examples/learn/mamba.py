"""Answers to the exercises of docs/learn/mamba.md."""

import numpy as np


def selective_scan(u, dt, A, B, C):
    x, y = 0, []
    for k in range(u.shape[-1]):
        step = dt[..., k, None]
        x = np.exp(step * A) * x + step * u[..., k, None] * B[..., k, :]
        y.append((C[..., k, :] * x).sum(-1))
    return np.stack(y, axis=-1)


def ssd_recurrent(x, log_a, B, C):
    S, y = 0, []
    for t in range(x.shape[-2]):
        new = x[..., t, :, None] * B[..., t, None, :]
        S = np.exp(log_a[..., t, None, None]) * S + new
        y.append((S * C[..., t, None, :]).sum(-1))
    return np.stack(y, axis=-2)


def ssd_quadratic(x, log_a, B, C):
    l = x.shape[-2]
    M = np.zeros((*log_a.shape, l), log_a.dtype)
    for j in range(l):  # each sum by itself, not as a difference of two
        M[..., j + 1 :, j] = np.cumsum(log_a[..., j + 1 :], axis=-1)
    M = np.tril(np.exp(M)) * (C @ np.swapaxes(B, -1, -2))
    return M @ x
