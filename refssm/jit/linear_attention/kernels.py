"""The compiled recurrences of linear attention and their adjoints: values across SIMD lanes.

`log_g` has one gate for a step, (l, 1), or one for each key, (l, n); β of a recurrence that has
none is no argument. The adjoint of a block of steps computes its states again.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import gufunc

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


@gufunc("(l,n),(l,n),(l,p),(l,g),(l),(n,p),(l)->(l,p),(n,p)", flag=6, kinds=KINDS)
def delta_scan(q, k, v, log_g, beta, S0, resets, y, S):
    """Z = diag(e^{log_g_t}) S_{t-1}, 0 at a reset;  S_t = Z + β_t k_t (v_t − Zᵀ k_t)ᵀ;
    y_t = S_tᵀ q_t."""
    (size, width), each = S0.shape, min(log_g.shape[1] - 1, 1)
    total, u = np.empty(width, q.dtype), np.empty(width, q.dtype)
    for n in range(size):
        for p in range(width):
            S[n, p] = S0[n, p]
    for t in range(q.shape[0]):
        for p in range(width):
            total[p], u[p] = 0, 0
        for n in range(size):
            if resets[t]:
                for p in range(width):
                    S[n, p] = 0
            else:
                a = np.exp(log_g[t, each * n])
                for p in range(width):
                    S[n, p] *= a
            for p in range(width):
                u[p] += k[t, n] * S[n, p]
        for p in range(width):
            u[p] = beta[t] * (v[t, p] - u[p])
        for n in range(size):
            for p in range(width):
                S[n, p] += k[t, n] * u[p]
                total[p] += S[n, p] * q[t, n]
        for p in range(width):
            y[t, p] = total[p]


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
