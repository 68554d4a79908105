"""The compiled scan of state-space duality in real arithmetic, a piece of at most CHUNK steps at a
time, by matrix products. With i and j counted from the start of a piece and S the state before it,

    y_i = w_i S C_i + Σ_{j≤i} W_ij (C_i · B_j) x_j,    w_i = a_0 … a_i,    W_ij = a_{j+1} … a_i,
    S   ← w_q S + Σ_j W_qj x_j B_jᵀ,                   q the last step, a = e^{log_a}.

A reset begins a new piece with no state, so nothing passes it. Weights are products in double
precision, rounded once. Zero times a later NaN is NaN in these products: a slice whose results are
not all finite says so, and the caller computes it step by step.
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm.jit._gufunc import gufunc
from refssm.jit.ssd.tiles import ROWS, buffer, dense, filled, moved, multiplied

CHUNK = 32
REAL = ("f4", "f8")


@njit
def piece_end(start, length, resets):
    """The end of the piece that begins at `start`: the next multiple of CHUNK, reset or end."""
    stop, end = min(length, start - start % CHUNK + CHUNK), start + 1
    while end < stop and not resets[end]:
        end += 1
    return end


@njit
def decays(log_a, begins, product, weights):
    """weights[i, 1 + j] = W_ij and weights[i, 0] = w_i, which is 0 where a sequence begins."""
    for i in range(log_a.size):
        a = np.exp(np.float64(log_a[i]))
        for j in range(i + 1):
            product[j] *= a
        product[i + 1] = 1
        if i == 0:
            product[0] = 0 if begins else a
        for j in range(i + 2):
            weights[i, j] = product[j]


@njit(fastmath={"reassoc"})
def nothing(Y):
    """0 if all numbers are finite, else NaN; rows are contiguous."""
    total = Y.dtype.type(0)
    for i in range(Y.shape[0]):
        row = dense(Y[i])
        for j in range(row.size):
            total += 0 * row[j]
    return total


@njit(inline="always")
def advanced(S, weights, x, B, kept, weighted):
    """S ← w_q S + Σ_j W_qj B_j x_jᵀ, as n rows of p numbers."""
    last, count = weights[len(x) - 1], len(x)
    moved(weighted, x, last[1:])
    kept[:] = last[0]
    multiplied(S, kept, S, B.T, weighted[:count])


@njit(inline="always")
def _outputs(Y, C, S, M, X, weights, zeros):
    """Y_i = w_i S C_i + Σ_{j≤i} M_ij x_j."""
    count = len(C)
    multiplied(Y[:count], zeros, Y[:count], C, S)
    for i in range(0, count, ROWS):
        rows = slice(i, min(i + ROWS, count))
        multiplied(Y[rows], weights[rows, 0], Y[rows], M[rows, : rows.stop], X)


@gufunc("(h,l,p),(h,l),(l,n),(l,n),(l,q),(h,p,n),(l)->(h,l,p),(h,p,n),()", flag=6, kinds=REAL)
def scan_pieces(x, log_a, B, C, products, S0, resets, y, S_last, finite):
    """All outputs of h heads, the last states, and whether all are finite; products[i, j] is
    C_i · B_j for the j-th step since the last multiple of CHUNK."""
    (many, length, heads), size = x.shape, B.shape[1]
    S = buffer(many * size, heads, x).reshape(many, size, -1)
    memory = buffer(3 * CHUNK, heads, x)
    Y, X, weighted = memory[:CHUNK], memory[CHUNK : 2 * CHUNK], memory[2 * CHUNK :]
    square = buffer(CHUNK + 3, max(size, 2 * CHUNK), x)
    M, weights = square[:CHUNK, :CHUNK], np.empty((CHUNK, CHUNK + 1), x.dtype)
    zeros, ones, kept = square[CHUNK], square[CHUNK + 1], square[CHUNK + 2]
    product, checked, start = np.empty(CHUNK + 1), x.dtype.type(0), 0
    ones[:] = 1
    for h in range(many):
        filled(S[h], S0[h].T)
    while start < length:
        stop = piece_end(start, length, resets)
        w, count, shift = slice(start, stop), stop - start, start % CHUNK
        for h in range(many):
            if resets[start]:
                filled(S[h], S0[h, :0].T)
            decays(log_a[h, w], resets[start], product, weights)
            for i in range(count):
                for j in range(i + 1):
                    M[i, j] = weights[i, 1 + j] * products[start + i, shift + j]
            moved(X, x[h, w], ones)
            _outputs(Y, C[w], S[h], M, X, weights, zeros)
            moved(y[h, w], Y[:count, :heads], ones)
            checked += nothing(Y[:count])
            advanced(S[h], weights, x[h, w], B[w], kept, weighted)
        start = stop
    for h in range(many):
        filled(S_last[h], S[h].T)
        checked += nothing(S[h])
    finite[0] = checked == 0


@gufunc("(i,n),(j,n)->(i,j)", kinds=REAL)
def _products(C, B, Y):
    """Y_ij = C_i · B_j."""
    columns, Z = buffer(B.shape[1], B.shape[0], B), buffer(C.shape[0] + 1, B.shape[0], B)
    filled(columns, B.T)
    multiplied(Z[:-1], buffer(1, len(C), C)[0], Z[:-1], C, columns)
    filled(Y, Z)


def products(B, C):
    """[i, j] is C_i · B_j for the j-th step since the last multiple of CHUNK before i."""
    l, n = B.shape[-2:]
    whole, batch = l - l % CHUNK, np.broadcast_shapes(B.shape[:-2], C.shape[:-2])
    Y = np.zeros((*batch, l, CHUNK), np.result_type(B, C))
    if whole:
        pieces = (
            c[..., :whole, :].reshape(*c.shape[:-2], whole // CHUNK, CHUNK, n) for c in (C, B)
        )
        Y[..., :whole, :] = _products(*pieces).reshape(*batch, whole, CHUNK)
    Y[..., whole:, : l - whole] = _products(C[..., whole:, :], B[..., whole:, :])
    return Y
