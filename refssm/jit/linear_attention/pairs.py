"""Gradients through the scores of one chunk of linear attention, for compiled code.

Pairs are halved as in `weights`. With X = dA (D_r K), the right half has D_r∘X in dK; the products
of that with K, summed over later steps, belong to log_g in the right half; in the left half so
those of the earlier steps.
"""

from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain, times_plus, total
from refssm.jit._vectors.matrix import (
    block,
    lanes_at,
    lanes_of,
    number,
    put,
    put_lanes,
    repeated,
    turned,
    zeros,
)
from refssm.jit.linear_attention.weights import (
    CHUNK,
    DECAY,
    FROM,
    IN_A,
    IN_K,
    IN_N,
    IN_P,
    IN_Q,
    LEAF,
    LEFT,
    ONE,
    RIGHT,
    RIGHT_Q,
    ZERO,
    decayed_from,
    decayed_to,
)
from refssm.jit.ssd.tiles import ROWS, multiplied

# the first rows of the matrices in `more`
IN_Y, IN_M, IN_R, DP, DA, DQ, DK, DG, AWAY = range(0, 9 * CHUNK, CHUNK)
LOOSE = 9 * CHUNK  # from here on as many rows as a key or a value has numbers
HALF = CHUNK // 2


@part
def pairs_back(one, corrected, rows, n, work, more):
    """Adds to DQ, DK and DG what comes from DP and DA; `one`: one decay for all keys."""
    plain()
    if one:
        _of_one(corrected, rows, n, work, more)
        return
    for s in range(0, rows, LEAF):
        _leaf(s, min(LEAF, rows - s), n, work, more)
    w = LEAF
    while w < rows:
        for s in range(0, rows - w, 2 * w):
            _across(s, w, min(w, rows - s - w), n, work, more)
        w += w


@part
def _of_one(corrected, rows, n, work, more):
    """Matrix products with D∘DP and D∘DA; the parts of log_g in IN_A. DQ has no weights yet."""
    plain()
    ones = repeated(work, ONE, 0)
    for c in range(0, rows, lanes_of(work)):
        put_lanes(work, IN_N, c, zeros(work))
    for i in range(rows):
        a = number(work, DECAY + i, 0)
        for c in range(0, rows, lanes_of(work)):
            put_lanes(work, IN_N, c, a * lanes_at(work, IN_N, c))
        put(work, IN_N, i, 1.0)
        for c in range(0, rows, lanes_of(work)):
            D, dP, dA = (
                lanes_at(work, IN_N, c),
                lanes_at(more, DP + i, c),
                -1.0 * lanes_at(more, DA + i, c),
            )
            of_q, of_k = lanes_at(work, IN_P + i, c) * dP, lanes_at(work, IN_A + i, c) * dA
            put_lanes(work, IN_A + i, c, of_q + of_k)
            put_lanes(more, DP + i, c, D * dP)
            put_lanes(more, DA + i, c, D * dA)
        put(more, DA + i, i, 0.0)
    _crossing(rows, work, more)
    for i in range(0, rows, ROWS):
        K = block(work, IN_K, 0, i + ROWS, n)
        some = block(more, DQ + i, 0, ROWS, n)
        E = block(work, FROM + i, 0, ROWS, 1)
        multiplied(some, E, some, block(more, DP + i, 0, ROWS, i + ROWS), K)
        Q, some = block(work, IN_Q + i, 0, rows - i, n), block(more, DK + i, 0, ROWS, n)
        multiplied(some, ones, some, turned(block(more, DP + i, i, rows - i, ROWS)), Q)
        if corrected:
            multiplied(some, ones, some, block(more, DA + i, 0, ROWS, i + ROWS), K)
            K = block(work, IN_K + i, 0, rows - i, n)
            multiplied(some, ones, some, turned(block(more, DA + i, i, rows - i, ROWS)), K)


@part
def _crossing(rows, work, more):
    """Adds Σ_{j<t≤i} of IN_A to DG_t, in its first column."""
    plain()
    for c in range(0, rows, lanes_of(work)):
        put_lanes(work, IN_N, c, zeros(work))
    for t in range(rows - 1, -1, -1):
        for c in range(0, rows, lanes_of(work)):
            later = lanes_at(work, IN_N, c) + lanes_at(work, IN_A + t, c)
            put_lanes(work, IN_N, c, later)
        put(work, IN_N, t, 0.0)  # from here on j < t, and those above were 0 in every row
        across = zeros(work)
        for c in range(0, rows, lanes_of(work)):
            across = across + lanes_at(work, IN_N, c)
        put(more, DG + t, 0, number(more, DG + t, 0) + total(across))


@part
def _leaf(s, count, n, work, more):
    """All pairs of some steps from s on, with the weights of the row (in LEFT)."""
    plain()
    for c in range(0, n, lanes_of(work)):
        for i in range(s, s + count):
            q, k, a = (
                lanes_at(work, IN_Q + i, c),
                lanes_at(work, IN_K + i, c),
                lanes_at(work, DECAY + i, c),
            )
            dq, dk, before = zeros(work), zeros(work), zeros(work)
            put_lanes(work, LEFT + i - s, c, lanes_at(work, ONE, c))
            for j in range(s, i + 1):
                D = lanes_at(work, LEFT + j - s, c)
                if j < i:
                    D = D * a
                    put_lanes(work, LEFT + j - s, c, D)
                key, dP, dA = (
                    D * lanes_at(work, IN_K + j, c),
                    number(more, DP + i, j),
                    number(more, DA + i, j),
                )
                dq, dk = times_plus(key, dP, dq), times_plus(key, dA, dk)
                through = q * dP + k * dA
                put_lanes(more, DK + j, c, times_plus(D, through, lanes_at(more, DK + j, c)))
                if j < i:
                    before = times_plus(key, through, before)
                    put_lanes(more, DG + j + 1, c, lanes_at(more, DG + j + 1, c) + before)
            put_lanes(more, DQ + i, c, lanes_at(more, DQ + i, c) + dq)
            put_lanes(more, DK + i, c, lanes_at(more, DK + i, c) + dk)


@part
def _across(s, w, count, n, work, more):
    """Pairs of the steps from s + w on with the w steps before them."""
    plain()
    ones, zero, r = repeated(work, ONE, 0), repeated(work, ZERO, 0), s + w
    decayed_to(s, w, n, work)
    decayed_from(r, count, n, work)
    of_k, of_q = block(more, DA + r, s, count, w), block(more, DP + r, s, count, w)
    keys = block(work, LEFT, 0, w, n)
    multiplied(block(work, IN_N, 0, count, n), ones, zero, of_k, keys)
    multiplied(block(work, IN_N + HALF, 0, count, n), ones, zero, of_q, keys)
    for c in range(0, n, lanes_of(work)):
        later = zeros(work)
        for i in range(count - 1, -1, -1):
            D = lanes_at(work, RIGHT + HALF + i, c)
            dk, dq = D * lanes_at(work, IN_N + i, c), D * lanes_at(work, IN_N + HALF + i, c)
            put_lanes(more, DK + r + i, c, lanes_at(more, DK + r + i, c) + dk)
            put_lanes(more, DQ + r + i, c, lanes_at(more, DQ + r + i, c) + dq)
            later = times_plus(dk, lanes_at(work, IN_K + r + i, c), later)
            later = times_plus(dq, lanes_at(work, IN_Q + r + i, c), later)
            put_lanes(more, DG + r + i, c, lanes_at(more, DG + r + i, c) + later)
    Y = block(work, IN_N, 0, w, n)
    multiplied(Y, ones, zero, turned(of_k), block(work, RIGHT, 0, count, n))
    multiplied(Y, ones, Y, turned(of_q), block(work, RIGHT_Q, 0, count, n))
    for c in range(0, n, lanes_of(work)):
        before = zeros(work)
        for j in range(w):
            dk = lanes_at(work, LEFT + HALF + j, c) * lanes_at(work, IN_N + j, c)
            put_lanes(more, DK + s + j, c, lanes_at(more, DK + s + j, c) + dk)
            put_lanes(more, DG + s + j, c, lanes_at(more, DG + s + j, c) + before)
            before = times_plus(dk, lanes_at(work, IN_K + s + j, c), before)
