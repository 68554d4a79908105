"""DPLR systems step by step: Ā x in O(n r), and a kernel's gradients by the states of all steps.

    Ā x = x + e x − Σ_q U_q (V_qᵀ x),   e = dt w R,   U = dt R P,   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc makes its outputs itself, which pyright cannot see)

import numpy as np
from numba import njit

from refssm.jit._gufunc import gufunc
from refssm.jit.dplr.pairs import add, add_conjugate, add_outer, dot, pair, pairs, put


@njit(error_model="numpy")
def _step(e, U, V, x, met):
    """Ā x in place of x; the increment apart, for 1 + e would lose digits of a slow mode."""
    for q in range(met.size):
        met[q] = dot(V[q], x)
    for n in range(x.shape[1]):
        re = e[0, n] * x[0, n] - e[1, n] * x[1, n]
        x[1, n] += e[0, n] * x[1, n] + e[1, n] * x[0, n]
        x[0, n] += re
    for q in range(met.size):
        add(x, -met[q], U[q])


@njit(error_model="numpy")
def _run(dk, e, U, V, b, C_sums, met):
    """All states x_k = Ā^k b, and Σ_k dk_k x_k* in C_sums."""
    states, x = np.zeros((dk.size + 1, 2, b.shape[1])), b.copy()
    for k in range(dk.size):
        states[k + 1] = x  # one later: before the first there is nothing
        add_conjugate(C_sums, dk[k], x)
        _step(e, U, V, x, met)
    return states


@gufunc(
    "(l),(n),(r,n),(r,n),(n),(n),(r,n),(r,n)->(n),(n),(n),(r,n),(r,n)",
    kinds=("c16",),
)
def steps_back(dk, e, U, V, b, c, P, Q, dC, T, dw, dP, dQ):
    """Σ dk x*, T = p_{−1}, and diagonal, Q- and P-products of F = Σ_k p_k y_kᴴ: F Q and Fᴴ P.

    x_k = Ā^k b, y_k = x_k + x_{k+1}, p_{k−1} = Āᴴ p_k + c dk_k; conjugates of P and Q are given.
    """
    met, p, y = np.empty(U.shape[0], np.complex128), np.zeros((2, e.size)), np.empty((2, e.size))
    P_rows, Q_rows, drive = pairs(P), pairs(Q), pair(c)
    C_sums, w_sums = np.zeros_like(p), np.zeros_like(p)
    P_sums, Q_sums = np.zeros_like(P_rows), np.zeros_like(P_rows)
    states = _run(dk, pair(e), pairs(U), pairs(V), pair(b), C_sums, met)
    e_back, U_back, V_back = pair(np.conj(e)), pairs(np.conj(V)), pairs(np.conj(U))
    for k in range(dk.size - 1, -1, -1):
        _step(e_back, U_back, V_back, p, met)
        add(p, dk[k], drive)
        y[:] = states[k + 1] + states[k]
        add_outer(w_sums, p, y)
        for q in range(met.size):
            add(P_sums[q], np.conj(dot(Q_rows[q], y)), p)
            add(Q_sums[q], np.conj(dot(P_rows[q], p)), y)
    for q in range(met.size):
        put(dP[q], P_sums[q])
        put(dQ[q], Q_sums[q])
    put(dC, C_sums)
    put(T, p)
    put(dw, w_sums)
