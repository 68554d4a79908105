"""Answers to the exercises of docs/learn/recurrence.md."""

import numpy as np


def linear_scan(a, b):
    x = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    state = np.zeros_like(x[..., 0, :])
    for k in range(x.shape[-2]):
        state = a[..., k, :] * state + b[..., k, :]
        x[..., k, :] = state
    return x


def krylov_kernel(A, B, C, *, l):
    x, K = B, []
    for _ in range(l):
        K.append((C * x).sum(-1))
        x = (A @ x[..., None])[..., 0]
    return np.stack(K, axis=-1)


def causal_convolution(u, k):
    l, n = u.shape[-1], 2 * u.shape[-1]
    if np.iscomplexobj(u) or np.iscomplexobj(k):
        y = np.fft.ifft(np.fft.fft(u, n) * np.fft.fft(k, n))
    else:
        y = np.fft.irfft(np.fft.rfft(u, n) * np.fft.rfft(k, n), n)
    return y[..., :l].astype(np.result_type(u, k))
