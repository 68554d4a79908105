"""The compiled attention of one chunk, as accurate as the reference's; the recurrence would be less
accurate. For slow decays, e^{log_a + log_a + …} has few rounding errors, a product of the factors
has one per step.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._gufunc import gufunc

DOUBLE = ("f8", "c16")  # single precision is computed in double and rounded once


@gufunc("(l,p),(l),(l,n),(l,n),(p,n),(l)->(l,p),(p,n)", flag=5, kinds=DOUBLE)
def _attended(x, log_a, B, C, S0, resets, y, S):
    """y_i = e^{T_i} S0 C_i + Σ_j e^{T_ij} (C_i · B_j) x_j, and the state after the chunk.

    T[0] is the log of S0's decay, T[1 + j] that of x_j; entries from `first` on belong to the
    current sequence.
    """
    (length, heads), size, first = x.shape, S0.shape[1], 0
    T, weights = np.empty(length + 1, x.dtype), np.empty(length + 1, x.dtype)
    columns, state = np.empty((size, length), x.dtype), np.empty((size, heads), x.dtype)
    inputs, row = np.empty((length, heads), x.dtype), np.empty(heads, x.dtype)
    for p in range(heads):
        for n in range(size):
            state[n, p] = S0[p, n]
        for j in range(length):
            inputs[j, p] = x[j, p]
    for n in range(size):
        for j in range(length):
            columns[n, j] = B[j, n]
    T[0] = 0
    for i in range(length):
        first = i + 1 if resets[i] else first
        T[i + 1] = 0
        for j in range(first, i + 1):
            T[j] += log_a[i]
        for j in range(i + 1):
            weights[j] = 0
        for p in range(heads):
            row[p] = 0
        for n in range(size):
            for j in range(i + 1):
                weights[j] += columns[n, j] * C[i, n]
            for p in range(heads if first == 0 else 0):
                row[p] += state[n, p] * C[i, n]
        weight = np.exp(T[0])
        for p in range(heads if first == 0 else 0):
            row[p] *= weight
        for j in range(max(first - 1, 0), i + 1):
            weight = np.exp(T[j + 1]) * weights[j]
            for p in range(heads):
                row[p] += weight * inputs[j, p]
        for p in range(heads):
            y[i, p] = row[p]
    weight = np.exp(T[0])
    for n in range(size):
        for p in range(heads):
            state[n, p] = weight * state[n, p] if first == 0 else x.dtype.type(0)
    for j in range(max(first - 1, 0), length):
        weight = np.exp(T[j + 1])
        for n in range(size):
            for p in range(heads):
                state[n, p] += weight * inputs[j, p] * columns[n, j]
    for n in range(size):
        for p in range(heads):
            S[p, n] = state[n, p]


def by_chunks(x, log_a, B, C, S, resets, chunk):
    """All outputs, and the last state."""
    kind, y = np.result_type(x, log_a, B, C, S), []
    for start in range(0, max(x.shape[-2], 1), chunk):
        w = slice(start, start + chunk)
        piece = x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :]
        more, S = _attended(*piece, S, resets[..., w])
        y.append(more)
    return np.concatenate(y, axis=-2).astype(kind, copy=False), S.astype(kind, copy=False)
