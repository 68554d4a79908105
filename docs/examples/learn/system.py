"""Answers to the exercises of docs/learn/system.md."""

import numpy as np


def transfer(A, B, C, D, s):
    M = s[..., None, None] * np.eye(A.shape[-1], dtype=A.dtype) - A[..., None, :, :]
    x = np.linalg.solve(M, np.broadcast_to(B[..., None, :, None], (*M.shape[:-1], 1)))
    return D[..., None] + (C[..., None, :] * x[..., 0]).sum(-1)


def markov_parameters(A, B, C, *, l):
    x, h = B, []
    for _ in range(l):
        h.append((C * x).sum(-1))
        x = (A @ x[..., None])[..., 0]
    return np.stack(h, axis=-1)


def hankel_matrix(h):
    n = h.shape[-1]
    i = np.arange(n)[:, None] + np.arange(n)
    return np.where(i < n, h[..., np.minimum(i, n - 1)], 0)
