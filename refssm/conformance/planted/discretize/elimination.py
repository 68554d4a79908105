"""Rational rules by an elimination that never exchanges rows, as short kernels have it."""

import numpy as np

from refssm.discretize.blocks import for_every
from refssm.discretize.rational import gbt_systems


def unpivoted(alpha=None):
    """Ā and B̄ of the rule with weight α; None if the rule has it as a keyword."""

    def program(right, A, B, dt, **own):
        M, N, H = gbt_systems(A, B, dt, alpha=own.get("alpha", alpha))
        return for_every(_eliminated(M, N), _eliminated(M, H))

    return program


def _eliminated(M, Y):
    """M⁻¹ Y from the first row to the last and back; a pivot of 0 gives NaN."""
    batch = np.broadcast_shapes(M.shape[:-2], Y.shape[:-2])
    M, Y = (np.broadcast_to(x, (*batch, *x.shape[-2:])).copy() for x in (M, Y))
    n = M.shape[-1]
    for k in range(n):
        factors = M[..., k + 1 :, k, None] / M[..., k, None, k, None]
        M[..., k + 1 :, :] -= factors * M[..., k, None, :]
        Y[..., k + 1 :, :] -= factors * Y[..., k, None, :]
    for k in reversed(range(n)):
        Y[..., k, :] /= M[..., k, k, None]
        Y[..., :k, :] -= M[..., :k, k, None] * Y[..., k, None, :]
    return Y
