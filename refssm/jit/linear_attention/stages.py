"""Numba mirrors of the stages of a chunk: the formulas' subscripts as loops.

G has an axis of keys of length 1, or of length n where each key has a gate: one set of kernels for
both. Exponents are differences G_i − G_j, never two exponentials of which one may overflow.
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.linear_attention.stages import (
    CHUNK_GATES,
    CHUNK_INVERSE,
    CHUNK_OUTPUTS,
    CHUNK_PRODUCTS,
    CHUNK_STATES,
    CHUNK_WRITES,
)
from refssm.linear_attention.stages_keyed import (
    CHUNK_OUTPUTS_KEYED,
    CHUNK_PRODUCTS_KEYED,
    CHUNK_STATES_KEYED,
    CHUNK_WRITES_KEYED,
)

KINDS = ("f4", "f8")


@gufunc("(l)->(l)", kinds=KINDS)
def _sums(log_g, g):
    """G_i = G_{i−1} + log_g_i."""
    total = log_g.dtype.type(0)
    for i in range(log_g.size):
        total += log_g[i]
        g[i] = total


@mirror(CHUNK_GATES)
def chunk_gates(log_g):
    return _sums(log_g)


@mirror(CHUNK_GATES)
def chunk_gates_vjp(dg, log_g):
    wide = np.flip(dg, -1).astype(np.result_type(dg, log_g))
    return (unbroadcast(np.flip(_sums(wide), -1), log_g),)


@part
def _weights(g, i, j, n, weights):
    """e^{G_i − G_j} for each of n keys."""
    if g.shape[1] == 1:
        w = np.exp(g[i, 0] - g[j, 0])
        for a in range(n):
            weights[a] = w
    else:
        for a in range(n):
            weights[a] = np.exp(g[i, a] - g[j, a])


@gufunc("(l,n),(l,g),(l)->(l,l)", kinds=KINDS)
def _products(k, g, beta, L):
    """L_ij = β_i Σ_n k_in k_jn e^{G_in − G_jn}, i > j."""
    steps, size = k.shape
    w = np.empty(size, k.dtype)
    for i in range(steps):
        for j in range(steps):
            total = k.dtype.type(0)
            if i > j:
                _weights(g, i, j, size, w)
                for n in range(size):
                    total += k[i, n] * (w[n] * k[j, n])
                total *= beta[i]
            L[i, j] = total


@gufunc("(l,l),(l,n),(l,g),(l)->(l,n),(l,g),(l)", kinds=KINDS)
def _products_back(dL, k, g, beta, dk, dg, dbeta):
    """Each pair i > j gives to both of its keys and gates."""
    (steps, size), each = k.shape, min(g.shape[1] - 1, 1)
    w = np.empty(size, k.dtype)
    dk[:], dg[:], dbeta[:] = 0, 0, 0
    for i in range(steps):
        for j in range(i):
            _weights(g, i, j, size, w)
            d = beta[i] * dL[i, j]
            for n in range(size):
                pair = w[n] * (k[i, n] * k[j, n])
                dbeta[i] += pair * dL[i, j]
                dk[i, n] += d * (w[n] * k[j, n])
                dk[j, n] += d * (w[n] * k[i, n])
                dg[i, each * n] += d * pair
                dg[j, each * n] -= d * pair


@mirror(CHUNK_PRODUCTS)
def chunk_products(k, g, beta):
    return _products(k, g[..., None], beta)


@mirror(CHUNK_PRODUCTS)
def chunk_products_vjp(dL, k, g, beta):
    dk, dg, dbeta = _products_back(dL, k, g[..., None], beta)
    return unbroadcast_each((dk, dg[..., 0], dbeta), (k, g, beta))


@gufunc("(l,l)->(l,l)", kinds=KINDS)
def _inverse(L, X):
    """X_i = e_i − Σ_{j<i} L_ij X_j."""
    steps = L.shape[0]
    for i in range(steps):
        for j in range(steps):
            X[i, j] = i == j
        for a in range(i):
            for j in range(a + 1):
                X[i, j] -= L[i, a] * X[a, j]


@gufunc("(l,l),(l,l)->(l,l)", kinds=KINDS)
def _inverse_back(dX, X, dL):
    """dL = −Xᵀ dX Xᵀ below the diagonal."""
    steps = X.shape[0]
    half = np.zeros((steps, steps), X.dtype)
    for i in range(steps):
        for a in range(i, steps):
            for j in range(a):
                half[i, j] += X[a, i] * dX[a, j]
    for i in range(steps):
        for j in range(steps):
            total = X.dtype.type(0)
            if i > j:
                for a in range(j + 1):
                    total -= half[i, a] * X[j, a]
            dL[i, j] = total


@mirror(CHUNK_INVERSE)
def chunk_inverse(L):
    return _inverse(L)


@mirror(CHUNK_INVERSE)
def chunk_inverse_vjp(dX, L):
    return (unbroadcast(_inverse_back(dX, _inverse(L)), L),)


@gufunc("(l,n),(l,p),(l,g),(l),(l,l)->(l,n),(l,p)", kinds=KINDS)
def _writes(k, v, g, beta, X, W, U):
    """W_i = Σ_{j≤i} X_ij β_j (e^{G_j} k_j),  U_i = Σ_{j≤i} X_ij β_j v_j."""
    (steps, size), width, each = k.shape, v.shape[1], min(g.shape[1] - 1, 1)
    decayed = np.empty((steps, size), k.dtype)
    W[:], U[:] = 0, 0
    for i in range(steps):
        for n in range(size):
            decayed[i, n] = np.exp(g[i, each * n]) * k[i, n]
        for j in range(i + 1):
            x = X[i, j] * beta[j]
            for n in range(size):
                W[i, n] += x * decayed[j, n]
            for p in range(width):
                U[i, p] += x * v[j, p]


@gufunc(
    "(l,n),(l,p),(l,n),(l,p),(l,g),(l),(l,l)->(l,n),(l,p),(l,g),(l),(l,l)",
    kinds=KINDS,
)
def _writes_back(dW, dU, k, v, g, beta, X, dk, dv, dg, dbeta, dX):
    """dC = Xᵀ dW and dB = Xᵀ dU are in dk and dv, until these are multiplied by β."""
    (steps, size), width, each = k.shape, v.shape[1], min(g.shape[1] - 1, 1)
    dk[:], dv[:], dg[:], dbeta[:], dX[:] = 0, 0, 0, 0, 0
    for j in range(steps):
        for i in range(j, steps):
            total = k.dtype.type(0)
            for n in range(size):
                dk[j, n] += X[i, j] * dW[i, n]
                total += dW[i, n] * (np.exp(g[j, each * n]) * k[j, n])
            for p in range(width):
                dv[j, p] += X[i, j] * dU[i, p]
                total += dU[i, p] * v[j, p]
            dX[i, j] = beta[j] * total
        for n in range(size):
            decay = np.exp(g[j, each * n])
            through = dk[j, n] * (decay * k[j, n])
            dbeta[j] += through
            dg[j, each * n] += beta[j] * through
            dk[j, n] *= beta[j] * decay
        for p in range(width):
            dbeta[j] += dv[j, p] * v[j, p]
            dv[j, p] *= beta[j]


@mirror(CHUNK_WRITES)
def chunk_writes(k, v, g, beta, X):
    return _writes(k, v, g[..., None], beta, X)


@mirror(CHUNK_WRITES)
def chunk_writes_vjp(dW, dU, k, v, g, beta, X):
    dk, dv, dg, dbeta, dX = _writes_back(dW, dU, k, v, g[..., None], beta, X)
    return unbroadcast_each((dk, dv, dg[..., 0], dbeta, dX), (k, v, g, beta, X))


@part
def _chunk_after(k, v, g, S):
    """S ← e^{G_end} S + (e^{G_end − G} K)ᵀ V."""
    (steps, size), width, each = k.shape, v.shape[1], min(g.shape[1] - 1, 1)
    for n in range(size):
        if steps:
            end = g[steps - 1, each * n]
            decay = np.exp(end)
            for p in range(width):
                S[n, p] *= decay
            for i in range(steps):
                key = np.exp(end - g[i, each * n]) * k[i, n]
                for p in range(width):
                    S[n, p] += key * v[i, p]


@gufunc(
    "(m,l,n),(m,l,n),(m,l,p),(m,l,g),(n,p)->(m,n,p),(m,l,p),(n,p)",
    kinds=KINDS,
)
def _states(k, w, u, g, S0, states, new, S):
    """V' = U − W S, then the state after the chunk."""
    (chunks, steps, size), width = k.shape, u.shape[2]
    S[:] = S0
    for c in range(chunks):
        states[c] = S
        for i in range(steps):
            for p in range(width):
                new[c, i, p] = u[c, i, p]
            for n in range(size):
                for p in range(width):
                    new[c, i, p] -= w[c, i, n] * S[n, p]
        _chunk_after(k[c], new[c], g[c], S)


@gufunc(
    "(m,n,p),(m,l,p),(n,p),(m,n,p),(m,l,p),(m,l,n),(m,l,n),(m,l,g)"
    "->(m,l,n),(m,l,n),(m,l,p),(m,l,g),(n,p)",
    kinds=KINDS,
)
def _states_back(dstates, dnew, dlast, states, new, k, w, g, dk, dw, du, dg, dS):
    """From the last chunk to the first, with all states and new values."""
    (chunks, steps, size), width, each = k.shape, new.shape[2], min(g.shape[2] - 1, 1)
    dk[:], dw[:], dg[:] = 0, 0, 0
    dS[:] = dlast
    for c in range(chunks - 1, -1, -1):
        du[c] = dnew[c]
        for n in range(size):
            if not steps:
                continue
            end = g[c, steps - 1, each * n]
            for i in range(steps):
                decay = np.exp(end - g[c, i, each * n])
                of_key = k.dtype.type(0)
                for p in range(width):
                    of_key += new[c, i, p] * dS[n, p]
                    du[c, i, p] += decay * k[c, i, n] * dS[n, p]
                dk[c, i, n] = decay * of_key
                if i < steps - 1:
                    through = k[c, i, n] * dk[c, i, n]
                    dg[c, i, each * n] -= through
                    dg[c, steps - 1, each * n] += through
            decay = np.exp(end)
            total = k.dtype.type(0)
            for p in range(width):
                total += states[c, n, p] * dS[n, p]
                dS[n, p] *= decay
            dg[c, steps - 1, each * n] += decay * total
        for i in range(steps):
            for n in range(size):
                total = k.dtype.type(0)
                for p in range(width):
                    total -= du[c, i, p] * states[c, n, p]
                    dS[n, p] -= w[c, i, n] * du[c, i, p]
                dw[c, i, n] = total
        for n in range(size):
            for p in range(width):
                dS[n, p] += dstates[c, n, p]


@mirror(CHUNK_STATES)
def chunk_states(k, w, u, g, S):
    return _states(k, w, u, g[..., None], S)


@mirror(CHUNK_STATES)
def chunk_states_vjp(dstates, dnew, dlast, k, w, u, g, S):
    g = g[..., None]
    states, new, _ = _states(k, w, u, g, S)
    dk, dw, du, dg, dS = _states_back(dstates, dnew, dlast, states, new, k, w, g)
    return unbroadcast_each((dk, dw, du, dg[..., 0], dS), (k, w, u, g[..., 0], S))


@gufunc("(l,n),(l,n),(l,p),(l,g),(n,p)->(l,p)", kinds=KINDS)
def _outputs(q, k, v, g, S, y):
    """y_i = Sᵀ(e^{G_i} q_i) + Σ_{j≤i} P_ij v_j."""
    (steps, size), width, each = k.shape, v.shape[1], min(g.shape[1] - 1, 1)
    w = np.empty(size, k.dtype)
    y[:] = 0
    for i in range(steps):
        for n in range(size):
            read = np.exp(g[i, each * n]) * q[i, n]
            for p in range(width):
                y[i, p] += read * S[n, p]
        for j in range(i + 1):
            _weights(g, i, j, size, w)
            P = k.dtype.type(0)
            for n in range(size):
                P += q[i, n] * (w[n] * k[j, n])
            for p in range(width):
                y[i, p] += P * v[j, p]


@gufunc(
    "(l,p),(l,n),(l,n),(l,p),(l,g),(n,p)->(l,n),(l,n),(l,p),(l,g),(n,p)",
    kinds=KINDS,
)
def _outputs_back(dy, q, k, v, g, S, dq, dk, dv, dg, dS):
    """Each step reads the state; each pair i ≥ j gives to a query, a key and a value."""
    (steps, size), width, each = k.shape, v.shape[1], min(g.shape[1] - 1, 1)
    w = np.empty(size, k.dtype)
    dq[:], dk[:], dv[:], dg[:], dS[:] = 0, 0, 0, 0, 0
    for i in range(steps):
        for n in range(size):
            decay, total = np.exp(g[i, each * n]), k.dtype.type(0)
            for p in range(width):
                total += S[n, p] * dy[i, p]
                dS[n, p] += decay * q[i, n] * dy[i, p]
            dq[i, n] = decay * total
            dg[i, each * n] += q[i, n] * dq[i, n]
        for j in range(i + 1):
            _weights(g, i, j, size, w)
            P, D = k.dtype.type(0), k.dtype.type(0)
            for p in range(width):
                D += dy[i, p] * v[j, p]
            for n in range(size):
                P += q[i, n] * (w[n] * k[j, n])
                dq[i, n] += D * (w[n] * k[j, n])
                dk[j, n] += D * (w[n] * q[i, n])
                if i > j:
                    through = D * (q[i, n] * (w[n] * k[j, n]))
                    dg[i, each * n] += through
                    dg[j, each * n] -= through
            for p in range(width):
                dv[j, p] += P * dy[i, p]


@mirror(CHUNK_OUTPUTS)
def chunk_outputs(q, k, v, g, S):
    return _outputs(q, k, v, g[..., None], S)


@mirror(CHUNK_OUTPUTS)
def chunk_outputs_vjp(dy, q, k, v, g, S):
    dq, dk, dv, dg, dS = _outputs_back(dy, q, k, v, g[..., None], S)
    return unbroadcast_each((dq, dk, dv, dg[..., 0], dS), (q, k, v, g, S))


@mirror(CHUNK_PRODUCTS_KEYED)
def chunk_products_keyed(k, g, beta):
    return _products(k, g, beta)


@mirror(CHUNK_PRODUCTS_KEYED)
def chunk_products_keyed_vjp(dL, k, g, beta):
    return unbroadcast_each(_products_back(dL, k, g, beta), (k, g, beta))


@mirror(CHUNK_WRITES_KEYED)
def chunk_writes_keyed(k, v, g, beta, X):
    return _writes(k, v, g, beta, X)


@mirror(CHUNK_WRITES_KEYED)
def chunk_writes_keyed_vjp(dW, dU, k, v, g, beta, X):
    return unbroadcast_each(_writes_back(dW, dU, k, v, g, beta, X), (k, v, g, beta, X))


@mirror(CHUNK_STATES_KEYED)
def chunk_states_keyed(k, w, u, g, S):
    return _states(k, w, u, g, S)


@mirror(CHUNK_STATES_KEYED)
def chunk_states_keyed_vjp(dstates, dnew, dlast, k, w, u, g, S):
    states, new, _ = _states(k, w, u, g, S)
    gradients = _states_back(dstates, dnew, dlast, states, new, k, w, g)
    return unbroadcast_each(gradients, (k, w, u, g, S))


@mirror(CHUNK_OUTPUTS_KEYED)
def chunk_outputs_keyed(q, k, v, g, S):
    return _outputs(q, k, v, g, S)


@mirror(CHUNK_OUTPUTS_KEYED)
def chunk_outputs_keyed_vjp(dy, q, k, v, g, S):
    return unbroadcast_each(_outputs_back(dy, q, k, v, g, S), (q, k, v, g, S))
