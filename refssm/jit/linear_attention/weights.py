"""Decays and scores in one chunk of linear attention, for compiled code.

    A_ij = Σ_n k_in k_jn D_ijn, i > j,    P_ij = Σ_n q_in k_jn D_ijn, i ≥ j,    D_ij = a_{j+1} … a_i

with a = e^{log_g}. One decay a head: the products K Kᵀ and Q Kᵀ, which heads share, times D. A
decay for each key: the chunk is halved again and again. For j before a place r and i from r on,
D_ij is a product of two, D_ir and D_rj, and the scores are one matrix product of rows that have
decayed from and to r. Pairs inside blocks of LEAF steps are left, and done one by one. Products of
decays, none of which is above 1, do not overflow; sums of log_g would have to be subtracted.
"""

from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
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
from refssm.jit.ssd.tiles import moved, multiplied, transposed

CHUNK = 64
LEAF = 16  # a whole number of vectors in each type
# the first rows of the matrices in `work`
IN_K, IN_Q, IN_Z, IN_U, DECAY, FROM, TO, OF_K, OF_Q, OF_END = range(0, 10 * CHUNK, CHUNK)
IN_A, IN_P, IN_N, LEFT, RIGHT, RIGHT_Q = range(10 * CHUNK, 16 * CHUNK, CHUNK)
BETA, ONE, ZERO = range(16 * CHUNK, 16 * CHUNK + 3)
LAST = 16 * CHUNK + 4  # e^{G_end}, in one row
FREE = 16 * CHUNK + 8  # from here on as many rows as a key or a value has numbers


@part
def decays(log_g, begins, rows, n, work):
    """DECAY: a_i; FROM: a_0 … a_i, 0 where a sequence begins; TO: a_{j+1} … a_last; LAST."""
    plain()
    if log_g.columns == 1:
        _one_decay(log_g, begins, rows, n, work)
        return
    moved(block(work, DECAY, 0, rows, n), repeated(work, ONE, 0), log_g)
    for i in range(rows):
        for c in range(0, n, lanes_of(work)):
            put_lanes(work, DECAY + i, c, exponential.exp(lanes_at(work, DECAY + i, c)))
    if begins:
        moved(block(work, DECAY, 0, 1, n), repeated(work, ZERO, 0), block(work, ONE, 0, 1, n))
    for c in range(0, n, lanes_of(work)):
        product = lanes_at(work, ONE, c)
        for i in range(rows):
            product = product * lanes_at(work, DECAY + i, c)
            put_lanes(work, FROM + i, c, product)
        put_lanes(work, LAST, c, product)
        product = lanes_at(work, ONE, c)
        for j in range(rows - 1, -1, -1):
            put_lanes(work, TO + j, c, product)
            product = product * lanes_at(work, DECAY + j, c)


@part
def _one_decay(log_g, begins, rows, n, work):
    """The same where a step has one decay for all keys: one exponential and one product for it, and
    DECAY has one column."""
    plain()
    moved(block(work, IN_N, 0, 1, rows), repeated(work, ONE, 0), turned(log_g))
    for c in range(0, rows, lanes_of(work)):
        put_lanes(work, IN_N, c, exponential.exp(lanes_at(work, IN_N, c)))
    if begins:
        put(work, IN_N, 0, 0.0)
    product = lanes_at(work, ONE, 0)
    for i in range(rows):
        put(work, DECAY + i, 0, number(work, IN_N, i))
        product = product * number(work, IN_N, i)
        for c in range(0, n, lanes_of(work)):
            put_lanes(work, FROM + i, c, product)
    for c in range(0, n, lanes_of(work)):
        put_lanes(work, LAST, c, product)
    product = lanes_at(work, ONE, 0)
    for j in range(rows - 1, -1, -1):
        for c in range(0, n, lanes_of(work)):
            put_lanes(work, TO + j, c, product)
        product = product * number(work, IN_N, j)


@part
def scores(one, KK, QK, corrected, rows, n, work):
    """IN_A and IN_P: entries above the diagonals are 0 in blocks of LEAF, others are not written.

    `one`: one decay for all keys; `KK`, `QK`: K Kᵀ and Q Kᵀ then, or without columns. Without
    `corrected` there is no A."""
    plain()
    if one:
        _scores_of_one(KK, QK, rows, n, work)
        return
    for s in range(0, rows, LEAF):
        _leaf(s, min(LEAF, rows - s), corrected, n, work)
    w = LEAF
    while w < rows:
        for s in range(0, rows - w, 2 * w):
            _across(s, w, min(w, rows - s - w), corrected, n, work)
        w += w


@part
def _scores_of_one(KK, QK, rows, n, work):
    """D times products of keys, and of queries and keys."""
    plain()
    ones, zero = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    A, P = block(work, IN_A, 0, rows, rows), block(work, IN_P, 0, rows, rows)
    if KK.columns > 0:
        moved(A, ones, KK)
        moved(P, ones, QK)
    else:
        K, KT = block(work, IN_K, 0, rows, n), block(work, FREE, 0, n, rows)
        transposed(KT, K)
        multiplied(A, ones, zero, K, KT)
        multiplied(P, ones, zero, block(work, IN_Q, 0, rows, n), KT)
    for c in range(0, rows, lanes_of(work)):
        put_lanes(work, IN_N, c, zeros(work))
    for i in range(rows):
        a = number(work, DECAY + i, 0)
        for c in range(0, rows, lanes_of(work)):
            put_lanes(work, IN_N, c, a * lanes_at(work, IN_N, c))
        put(work, IN_N, i, 1.0)
        for c in range(0, rows, lanes_of(work)):
            D = lanes_at(work, IN_N, c)
            put_lanes(work, IN_P + i, c, D * lanes_at(work, IN_P + i, c))
            put_lanes(work, IN_A + i, c, D * lanes_at(work, IN_A + i, c))
        put(work, IN_A + i, i, 0.0)


@part
def _leaf(s, count, corrected, n, work):
    """The scores of some steps from s on, with keys that decay as the rows go on (in LEFT)."""
    plain()
    for i in range(s, s + count):
        for j in range(s, s + count):
            put(work, IN_A + i, j, 0.0)
            put(work, IN_P + i, j, 0.0)
        for j in range(s, i + 1):
            of_k, of_q = zeros(work), zeros(work)
            for c in range(0, n, lanes_of(work)):
                key = lanes_at(work, IN_K + i, c)
                if j < i:
                    key = lanes_at(work, LEFT + j - s, c) * lanes_at(work, DECAY + i, c)
                put_lanes(work, LEFT + j - s, c, key)
                of_k = times_plus(key, lanes_at(work, IN_K + i, c), of_k)
                of_q = times_plus(key, lanes_at(work, IN_Q + i, c), of_q)
            if corrected and j < i:
                put(work, IN_A + i, j, total(of_k))
            put(work, IN_P + i, j, total(of_q))


@part
def decayed_to(s, w, n, work):
    """LEFT: the keys of w steps from s on as they are after the last one, and their weights."""
    plain()
    for c in range(0, n, lanes_of(work)):
        product = lanes_at(work, ONE, c)
        for j in range(w - 1, -1, -1):
            put_lanes(work, LEFT + CHUNK // 2 + j, c, product)
            put_lanes(work, LEFT + j, c, product * lanes_at(work, IN_K + s + j, c))
            product = product * lanes_at(work, DECAY + s + j, c)


@part
def decayed_from(r, count, n, work):
    """RIGHT, RIGHT_Q: keys and queries of steps from r on, times the decays since r, and these."""
    plain()
    for c in range(0, n, lanes_of(work)):
        product = lanes_at(work, ONE, c)
        for i in range(count):
            product = product * lanes_at(work, DECAY + r + i, c)
            put_lanes(work, RIGHT + CHUNK // 2 + i, c, product)
            put_lanes(work, RIGHT + i, c, product * lanes_at(work, IN_K + r + i, c))
            put_lanes(work, RIGHT_Q + i, c, product * lanes_at(work, IN_Q + r + i, c))


@part
def _across(s, w, count, corrected, n, work):
    """The scores of the steps from s + w on with the w steps before them."""
    plain()
    ones, zero, r = repeated(work, ONE, 0), repeated(work, ZERO, 0), s + w
    decayed_to(s, w, n, work)
    decayed_from(r, count, n, work)
    KT = block(work, FREE, 0, n, w)
    transposed(KT, block(work, LEFT, 0, w, n))
    if corrected:
        K = block(work, RIGHT, 0, count, n)
        multiplied(block(work, IN_A + r, s, count, w), ones, zero, K, KT)
    Q = block(work, RIGHT_Q, 0, count, n)
    multiplied(block(work, IN_P + r, s, count, w), ones, zero, Q, KT)
