"""Fast forms of refssm.convolution: the sum in Numba, the transform by scipy.fft on all cores.

pocketfft, a compiled library, computes the transform. This module only chooses the length (at least
2l − 1, with small prime factors) and the number of threads.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# pyright: reportArgumentType=false, reportOperatorIssue=false
# (a gufunc allocates its outputs and scipy.fft dispatches; pyright sees neither)

import os

import numpy as np
from scipy import fft

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT
from refssm.jit._gufunc import compiled

WORKERS = os.cpu_count() or 1


@compiled(["(f4[:], f4[:], f4[:])", "(f8[:], f8[:], f8[:])"], "(l),(l)->(l)")
def _real_sums(u, k, y):
    sums = np.empty(u.size, np.float64)
    for i in range(u.size):
        sums[i] = 0
    for j in range(u.size):
        for i in range(u.size - j):
            sums[j + i] += np.float64(k[i]) * u[j]
    for i in range(u.size):
        y[i] = sums[i]


@compiled(["(c8[:], c8[:], c8[:])", "(c16[:], c16[:], c16[:])"], "(l),(l)->(l)")
def _complex_sums(u, k, y):
    sums = np.empty(u.size, np.complex128)
    for i in range(u.size):
        sums[i] = 0
    for j in range(u.size):
        for i in range(u.size - j):
            sums[j + i] += np.complex128(k[i]) * u[j]
    for i in range(u.size):
        y[i] = sums[i]


def causal_convolution_direct(u, k):
    """Mirror of refssm.causal_convolution_direct; single precision is summed in double."""
    return (_complex_sums if np.result_type(u, k).kind == "c" else _real_sums)(u, k)


def causal_convolution_direct_vjp(dy, u, k):
    """Mirror of refssm.causal_convolution_direct_vjp."""
    return _time_reversed(causal_convolution_direct, dy, u, k)


def causal_convolution(u, k):
    """Mirror of refssm.causal_convolution."""
    l, common = u.shape[-1], np.result_type(u, k)
    if l == 0:
        return np.zeros(np.broadcast_shapes(u.shape, k.shape), common)
    if common.kind == "c":
        n = fft.next_fast_len(2 * l - 1)
        U, K = (fft.fft(x.astype(common), n, workers=WORKERS) for x in (u, k))
        return fft.ifft(U * K, overwrite_x=True, workers=WORKERS)[..., :l]
    n = fft.next_fast_len(2 * l - 1, real=True)
    U, K = (fft.rfft(x.astype(common), n, workers=WORKERS) for x in (u, k))
    return fft.irfft(U * K, n, overwrite_x=True, workers=WORKERS)[..., :l]


def causal_convolution_vjp(dy, u, k):
    """Mirror of refssm.causal_convolution_vjp."""
    return _time_reversed(causal_convolution, dy, u, k)


def _time_reversed(convolution, dy, u, k):
    """The adjoint of a causal convolution runs backwards in time, with the conjugate kernel."""
    backwards = dy[..., ::-1]
    du = convolution(backwards, k.conj())[..., ::-1]
    dk = convolution(backwards, u.conj())[..., ::-1]
    return unbroadcast(du, u), unbroadcast(dk, k)


causal_convolution_direct_vjp = CAUSAL_CONVOLUTION_DIRECT.checked_vjp(
    causal_convolution_direct_vjp, COMPILED_TYPES
)
causal_convolution_direct = CAUSAL_CONVOLUTION_DIRECT.checked(
    causal_convolution_direct, COMPILED_TYPES
)
causal_convolution_vjp = CAUSAL_CONVOLUTION.checked_vjp(causal_convolution_vjp, COMPILED_TYPES)
causal_convolution = CAUSAL_CONVOLUTION.checked(causal_convolution, COMPILED_TYPES)
