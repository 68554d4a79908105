"""Honest DPLR kernels: dense recurrences, doubling, elimination at every node, S4's own steps."""

import numpy as np

from refssm.conformance.honest import Honest
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED
from refssm.dplr.system import matrix


def _dense(w, P, Q, B, dt):
    """Ā and B̄ by LAPACK."""
    A, h = matrix(w, P, Q), dt[..., None, None]
    I = np.eye(w.shape[-1], dtype=w.real.dtype)
    M = I - h * A / 2
    return np.linalg.solve(M, I + h * A / 2), np.linalg.solve(M, h * B[..., None])[..., 0]


def recurrent(w, P, Q, B, C, dt, *, l):
    """C Ā^k B̄, one product of a dense matrix and a vector a step."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    A_bar, x = _dense(w, P, Q, B, dt)
    K = []
    for _ in range(l):
        K.append((C * x).sum(-1))
        x = (A_bar @ x[..., None])[..., 0]
    return np.stack(K, axis=-1).astype(dtype)


IMPLEMENTATIONS = [
    *(Honest(op.name, "reference", op.reference, op.bare_vjp) for op in (DPLR_KERNEL, DPLR_KERNEL_ALIASED)),
    Honest(DPLR_KERNEL.name, "recurrent", recurrent),
]
