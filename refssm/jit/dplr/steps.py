"""DPLR systems step by step: Ā x in O(n r), and a kernel's gradients from the states of all steps.

Ā x = x + e x − Σ_q U_q (V_qᵀ x),   e = dt w R,   U = dt R P,   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm.jit._gufunc import gufunc
from refssm.jit.dplr.pairs import add, add_product, copied, dot, pair, pairs, put


@njit(error_model="numpy")
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
    states = np.zeros((d.size + 1, 2, b.size))  # x_k at k + 1; the state before the first is 0
    p, y = np.zeros((2, b.size)), np.zeros((2, b.size))
    C_sums, w_sums = np.zeros((2, b.size)), np.zeros((2, b.size))
    P_sums, Q_sums = np.zeros((r, 2, b.size)), np.zeros((r, 2, b.size))
    for k in range(d.size):
        copied(states[k + 1], x)
        add(C_sums, d[k], x)
        _step(rates, forth, back, x, met)
    P_rows, Q_rows = pairs(P), pairs(Q)
    for k in range(d.size - 1, -1, -1):
        _step(rates, back, forth, p, met)
        add(p, d[k], drive)
        copied(y, states[k])
        add(y, 1 + 0j, states[k + 1])
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
