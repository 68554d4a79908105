"""Answers to the exercises of docs/learn/h3.md."""

import numpy as np


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def shift_kernel(B, C, *, l):
    n = B.shape[-1]
    shape = np.broadcast_shapes(B.shape, C.shape)[:-1]
    K = np.zeros((*shape, l), np.result_type(B, C))
    for k in range(min(l, n)):
        K[..., k] = (B[..., : n - k] * C[..., k:]).sum(-1)
    return K


def short_convolution(u, k):
    y = np.zeros(np.broadcast_shapes(u.shape, (*k.shape[:-1], 1)), np.result_type(u, k))
    for j in range(min(k.shape[-1], u.shape[-1])):
        y[..., j:] += k[..., j, None] * u[..., : u.shape[-1] - j]
    return y


def ema_kernel(delta, alpha, beta, gamma, *, l):
    p = sigmoid(delta)
    log_q = np.log1p(-p * sigmoid(alpha))
    n, j = p.shape[-1], np.arange(l, dtype=p.dtype)
    powers = np.exp(log_q[..., None] * j)
    return ((p * beta * gamma)[..., None] * powers).sum(-2) / np.sqrt(p.dtype.type(max(n, 1)))
