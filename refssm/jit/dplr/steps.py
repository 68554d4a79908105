"""DPLR systems step by step: Ā x in O(n r), and a kernel's gradients from the states of all steps.

Ā x = x + e x − Σ_q U_q (V_qᵀ x),   e = dt w R,   U = dt R P,   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm.jit._gufunc import gufunc
from refssm.jit.dplr.pairs import FUSED, add, add_product, copied, dot, pair, pairs, put


@njit(error_model="numpy", fastmath=FUSED)
def _step(e, U, V, x, met):
    """Ā x in place; the increment is separate, because 1 + e would lose digits of a slow mode."""
    for q in range(met.size):
        met[q] = dot(V[q], x)
    for n in range(x.shape[1]):
        re = e[0, n] * x[0, n] - e[1, n] * x[1, n]
        x[1, n] += e[0, n] * x[1, n] + e[1, n] * x[0, n]
        x[0, n] += re
    for q in range(met.size):
        add(x, -met[q], U[q])


@njit(error_model="numpy")
def _block(e, U, V, kept, count, states, met):
    """The states of a block of so many steps, after the one before it."""
    copied(states[0], kept[0])
    copied(states[1], kept[1])
    for k in range(1, count):
        copied(states[k + 1], states[k])
        _step(e, U, V, states[k + 1], met)


@gufunc(
    "(l),(n),(r,n),(r,n),(n),(n),(r,n),(r,n)->(n),(n),(n),(r,n),(r,n)",
    kinds=("c16",),
)
def steps_back(d, e, U, V, b, c, P, Q, dC, T, dw, dP, dQ):
    """Σ d_k x_k, p_{−1}, and for F = Σ_k p_k y_kᵀ its diagonal, F Q and Fᵀ P.

    x_k = Ā^k b, y_k = x_k + x_{k+1}, p_{k−1} = Āᵀ p_k + c d_k: the caller has conjugated the
    arguments where needed.
    """
    r, met = U.shape[0], np.empty(U.shape[0], np.complex128)
    forth, back, rates, drive, x = pairs(U), pairs(V), pair(e), pair(c), pair(b)
    span = max(1, int(np.sqrt(d.size)))  # states are kept every so many steps, and computed again
    kept = np.zeros(((d.size + span - 1) // span, 2, 2, b.size))  # before a block, and its first
    states = np.empty((span + 1, 2, b.size))  # of one block, after the one before it
    p, y = np.zeros((2, b.size)), np.zeros((2, b.size))
    C_sums, w_sums = np.zeros((2, b.size)), np.zeros((2, b.size))
    P_sums, Q_sums = np.zeros((r, 2, b.size)), np.zeros((r, 2, b.size))
    for k in range(d.size):
        if k % span == 0:
            copied(kept[k // span, 1], x)
        add(C_sums, d[k], x)
        if (k + 1) % span == 0 and k + 1 < d.size:
            copied(kept[(k + 1) // span, 0], x)
        _step(rates, forth, back, x, met)
    P_rows, Q_rows = pairs(P), pairs(Q)
    for k in range(d.size - 1, -1, -1):
        if k == d.size - 1 or (k + 1) % span == 0:
            _block(rates, forth, back, kept[k // span], k % span + 1, states, met)
        _step(rates, back, forth, p, met)
        add(p, d[k], drive)
        copied(y, states[k % span])
        add(y, 1 + 0j, states[k % span + 1])
        add_product(w_sums, 1 + 0j, p, y)
        for q in range(r):
            add(P_sums[q], dot(Q_rows[q], y), p)
            add(Q_sums[q], dot(P_rows[q], p), y)
    for q in range(r):
        put(dP[q], P_sums[q])
        put(dQ[q], Q_sums[q])
    put(dC, C_sums)
    put(T, p)
    put(dw, w_sums)
