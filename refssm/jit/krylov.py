"""Mirrors of refssm.krylov: the states by doubling; two matrix products double their number.

[B, AB, …, A^{2q−1}B] = [X, A^q X] with X = [B, …, A^{q−1}B], and A^{2q} = A^q A^q: log₂ l matrix
products by BLAS instead of l products with a vector. The backward pass is a dense scan.
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.mirror import mirror
from refssm.jit.scan.dense import dense_scan
from refssm.krylov import KRYLOV_KERNEL


def _states(A, B, l):
    """[B, A B, …, A^{l−1} B], as columns."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1])
    X = np.broadcast_to(B, (*batch, B.shape[-1]))[..., None].astype(np.result_type(A, B))
    power = A
    while X.shape[-1] < l:
        X = np.concatenate([X, power @ X[..., : l - X.shape[-1]]], axis=-1)
        power = power @ power if X.shape[-1] < l else power
    return X[..., :l]


@mirror(KRYLOV_KERNEL)
def krylov_kernel(A, B, C, *, l):
    return (C[..., None, :] @ _states(A, B, l))[..., 0, :]


@mirror(KRYLOV_KERNEL)
def krylov_kernel_vjp(dK, A, B, C, *, l):
    """BLAS computes the products over time."""
    X = _states(A, B, l).conj()
    driven = dK[..., :, None] * C.conj()[..., None, :]
    g = dense_scan(A.mT.conj(), driven[..., ::-1, :])[..., ::-1, :]
    dA = g[..., 1:, :].mT @ X[..., :-1].mT
    dC = (X @ dK[..., :, None])[..., 0]
    return unbroadcast_each((dA, g[..., :1, :].sum(-2), dC), (A, B, C))
