"""The compiled recurrences of linear attention and their adjoints: values across SIMD lanes.

`log_g` has one gate for a step, (l, 1), or one for each key, (l, n); β of a recurrence that has
none is no argument. The adjoint of a block of steps computes its states again.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain, times_plus
from refssm.jit._vectors.matrix import (
    BYTES,
    held,
    lanes_at,
    lanes_of,
    matrix,
    memory_of,
    neighbours,
    number,
    put,
    put_lanes,
    zeros,
)

KINDS = ("f4", "f8")


@gufunc("(l,n),(l,n),(l,p),(l,g),(n,p),(l)->(l,p),(n,p)", flag=5, kinds=KINDS)
def linear_scan(q, k, v, log_g, S0, resets, y, S):
    """S_t = diag(e^{log_g_t}) S_{t-1} + k_t v_tᵀ, from zero at a reset;  y_t = S_tᵀ q_t."""
    (size, width), each = S0.shape, min(log_g.shape[1] - 1, 1)
    total = np.empty(width, q.dtype)
    for n in range(size):
        for p in range(width):
            S[n, p] = S0[n, p]
    for t in range(q.shape[0]):
        for p in range(width):
            total[p] = 0
        for n in range(size):
            if resets[t]:  # selected: NaN and infinity do not pass
                for p in range(width):
                    S[n, p] = 0
            else:
                a = np.exp(log_g[t, each * n])
                for p in range(width):
                    S[n, p] *= a
            for p in range(width):
                S[n, p] += k[t, n] * v[t, p]
                total[p] += S[n, p] * q[t, n]
        for p in range(width):
            y[t, p] = total[p]


@part
def _gates(log_g, t, a):
    """a_n = e^{log_g_tn}, or one of them for all n."""
    gate = np.exp(log_g[t, 0]) if log_g.shape[1] == 1 else a[0]
    for n in range(a.size):
        a[n] = gate if log_g.shape[1] == 1 else np.exp(log_g[t, n])


@part
def _in_lanes(q, k, v, beta, a, t, S0, u, S):
    """One step with whole vectors of values; u: a row for u, and one for y. S0 may be S."""
    plain()
    lanes, width = lanes_of(S), S.columns
    for c in range(0, width, lanes):
        put_lanes(u, 0, c, zeros(S))
        put_lanes(u, 1, c, zeros(S))
    for n in range(S.rows):
        for c in range(0, width, lanes):
            Z = a[n] * lanes_at(S0, n, c)
            put_lanes(u, 0, c, times_plus(Z, k[t, n], lanes_at(u, 0, c)))
    for p in range(width):
        put(u, 0, p, beta[t] * (v[t, p] - number(u, 0, p)))
    for n in range(S.rows):
        for c in range(0, width, lanes):
            Z = a[n] * lanes_at(S0, n, c)
            now = times_plus(lanes_at(u, 0, c), k[t, n], Z)
            put_lanes(S, n, c, now)
            put_lanes(u, 1, c, times_plus(now, q[t, n], lanes_at(u, 1, c)))


@part
def _one_by_one(q, k, v, beta, a, t, S0, u, S):
    """The same for any number of values."""
    size, width = S.shape
    for p in range(width):
        put(u, 0, p, 0.0)
        put(u, 1, p, 0.0)
    for n in range(size):
        for p in range(width):
            put(u, 0, p, number(u, 0, p) + k[t, n] * (a[n] * S0[n, p]))
    for p in range(width):
        put(u, 0, p, beta[t] * (v[t, p] - number(u, 0, p)))
    for n in range(size):
        for p in range(width):
            S[n, p] = a[n] * S0[n, p] + k[t, n] * number(u, 0, p)
            put(u, 1, p, number(u, 1, p) + S[n, p] * q[t, n])


@gufunc("(l,n),(l,n),(l,p),(l,g),(l),(n,p),(l)->(l,p),(n,p)", flag=6, kinds=KINDS)
def delta_scan(q, k, v, log_g, beta, S0, resets, y, S):
    """Z = diag(e^{log_g_t}) S_{t-1}, 0 at a reset;  S_t = Z + β_t k_t (v_t − Zᵀ k_t)ᵀ;
    y_t = S_tᵀ q_t.

    The first step reads S0 and writes S: a single step takes as long as memory does."""
    (size, width), zero, a = S0.shape, q.dtype.type(0), np.ones(S0.shape[0], q.dtype)
    memory = np.empty(2 * width * q.itemsize + BYTES, np.uint8)
    before, after, u = matrix(S0), matrix(S), memory_of(memory, 0, 2, width, zero)
    whole = neighbours(before) and neighbours(after) and width % lanes_of(after) == 0
    if q.shape[0] == 0:
        for n in range(size):
            for p in range(width):
                S[n, p] = S0[n, p]
    for t in range(q.shape[0]):
        if resets[t]:  # selected: NaN and infinity do not pass
            for n in range(size):
                a[n] = 1
                for p in range(width):
                    S[n, p] = 0
        elif size:
            _gates(log_g, t, a)
        start = t == 0 and not resets[0]
        if whole:
            _in_lanes(q, k, v, beta, a, t, before if start else after, u, after)
        else:
            _one_by_one(q, k, v, beta, a, t, S0 if start else S, u, S)
        for p in range(width):
            y[t, p] = number(u, 1, p)
    held(memory)


@gufunc(
    "(l,p),(n,p),(l,n),(l,n),(l,p),(l,g),(n,p),(l)->(l,n),(l,n),(l,p),(l,g),(n,p)",
    flag=7,
    kinds=KINDS,
)
def linear_back(dy, dS, q, k, v, log_g, S0, resets, dq, dk, dv, dlog_g, G):
    """Gradients of a block: G_t = q_t dy_tᵀ + a_{t+1} G_{t+1}; at the end dS0."""
    (length, size), width = q.shape, v.shape[1]
    each = min(log_g.shape[1] - 1, 1)
    Z = np.empty((length, size, width), q.dtype)
    for n in range(size):
        for p in range(width):
            G[n, p] = dS[n, p]
    for t in range(length):
        for n in range(size):
            a = np.exp(log_g[t, each * n])
            for p in range(width):
                if resets[t]:
                    Z[t, n, p] = 0
                elif t:
                    Z[t, n, p] = a * (Z[t - 1, n, p] + k[t - 1, n] * v[t - 1, p])
                else:
                    Z[t, n, p] = a * S0[n, p]
    for t in range(length - 1, -1, -1):
        for p in range(width):
            dv[t, p] = 0
        for n in range(log_g.shape[1]):
            dlog_g[t, n] = 0
        for n in range(size):
            a = np.exp(log_g[t, each * n])
            by_q, by_k, by_g = q.dtype.type(0), q.dtype.type(0), q.dtype.type(0)
            for p in range(width):
                G[n, p] += q[t, n] * dy[t, p]
                by_q += (Z[t, n, p] + k[t, n] * v[t, p]) * dy[t, p]
                by_k += G[n, p] * v[t, p]
                by_g += Z[t, n, p] * G[n, p]
                dv[t, p] += G[n, p] * k[t, n]
            dq[t, n], dk[t, n] = by_q, by_k
            if resets[t]:
                for p in range(width):
                    G[n, p] = 0
            else:
                dlog_g[t, each * n] += by_g
                for p in range(width):
                    G[n, p] *= a


@gufunc(
    "(l,p),(n,p),(l,n),(l,n),(l,p),(l,g),(l),(n,p),(l)->(l,n),(l,n),(l,p),(l,g),(l),(n,p)",
    flag=8,
    kinds=KINDS,
)
def delta_back(dy, dS, q, k, v, log_g, beta, S0, resets, dq, dk, dv, dlog_g, dbeta, G):
    """Gradients of a block, with r = v − Zᵀ k and w = Gᵀ k:  G_t = q_t dy_tᵀ + a_{t+1} dZ_{t+1},
    dZ = G − β k wᵀ; at the end dS0."""
    (length, size), width = q.shape, v.shape[1]
    each = min(log_g.shape[1] - 1, 1)
    Z, r = np.empty((length, size, width), q.dtype), np.empty((length, width), q.dtype)
    w = np.empty(width, q.dtype)
    for n in range(size):
        for p in range(width):
            G[n, p] = dS[n, p]
    for t in range(length):
        for p in range(width):
            r[t, p] = v[t, p]
        for n in range(size):
            a = np.exp(log_g[t, each * n])
            for p in range(width):
                if resets[t]:
                    Z[t, n, p] = 0
                elif t:
                    Z[t, n, p] = a * (Z[t - 1, n, p] + k[t - 1, n] * (beta[t - 1] * r[t - 1, p]))
                else:
                    Z[t, n, p] = a * S0[n, p]
                r[t, p] -= Z[t, n, p] * k[t, n]
    for t in range(length - 1, -1, -1):
        by_beta = q.dtype.type(0)
        for p in range(width):
            w[p] = 0
        for n in range(log_g.shape[1]):
            dlog_g[t, n] = 0
        for n in range(size):
            for p in range(width):
                G[n, p] += q[t, n] * dy[t, p]
                w[p] += G[n, p] * k[t, n]
        for p in range(width):
            by_beta += r[t, p] * w[p]
            dv[t, p] = beta[t] * w[p]
        dbeta[t] = by_beta
        for n in range(size):
            by_q, by_k, by_g = q.dtype.type(0), q.dtype.type(0), q.dtype.type(0)
            a = np.exp(log_g[t, each * n])
            for p in range(width):
                by_q += (Z[t, n, p] + k[t, n] * (beta[t] * r[t, p])) * dy[t, p]
                by_k += G[n, p] * r[t, p] - Z[t, n, p] * w[p]
                G[n, p] -= k[t, n] * dv[t, p]
                by_g += Z[t, n, p] * G[n, p]
            dq[t, n], dk[t, n] = by_q, beta[t] * by_k
            if resets[t]:
                for p in range(width):
                    G[n, p] = 0
            else:
                dlog_g[t, each * n] += by_g
                for p in range(width):
                    G[n, p] *= a
