"""Numba mirrors of refssm.diagonal.liquid: states step by step, gradients by Horner's rule."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.diagonal import LIQUID_KERNEL
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit.vandermonde import rounded

WIDE = ("f8", "c16")  # sums of n terms are in double precision and rounded once


@gufunc("(n),(n),(l)->(l)", kinds=WIDE)
def _fading(a, v, length, k):
    """Σ_n v_n a_n^m, each power from the one before, n at a time."""
    x = v.copy()
    for m in range(k.size):
        k[m] = 0
        for n in range(x.size):
            k[m] += x[n]
            x[n] *= a[n]


@gufunc("(l),(n)->(n),(n)", kinds=WIDE)
def _fading_back(dk, a, S, T):
    """Σ_m dk_m q^m and its derivative by q, q = a*, by Horner's rule."""
    for n in range(a.size):
        S[n], T[n] = 0, 0
        for m in range(dk.size - 1, -1, -1):
            T[n] = S[n] + np.conj(a[n]) * T[n]
            S[n] = dk[m] + np.conj(a[n]) * S[n]


@mirror(LIQUID_KERNEL)
def liquid_kernel(a, B, C, *, l, degree=2):
    """In double precision, rounded once."""
    kind = np.result_type(a, B, C)
    wide = np.result_type(kind, np.float64)
    return _fading(
        a.astype(wide), C.astype(wide) * B.astype(wide) ** degree, np.empty(l, wide)
    ).astype(kind)


@mirror(LIQUID_KERNEL)
def liquid_kernel_vjp(dk, a, B, C, *, l, degree=2):
    del l  # dk has it
    kind = np.result_type(dk, a, B, C)
    wide = np.result_type(kind, np.float64)
    d, q, b, c = (x.astype(wide) for x in (dk, a, B, C))
    S, T = _fading_back(d, q)
    dB = (degree * c * b ** (degree - 1)).conj() * S
    gradients = (c * b**degree).conj() * T, dB, (b**degree).conj() * S
    return rounded(unbroadcast_each(gradients, (a, B, C)), kind)
