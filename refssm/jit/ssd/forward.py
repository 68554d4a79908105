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

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain
from refssm.jit._vectors.matrix import (
    BYTES,
    block,
    held,
    lanes_at,
    lanes_of,
    matrix,
    memory_of,
    number,
    put,
    put_lanes,
    repeated,
    slab,
    turned,
)
from refssm.jit.ssd.tiles import ROWS, cleared, moved, multiplied, nothing, padded, weighted

CHUNK = 32
OWN = CHUNK  # the column of `weights` that has w_i, behind those of W_ij
WEIGHT = CHUNK + 8  # columns of `weights`: whole vectors in double precision
REAL = ("f4", "f8")
# the first rows of the matrices in `work`
IN_X, IN_Y, IN_B, IN_C, IN_M, IN_W, SCORES, ZERO = range(0, 8 * CHUNK, CHUNK)
ONE, HEIGHT = ZERO + 1, ZERO + ROWS


@part
def piece_end(start, length, resets):
    """The end of the piece that begins at `start`: the next multiple of CHUNK, reset or end."""
    stop, end = min(length, start - start % CHUNK + CHUNK), start + 1
    while end < stop and not resets[end]:
        end += 1
    return end


@part
def decays(log_a, begins, product, weights):
    """weights[i, j] = W_ij, 0 for j > i; weights[i, OWN] = w_i, which is 0 where a sequence begins;
    for the steps of the row log_a. `product` has room for one row in double precision."""
    plain()
    cleared(product)
    put(product, 0, OWN, 1.0)
    for i in range(log_a.columns):
        a = 0.0 if begins and i == 0 else np.exp(np.float64(number(log_a, 0, i)))
        for j in range(0, product.columns, lanes_of(product)):
            put_lanes(product, 0, j, a * lanes_at(product, 0, j))
        put(product, 0, i, 1.0)
        for j in range(0, product.columns, lanes_of(product)):
            put_lanes(weights, i, j, lanes_at(product, 0, j))


@part
def whole(count):
    """This many rows, and those that make whole tiles of them."""
    return (count + ROWS - 1) // ROWS * ROWS


@part
def _head(x, y, S, log_a, begins, B, C, scores, work, product):
    """One head in one piece: its outputs, and the state after it, as n rows of p numbers. Returns
    0 if they are finite, else NaN."""
    plain()
    count, rows, p = x.rows, C.rows, S.columns
    M, W = block(work, IN_M, 0, rows, CHUNK), block(work, IN_W, 0, rows, CHUNK)
    X, Y = block(work, IN_X, 0, rows, p), block(work, IN_Y, 0, rows, p)
    ones, zeros = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    decays(log_a, begins, product, W)
    weighted(M, W, scores)
    moved(X, ones, x)
    multiplied(Y, ones, zeros, C, S)
    for i in range(0, rows, ROWS):
        some = block(Y, i, 0, ROWS, p)
        own = block(W, i, OWN, ROWS, 1)
        multiplied(some, own, some, block(M, i, 0, ROWS, i + ROWS), X)
    moved(y, ones, Y)
    q = count - 1
    moved(X, turned(block(W, q, 0, 1, CHUNK)), x)
    multiplied(S, repeated(W, q, OWN), S, turned(block(B, 0, 0, count, B.columns)), X)
    return nothing(block(Y, 0, 0, count, p))


@gufunc("(h,l,p),(h,l),(l,n),(l,n),(l,q),(h,p,n),(l)->(h,l,p),(h,p,n),()", flag=6, kinds=REAL)
def scan_pieces(x, log_a, B, C, products, S0, resets, y, S_last, finite):
    """All outputs of h heads, the last states, and whether all are finite; products[i, j] is
    C_i · B_j for the j-th step since the last multiple of CHUNK."""
    (many, length, p), n, lanes = x.shape, B.shape[1], lanes_of(matrix(B))
    p, n, zero = padded(p, lanes), padded(n, lanes), x.dtype.type(0)
    width, states = max(p, n, CHUNK) + lanes, 8 * WEIGHT + many * n * p * x.itemsize
    memory = np.empty(states + HEIGHT * width * x.itemsize + BYTES, np.uint8)
    product = memory_of(memory, 0, 1, WEIGHT, 0.0)
    S = memory_of(memory, 8 * WEIGHT, many * n, p, zero)
    work = memory_of(memory, states, HEIGHT, width, zero)
    ones, checked, start = repeated(work, ONE, 0), zero, 0
    cleared(work)
    for j in range(width):
        put(work, ONE, j, 1.0)
    for h in range(many):
        moved(block(S, h * n, 0, n, p), ones, turned(slab(S0, h)))
    while start < length:
        stop = piece_end(start, length, resets)
        count, shift, begins = stop - start, start % CHUNK, resets[start]
        rows = whole(count)
        B_w, C_w = block(work, IN_B, 0, rows, n), block(work, IN_C, 0, rows, n)
        scores = block(work, SCORES, 0, rows, CHUNK)
        moved(B_w, ones, block(matrix(B), start, 0, count, B.shape[1]))
        moved(C_w, ones, block(matrix(C), start, 0, count, C.shape[1]))
        moved(scores, ones, block(matrix(products), start, shift, count, count))
        for h in range(many):
            S_h = block(S, h * n, 0, n, p)
            if begins:
                cleared(S_h)
            x_h = block(slab(x, h), start, 0, count, x.shape[2])
            y_h = block(slab(y, h), start, 0, count, x.shape[2])
            log_h = block(matrix(log_a), h, start, 1, count)
            checked += _head(x_h, y_h, S_h, log_h, begins, B_w, C_w, scores, work, product)
        start = stop
    for h in range(many):
        moved(slab(S_last, h), ones, turned(block(S, h * n, 0, n, p)))
    finite[0] = checked + nothing(S) == 0
    held(memory)


def products(B, C, chunk=CHUNK):
    """[i, j] is C_i · B_j for the j-th step since the last multiple of `chunk` before i."""
    l, n = B.shape[-2:]
    whole, batch = l - l % chunk, np.broadcast_shapes(B.shape[:-2], C.shape[:-2])
    Y = np.zeros((*batch, l, chunk), np.result_type(B, C))
    if whole:
        left, right = (
            c[..., :whole, :].reshape(*c.shape[:-2], whole // chunk, chunk, n) for c in (C, B)
        )
        Y[..., :whole, :] = (left @ right.mT).reshape(*batch, whole, chunk)
    Y[..., whole:, : l - whole] = C[..., whole:, :] @ B[..., whole:, :].mT
    return Y
