"""A block of linear recurrent units in plain NumPy, as somebody may have written it.

refssm verify docs/examples/lru_block.py
"""

import math

import numpy as np
from scipy.special import erf


def lru_layer(u, log_rate, log_phase, log_gamma, B, C, D, W, b):
    """From rest."""
    rest = np.zeros((*u.shape[:-2], len(log_rate)), C.dtype)
    return lru_layer_stateful(u, log_rate, log_phase, log_gamma, B, C, D, W, b, rest)[0]


def lru_layer_stateful(u, log_rate, log_phase, log_gamma, B, C, D, W, b, x0):
    """From a state, for generation; also the state after the last step."""
    a = np.exp(-np.exp(log_rate) + 1j * np.exp(log_phase))
    x, y = x0.copy(), np.empty_like(u)
    for k in range(u.shape[-2]):
        x = a * x + np.exp(log_gamma) * (u[..., k, :] @ B.T)
        y[..., k, :] = (x @ C.T).real + D * u[..., k, :]
    hidden = 0.5 * y * (1 + erf(y * math.sqrt(0.5)))
    value, gate = np.split(hidden @ W + b, 2, axis=-1)
    return value / (1 + np.exp(-gate)), x
