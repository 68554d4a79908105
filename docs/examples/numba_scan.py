"""A Numba CUDA kernel behind a function of CuPy arrays."""

import cupy
from numba import cuda

from refssm.testing import implements

THREADS = 128


@cuda.jit
def each_row(a, b, x):
    """One thread for each sequence: x_k = a_k x_{k-1} + b_k."""
    row = cuda.grid(1)
    if row < b.shape[0] * b.shape[2]:
        i, n = row // b.shape[2], row % b.shape[2]
        for k in range(b.shape[1]):
            x[i, k, n] = a[i, k, n] * x[i, k - 1, n] + b[i, k, n] if k else b[i, 0, n]


@implements("linear_scan", framework="cupy", layout="b l n, b l n -> b l n")
def scan(a, b):
    x = cupy.zeros(b.shape, cupy.result_type(a, b))
    if x.size:
        stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
        each_row[-(-x[:, 0].size // THREADS), THREADS, stream](a, b, x)
    return x
