"""Convolutions along a whole sequence: sums in Numba, transforms by scipy.fft, rows by rows.

pocketfft, a compiled library, computes the transforms; their length is at least 2l − 1, with small
prime factors. Each thread takes a few rows through all steps, so that spectra stay in its cache.
"""

# pyright: reportOperatorIssue=false
# (scipy.fft dispatches)

from itertools import product
from math import prod

import numpy as np
from scipy import fft

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._compiling.threads import over_threads

ROWS = 8  # that pocketfft transforms together, one in each SIMD lane


@part
def _summed(u, k, y, sums):
    for i in range(u.size):
        sums[i] = 0
    for j in range(u.size):
        for i in range(u.size - j):
            sums[j + i] += sums.dtype.type(k[i]) * u[j]
    for i in range(u.size):
        y[i] = sums[i]


@gufunc("(l),(l)->(l)", kinds=("f4", "f8"))
def _real_sums(u, k, y):
    _summed(u, k, y, np.empty(u.size, np.float64))


@gufunc("(l),(l)->(l)", kinds=("c8", "c16"))
def _complex_sums(u, k, y):
    _summed(u, k, y, np.empty(u.size, np.complex128))


@mirror(CAUSAL_CONVOLUTION_DIRECT)
def causal_convolution_direct(u, k):
    """Single precision is summed in double."""
    return (_complex_sums if np.result_type(u, k).kind == "c" else _real_sums)(u, k)


@mirror(CAUSAL_CONVOLUTION_DIRECT)
def causal_convolution_direct_vjp(dy, u, k):
    """The same sum, time reversed."""
    backwards = dy[..., ::-1]
    du = causal_convolution_direct(backwards, k.conj())[..., ::-1]
    dk = causal_convolution_direct(backwards, u.conj())[..., ::-1]
    return unbroadcast_each((du, dk), (u, k))


class _Transform:
    """Transforms of `dtype`, long enough that l steps do not wrap around."""

    def __init__(self, l: int, dtype):
        self.l, self.dtype, real = l, np.dtype(dtype), np.dtype(dtype).kind != "c"
        self.n = fft.next_fast_len(2 * l - 1, real=real)
        self.forth, self.back = (fft.rfft, fft.irfft) if real else (fft.fft, fft.ifft)

    def spectrum(self, x):
        """The spectrum of some rows, on this thread."""
        return self.forth(x.astype(self.dtype, copy=False), self.n, workers=1)

    def signal(self, spectrum):
        """The first l steps of the rows with this spectrum, which is overwritten."""
        return self.back(spectrum, self.n, overwrite_x=True, workers=1)[..., : self.l]

    def spectra(self, x, batch):
        """The spectrum of x at a window of the batch; rows that several share are transformed
        once."""
        own = x.shape[:-1]
        if prod(own) == prod(batch):
            rows = x.reshape(*batch, self.l)
            return lambda window: self.spectrum(rows[window])
        length = self.n // 2 + 1 if self.dtype.kind == "f" else self.n
        whole = np.empty((*own, length), np.result_type(self.dtype, np.complex64))

        def transform(window):
            whole[window] = self.spectrum(x[window])

        over_threads(transform, _windows(own))
        shared = np.broadcast_to(whole, (*batch, whole.shape[-1]))
        return lambda window: shared[window]


def _windows(batch):
    """Indices of a few rows each, which together are the whole batch."""
    if not batch:
        return [()]
    axis = batch.index(max(batch))
    along = [[*range(length)] for length in batch]
    along[axis] = [slice(i, i + ROWS) for i in range(0, batch[axis], ROWS)]
    return [*product(*along)]


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution(u, k):
    l, common = u.shape[-1], np.result_type(u, k)
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1])
    y = np.empty((*batch, l), common)
    if y.size:
        transform = _Transform(l, common)
        U, K = (transform.spectra(x, batch) for x in (u, k))

        def convolve(window):
            y[window] = transform.signal(U(window) * K(window))

        over_threads(convolve, _windows(batch))
    return y


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution_vjp(dy, u, k):
    """Three transforms forth and two back."""
    l, common, batch = u.shape[-1], np.result_type(dy, u, k), dy.shape[:-1]
    du, dk = np.empty(dy.shape, common), np.empty(dy.shape, common)
    if dy.size:
        transform = _Transform(l, common)
        DY, U, K = (transform.spectra(x, batch) for x in (dy, u, k))

        def pull_back(window):
            spectrum = DY(window)
            du[window] = transform.signal(spectrum * K(window).conj())
            dk[window] = transform.signal(spectrum * U(window).conj())

        over_threads(pull_back, _windows(batch))
    return unbroadcast_each((du, dk), (u, k))
