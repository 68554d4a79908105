"""Numba mirrors of refssm.diagonal.shift: sums of products, lag by lag."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.diagonal import SHIFT_KERNEL
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror

WIDE = ("f8", "c16")  # sums of n terms are in double precision and rounded once


@gufunc("(n),(n),(l)->(l)", kinds=WIDE)
def _shift(B, C, length, k):
    for j in range(k.size):
        k[j] = 0
        for i in range(B.size - j):
            k[j] += B[i] * C[i + j]


@gufunc("(l),(n),(n)->(n),(n)", kinds=WIDE)
def _shift_back(dk, B, C, dB, dC):
    for i in range(B.size):
        dB[i], dC[i] = 0, 0
    for j in range(dk.size):
        for i in range(B.size - j):
            dB[i] += dk[j] * np.conj(C[i + j])
            dC[i + j] += dk[j] * np.conj(B[i])


@mirror(SHIFT_KERNEL)
def shift_kernel(B, C, *, l):
    kind = np.result_type(B, C)
    return _shift(B, C, np.empty(l, kind)).astype(kind)


@mirror(SHIFT_KERNEL)
def shift_kernel_vjp(dk, B, C, *, l):
    del l  # dk has it
    kind = np.result_type(dk, B, C)
    return unbroadcast_each((g.astype(kind) for g in _shift_back(dk, B, C)), (B, C))
