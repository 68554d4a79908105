"""The compiled scan of linear attention, by matrix products in pieces of at most CHUNK steps.

With S the state before a piece, E_i and F_j the decays from its start to step i and from step j to
its end, A and P as in `weights`,

    Z = V − (E∘K) S − A β Z   by forward substitution, four rows at a time,    U = β Z,
    Y = (E∘Q) S + P U,    S ← E_end S + (F∘K)ᵀ U;    U = V where nothing is corrected.

A reset begins a new piece with no state, so nothing passes it. Zero times a later NaN is NaN in
these products: a slice whose results are not all finite says so, and the caller computes it step
by step.
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain, times_plus
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
    turned,
)
from refssm.jit.linear_attention.weights import (
    BETA,
    CHUNK,
    FREE,
    FROM,
    IN_A,
    IN_K,
    IN_N,
    IN_P,
    IN_Q,
    IN_U,
    IN_Z,
    LAST,
    OF_END,
    OF_K,
    OF_Q,
    ONE,
    TO,
    ZERO,
    decays,
    scores,
)
from refssm.jit.ssd.tiles import ROWS, cleared, moved, multiplied, nothing, padded

REAL = ("f4", "f8")


@part
def piece_end(start, length, resets):
    """The end of the piece that begins at `start`: the next multiple of CHUNK, reset or end."""
    stop, end = min(length, start - start % CHUNK + CHUNK), start + 1
    while end < stop and not resets[end]:
        end += 1
    return end


@part
def prepared(work):
    """Zeros everywhere, but ones in a row."""
    plain()
    cleared(work)
    for j in range(work.columns):
        put(work, ONE, j, 1.0)


@part
def read(q, k, v, log_g, beta, KK, QK, begins, rows, work, n, p):
    """The arguments of a piece in `work`, their decays and scores, and β in a row.

    Without numbers in `beta` nothing is corrected."""
    plain()
    ones, corrected = repeated(work, ONE, 0), beta.columns > 0
    moved(block(work, IN_Q, 0, rows, n), ones, q)
    moved(block(work, IN_K, 0, rows, n), ones, k)
    moved(block(work, IN_Z, 0, rows, p), ones, v)
    moved(block(work, BETA, 0, 1, CHUNK), ones, beta)
    decays(log_g, begins, rows, n, work)
    for i in range(rows):
        for c in range(0, n, lanes_of(work)):
            E, K = lanes_at(work, FROM + i, c), lanes_at(work, IN_K + i, c)
            put_lanes(work, OF_K + i, c, -1.0 * E * K)
            put_lanes(work, OF_END + i, c, lanes_at(work, TO + i, c) * K)
            put_lanes(work, OF_Q + i, c, E * lanes_at(work, IN_Q + i, c))
    scores(log_g.columns == 1, KK, QK, corrected, rows, n, work)


@part
def written(S, corrected, rows, p, n, work):
    """IN_Z: the errors of a piece from the state S; IN_U: what the steps write."""
    plain()
    ones, Z = repeated(work, ONE, 0), block(work, IN_Z, 0, rows, p)
    if corrected:
        multiplied(Z, ones, Z, block(work, OF_K, 0, rows, n), S)
        for i in range(rows):  # −A β
            for c in range(0, rows, lanes_of(work)):
                minus = -1.0 * lanes_at(work, IN_A + i, c)
                put_lanes(work, IN_N + i, c, minus * lanes_at(work, BETA, c))
        for r in range(0, rows, ROWS):
            _substituted(r, p, work)
    weighed(corrected, rows, p, work)


@part
def weighed(corrected, rows, p, work):
    """IN_U: what the steps write, from their errors."""
    plain()
    U, Z = block(work, IN_U, 0, rows, p), block(work, IN_Z, 0, rows, p)
    if corrected:
        moved(U, turned(block(work, BETA, 0, 1, rows)), Z)
    else:
        moved(U, repeated(work, ONE, 0), Z)


@part
def _substituted(r, p, work):
    """Z_i += Σ_{j<i} N_ij Z_j for ROWS rows from r on; those before are done."""
    plain()
    if r:
        some, N = block(work, IN_Z + r, 0, ROWS, p), block(work, IN_N + r, 0, ROWS, r)
        multiplied(some, repeated(work, ONE, 0), some, N, block(work, IN_Z, 0, r, p))
    for i in range(r + 1, r + ROWS):
        for j in range(r, i):
            weight = number(work, IN_N + i, j)
            for c in range(0, p, lanes_of(work)):
                Z = lanes_at(work, IN_Z + i, c)
                put_lanes(work, IN_Z + i, c, times_plus(lanes_at(work, IN_Z + j, c), weight, Z))


@part
def _outputs(y, S, rows, p, n, work):
    """Y in place of Z; returns 0 if all outputs are finite, else NaN."""
    plain()
    ones, zero = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    Y = block(work, IN_Z, 0, rows, p)
    multiplied(Y, ones, zero, block(work, OF_Q, 0, rows, n), S)
    for i in range(0, rows, ROWS):
        some, P = block(Y, i, 0, ROWS, p), block(work, IN_P + i, 0, ROWS, i + ROWS)
        multiplied(some, ones, some, P, block(work, IN_U, 0, i + ROWS, p))
    moved(y, ones, Y)
    return nothing(block(Y, 0, 0, y.rows, p))


@part
def advanced(S, rows, p, n, work):
    """S ← E_end S + (F∘K)ᵀ U."""
    plain()
    last = turned(block(work, LAST, 0, 1, n))
    KT = turned(block(work, OF_END, 0, rows, n))
    multiplied(S, last, S, KT, block(work, IN_U, 0, rows, p))


@part
def piece_of(X, start, count):
    """The rows of a piece."""
    return block(X, start, 0, count, X.columns)


@part
def products_of(X, start, count):
    """The products of a piece, of those that the caller computed; without columns if X is."""
    return block(X, start, start % CHUNK, count, min(count, X.columns))


@gufunc("(l,n),(l,n),(l,p),(l,m),(o,b),(l,c),(l,c),(n,p),(l)->(l,p),(n,p),()", flag=8, kinds=REAL)
def scan_pieces(q, k, v, log_g, beta, KK, QK, S0, resets, y, S_last, finite):
    """All outputs, the last state, and whether all are finite; `beta` has l numbers or none.

    KK[i, j] is k_i · k_j for the j-th step since the last multiple of CHUNK, QK[i, j] is
    q_i · k_j. They may lack columns, and do where each key has its gate."""
    (length, p), n, lanes = v.shape, k.shape[1], lanes_of(matrix(k))
    p, n, zero, checked = padded(p, lanes), padded(n, lanes), v.dtype.type(0), v.dtype.type(0)
    # one vector more: rows a power of two apart would share few lines of a cache
    width, height, size = max(p, n, CHUNK) + lanes, FREE + max(p, n), v.itemsize
    memory = np.empty((n + height) * width * size + 2 * BYTES, np.uint8)
    S = block(memory_of(memory, 0, n, width, zero), 0, 0, n, p)
    work = memory_of(memory, n * width * size + BYTES, height, width, zero)
    prepared(work)
    moved(S, repeated(work, ONE, 0), matrix(S0))
    start, corrected = 0, beta.size > 0
    while start < length:
        stop, begins = piece_end(start, length, resets), resets[start]
        count = stop - start
        rows = padded(count, lanes)
        if begins:
            cleared(S)
        piece = piece_of(matrix(q), start, count), piece_of(matrix(k), start, count)
        of_v, of_g = piece_of(matrix(v), start, count), piece_of(matrix(log_g), start, count)
        of_beta = block(matrix(beta), 0, start, 1, count if corrected else 0)
        scored = products_of(matrix(KK), start, count), products_of(matrix(QK), start, count)
        read(*piece, of_v, of_g, of_beta, *scored, begins, rows, work, n, p)
        written(S, corrected, rows, p, n, work)
        checked += _outputs(piece_of(matrix(y), start, count), S, rows, p, n, work)
        advanced(S, rows, p, n, work)
        start = stop
    moved(matrix(S_last), repeated(work, ONE, 0), S)
    finite[0] = checked + nothing(S) == 0
    held(memory)
