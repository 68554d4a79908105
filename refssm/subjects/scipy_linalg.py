"""scipy.linalg.expm of dt [[A, B], [0, 0]]: zero-order hold."""

import numpy as np
from scipy.linalg import expm

from refssm.testing import implements


@implements("discretize_zoh")
def discretize_zoh(A, B, dt):
    """The blocks of the augmented exponential, for one system."""
    n, m = B.shape
    G = dt * np.block([[A, B], [np.zeros((m, n + m), B.dtype)]])
    E = expm(G)
    return E[:n, :n], E[:n, n:]
