"""Mirrors of refssm.hankel.matrix: one gather, and the doubling of the Krylov kernel."""

from __future__ import annotations

from refssm.hankel import HANKEL_MATRIX, MARKOV_PARAMETERS
from refssm_gpu._algebra.parts import at_places
from refssm_gpu._launching.arrays import namespace, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.krylov import krylov_kernel, krylov_kernel_vjp

_kernel = krylov_kernel.__wrapped__  # without its checks, and under its own name in messages
_kernel_vjp = krylov_kernel_vjp.__wrapped__


@mirror(HANKEL_MATRIX)
def hankel_matrix(h):
    xp, n = namespace(h), h.shape[-1]
    i = xp.arange(n)
    return at_places(h, i[:, None] + i)


@mirror(HANKEL_MATRIX)
def hankel_matrix_vjp(dH, h):
    """Antidiagonals become columns, then they are summed."""
    xp, n = namespace(dH), h.shape[-1]
    i, k = xp.arange(n)[:, None], xp.arange(n)
    flat = xp.reshape(dH, (*dH.shape[:-2], n * n))
    along = at_places(flat, xp.where(i <= k, i * n + k - i, n * n))
    return (unbroadcast(xp.sum(along, axis=-2), h),)


@mirror(MARKOV_PARAMETERS)
def markov_parameters(A, B, C, *, l):
    return _kernel(A, B, C, l=l)


@mirror(MARKOV_PARAMETERS)
def markov_parameters_vjp(dh, A, B, C, *, l):
    return _kernel_vjp(dh, A, B, C, l=l)
