"""Kernels of DPLR systems in blocks of q ≈ √l steps: K_{aq+c} = (C Ā^{aq}) (Ā^c B̄), heads × places.

    Ā = I + diag e − U V,   e = dt w R,   U = dt R P,   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
    E = I − Ā^q = I − (I + diag e)^q + Σ_{k<q} (Ā^k U) (V (I + diag e)^{q−1−k})

Places are steps of rank r, each head is the one before it times Ā^q, and Ā^q is one product of
matrices instead of log₂ q. Nothing is divided, so poles at nodes are no special case.

A system is one table (tables.py): the rows e, C, B̄, then U and V.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart
from refssm.jit._vectors.tables import (
    FUSED,
    add,
    add_grown,
    add_without,
    crossed,
    dot,
    table,
    turned,
    zeros,
)
from refssm.jit._vectors.tiles import COLUMNS

HEADS, PLACES, FACTORS = 1, 2, 3  # rows of a system; row 0 is e


@part
def divided(l):
    """The length of blocks, a multiple of COLUMNS, and their number."""
    q = COLUMNS * max(1, round(np.sqrt(l) / COLUMNS))
    return q, (l + q - 1) // q


@part
def walked(S, r, first, last, q):
    """Ā^k X in group k, for some rows X of the system."""
    apart()
    count = last - first
    X = zeros(count * q, S.shape[1])
    for k in range(count):
        add(X, k, 1 + 0j, S, first + k)
    for k in range(count, count * q):
        add_grown(X, k, S, X, k - count)
        for i in range(r):
            add(X, k, -dot(S, FACTORS + r + i, X, k - count), S, FACTORS + i)
    return X


@part
def decayed(S, r, q):
    """V (I + diag e)^{q−1−k} in group k."""
    apart()
    Y = zeros(r * q, S.shape[1])
    for k in range(r):
        add(Y, r * (q - 1) + k, 1 + 0j, S, FACTORS + r + k)
    for k in range(r * (q - 1) - 1, -1, -1):
        add_grown(Y, k, S, Y, k + r)
    return Y


@part(fastmath=FUSED)
def lost(S, q):
    """1 − (1 + e)^q, without cancellation."""
    apart()
    found = zeros(1, S.shape[1])
    for _ in range(q):
        for n in range(S.shape[1]):
            re, im, a, b = S[0, n], S[1, n], 1 - found[0, n], -found[1, n]
            found[0, n] -= re * a - im * b
            found[1, n] -= re * b + im * a
    return found


@part
def whole(S, X, Y, n, q):
    """E from U and V after all steps."""
    apart()
    E, diagonal = crossed(X, n, Y), lost(S, q)
    for i in range(n):
        E[2 * i, i] += diagonal[0, i]
        E[2 * i + 1, i] += diagonal[1, i]
    return E


@part
def headed(S, E, n, count):
    """C Ā^{aq}."""
    apart()
    H = zeros(count, S.shape[1])
    for a in range(count):
        if a:
            add_without(H, a, H, a - 1, E, n)
        else:
            add(H, a, 1 + 0j, S, a + HEADS)
    return H


@compiled(
    [f"(c16[:,:], {t}[:], {t}[:])" for t in ("c8", "c16")],
    "(i,n),(l)->(l)",
)
def multiplied(system, length, K):
    """K_k = C Ā^k B̄."""
    q, count = divided(K.size)
    n, r, S = system.shape[1], (system.shape[0] - FACTORS) // 2, table(system)
    b, u = np.intp(PLACES), np.intp(FACTORS)
    X = walked(S, r, b, u, q)
    E = X
    if count > 1:
        E = whole(S, walked(S, r, u, u + r, q), decayed(S, r, q), n, q)
    found = crossed(turned(headed(S, E, n, count), n), count, turned(X, n))
    for a in range(count):
        for c in range(min(q, K.size - a * q)):
            K[a * q + c] = complex(found[2 * a, c], found[2 * a + 1, c])
