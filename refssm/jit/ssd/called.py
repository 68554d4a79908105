"""The compiled scan of `forward` in Mamba-2's call: steps multiply x where a piece is read, and
what is written is gated. Neither Δ x nor ungated outputs are in memory as a whole.
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.lanes import plain
from refssm.jit._vectors.matrix import (
    BYTES,
    block,
    held,
    lanes_at,
    lanes_of,
    matrix,
    memory_of,
    neighbours,
    number,
    put,
    put_lanes,
    repeated,
    slab,
    turned,
)
from refssm.jit.ssd.forward import (
    CHUNK,
    HEIGHT,
    IN_B,
    IN_C,
    IN_M,
    IN_W,
    IN_X,
    IN_Y,
    ONE,
    OWN,
    REAL,
    SCORES,
    WEIGHT,
    ZERO,
    decays,
    piece_end,
    products,
    whole,
)
from refssm.jit.ssd.heads import grouped
from refssm.jit.ssd.tiles import ROWS, cleared, moved, multiplied, nothing, padded, weighted

STEP = ONE + 1  # the row of `work` that has the steps of a piece


@part
def _gated(y, s, D, x, z):
    """y = (s + D x) silu(z)."""
    plain()
    lanes, beside = lanes_of(s), neighbours(x) and neighbours(z) and neighbours(y)
    for i in range(y.rows):
        j = 0
        while beside and j + lanes <= y.columns:
            gate = exponential.silu(lanes_at(z, i, j))
            put_lanes(y, i, j, (lanes_at(s, i, j) + D * lanes_at(x, i, j)) * gate)
            j += lanes
        while j < y.columns:
            gate = exponential.silu(number(z, i, j))
            put(y, i, j, (number(s, i, j) + D * number(x, i, j)) * gate)
            j += 1


@part
def _head(x, z, y, S, step, log_a, D, begins, B, C, scores, work, product):
    """As in `forward`, for one head in one piece."""
    plain()
    count, rows, p = x.rows, C.rows, S.columns
    M, W = block(work, IN_M, 0, rows, CHUNK), block(work, IN_W, 0, rows, CHUNK)
    X, Y = block(work, IN_X, 0, rows, p), block(work, IN_Y, 0, rows, p)
    ones, zeros, steps = (
        repeated(work, ONE, 0),
        repeated(work, ZERO, 0),
        block(work, STEP, 0, 1, CHUNK),
    )
    decays(log_a, begins, product, W)
    weighted(M, W, scores)
    moved(steps, ones, step)
    moved(X, turned(steps), x)
    multiplied(Y, ones, zeros, C, S)
    for i in range(0, rows, ROWS):
        some = block(Y, i, 0, ROWS, p)
        own = block(W, i, OWN, ROWS, 1)
        multiplied(some, own, some, block(M, i, 0, ROWS, i + ROWS), X)
    _gated(y, Y, D, x, z)
    q = count - 1
    moved(X, turned(block(W, q, 0, 1, CHUNK)), X)
    multiplied(S, repeated(W, q, OWN), S, turned(block(B, 0, 0, count, B.columns)), X)
    return nothing(block(Y, 0, 0, count, p))


@gufunc(
    "(h,l,p),(h,l,p),(h,l),(h,l),(h),(l,n),(l,n),(l,q),(h,p,n),(l)->(h,l,p),(h,p,n),()",
    flag=9,
    kinds=REAL,
)
def _call_pieces(x, z, step, log_a, D, B, C, products, S0, resets, y, S_last, finite):
    """All gated outputs of h heads, the last states, and whether states and outputs before the gate
    are all finite."""
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
            z_h = block(slab(z, h), start, 0, count, x.shape[2])
            y_h = block(slab(y, h), start, 0, count, x.shape[2])
            step_h = block(matrix(step), h, start, 1, count)
            log_h = block(matrix(log_a), h, start, 1, count)
            checked += _head(
                x_h, z_h, y_h, S_h, step_h, log_h, D[h], begins, B_w, C_w, scores, work, product
            )
        start = stop
    for h in range(many):
        moved(slab(S_last, h), ones, turned(block(S, h * n, 0, n, p)))
    finite[0] = checked + nothing(S) == 0
    held(memory)


def call_in_pieces(x, z, step, log_a, D, B, C, S0, resets):
    """All gated outputs, the last state, and whether what is before the gate is finite."""
    shared = ((B, 2), (C, 2), (resets, 1))
    own = ((x, 2), (z, 2), (step, 1), (log_a, 1), (D, 0), (S0, 2))
    (x, z, step, log_a, D, S0), batch = grouped(own, shared)
    y, S, finite = _call_pieces(x, z, step, log_a, D, B, C, products(B, C), S0, resets)
    return y.reshape(*batch, *y.shape[-2:]), S.reshape(*batch, *S.shape[-2:]), finite.all()
