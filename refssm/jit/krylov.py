"""Mirrors of refssm.krylov: the states by doubling, two matrix products for twice as many.

[B, AB, …, A^{2q−1}B] = [X, A^q X] with X = [B, …, A^{q−1}B], and A^{2q} = A^q A^q: log₂ l products
of matrices, which are BLAS's, in place of l products with a vector. The gradient is a dense scan.
"""

import numpy as np

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast_each
from refssm.jit.scan.dense import dense_scan, dense_scan_vjp
from refssm.krylov import KRYLOV_KERNEL


def krylov_kernel(A, B, C, *, l):
    """Mirror of refssm.krylov_kernel."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1])
    X = np.broadcast_to(B, (*batch, B.shape[-1]))[..., None].astype(np.result_type(A, B))
    power = A
    while X.shape[-1] < l:
        X = np.concatenate([X, power @ X[..., : l - X.shape[-1]]], axis=-1)
        power = power @ power if X.shape[-1] < l else power
    return (C[..., None, :] @ X[..., :l])[..., 0, :]


def krylov_kernel_vjp(dK, A, B, C, *, l):
    """Mirror of refssm.krylov_kernel_vjp: a scan started by B, and its adjoint."""
    common = np.result_type(A, B, C, dK)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    b = np.zeros((*batch, l, B.shape[-1]), common)
    b[..., :1, :] = B[..., None, :]
    x = dense_scan(A, b)
    dA, db = dense_scan_vjp(dK[..., :, None] * C.conj()[..., None, :].astype(common), A, b)
    dC = (dK[..., :, None] * x.conj()).sum(-2)
    return unbroadcast_each((dA, db[..., :1, :].sum(-2), dC), (A, B, C))


krylov_kernel = KRYLOV_KERNEL.checked(krylov_kernel, COMPILED_TYPES)
krylov_kernel_vjp = KRYLOV_KERNEL.checked_vjp(krylov_kernel_vjp, COMPILED_TYPES)
