"""Answers to the exercises of docs/learn/delta.md."""

import numpy as np


def gated_delta_rule(q, k, v, log_g, beta):
    S, y = 0 * k[..., 0, :, None] * v[..., 0, None, :], []
    for t in range(k.shape[-2]):
        S = np.exp(log_g[..., t, None, None]) * S
        key = k[..., t, :, None]
        new = v[..., t, :] - (S * key).sum(-2)  # what is new in v
        S = S + beta[..., t, None, None] * key * new[..., None, :]
        y.append((S * q[..., t, :, None]).sum(-2))
    return np.stack(y, axis=-2)


def delta_rule(q, k, v, beta):
    return gated_delta_rule(q, k, v, 0 * beta, beta)


def gated_linear_recurrence(q, k, v, log_g):
    S, y = 0, []
    for t in range(k.shape[-2]):
        S = np.exp(log_g[..., t, :, None]) * S + k[..., t, :, None] * v[..., t, None, :]
        y.append((S * q[..., t, :, None]).sum(-2))
    return np.stack(y, axis=-2)
