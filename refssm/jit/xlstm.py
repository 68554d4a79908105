"""Numba mirrors of refssm.xlstm: one kernel for each direction, values across SIMD lanes.

Gradients go block by block of √l steps, from the last to the first [chen2016training]; a block
computes its states again.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import blocks, gufunc, joined
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.scan.blocks import no_resets
from refssm.xlstm import XLSTM

KINDS = ("f4", "f8")
LEAST = {"f": np.finfo(np.float32).tiny, "d": np.finfo(np.float64).tiny}
TIMED = (2, 2, 2, 1, 1)  # core axes of q, k, v, i and log_f; the first is time


@part
def _floor(m, least):
    """e^{min(m, 0)} and e^{−max(m, 0)}, at least a normal number."""
    return np.exp(min(m, 0 * m)), max(np.exp(-max(m, 0 * m)), least)


@gufunc(
    "(l,n),(l,n),(l,p),(l),(l),(n,p),(n),(o),(l),(o),(o)->(l,p),(n,p),(n),(o)", flag=8, kinds=KINDS
)
def mlstm_scan(q, k, v, i, log_f, S0, s0, m0, resets, eps, least, y, S, s, m):
    """m_t = max(log_f_t + m_{t-1}, i_t);  S_t = e^{log_f_t + m_{t-1} − m_t} S_{t-1} +
    e^{i_t − m_t} k_t v_tᵀ;  y_t = S_tᵀ q_t / (max(|s_tᵀ q_t|, e^{−m_t}) + eps)."""
    size, width = S0.shape
    m[0] = m0[0]
    for n in range(size):
        s[n] = s0[n]
        for p in range(width):
            S[n, p] = S0[n, p]
    for t in range(q.shape[0]):
        if resets[t]:  # selected: NaN and infinity do not pass
            m[0] = 0
            for n in range(size):
                s[n] = 0
                for p in range(width):
                    S[n, p] = 0
        before = log_f[t] + m[0]
        m[0] = i[t] if i[t] > before else before
        if i[t] != i[t]:
            m[0] = i[t]
        f, g = np.exp(before - m[0]), np.exp(i[t] - m[0])
        a = q.dtype.type(0)
        for p in range(width):
            y[t, p] = 0
        for n in range(size):
            kn, qn = g * k[t, n], q[t, n]
            s[n] = f * s[n] + kn
            a += s[n] * qn
            for p in range(width):
                S[n, p] = f * S[n, p] + kn * v[t, p]
                y[t, p] += S[n, p] * qn
        low, one = _floor(m[0], least[0])
        a = abs(a) * low
        d = (one if a < one else a) + low * eps[0]
        for p in range(width):
            y[t, p] = low * y[t, p] / d


@gufunc(
    "(l,p),(n,p),(n),(o),(l,n),(l,n),(l,p),(l),(l),(n,p),(n),(o),(l),(o),(o)"
    "->(l,n),(l,n),(l,p),(l),(l),(n,p),(n),(o)",
    flag=12,
    kinds=KINDS,
)
def mlstm_back(
    dy, dS, ds, dleft, q, k, v, i, log_f, S0, s0, m0, resets, eps, least,
    dq, dk, dv, di, df, G, h, left
):  # fmt: skip
    """Gradients of a block; `left` is what is left for m, and goes to i or to log_f and m."""
    (length, size), width = q.shape, v.shape[1]
    S, s = np.empty((length + 1, size, width), q.dtype), np.empty((length + 1, size), q.dtype)
    m, f, g = np.empty(length + 1, q.dtype), np.empty(length, q.dtype), np.empty(length, q.dtype)
    b, num = np.empty(length, q.dtype), np.empty(width, q.dtype)
    m[0], left[0] = m0[0], dleft[0]
    for n in range(size):
        s[0, n], h[n] = s0[n], ds[n]
        for p in range(width):
            S[0, n, p], G[n, p] = S0[n, p], dS[n, p]
    for t in range(length):
        b[t] = log_f[t] + (0 * log_f[t] if resets[t] else m[t])
        m[t + 1] = i[t] if i[t] > b[t] or i[t] != i[t] else b[t]
        f[t], g[t] = np.exp(b[t] - m[t + 1]), np.exp(i[t] - m[t + 1])
        for n in range(size):
            kn = g[t] * k[t, n]
            if resets[t]:  # selected: NaN and infinity do not pass
                s[t + 1, n] = kn
                for p in range(width):
                    S[t + 1, n, p] = kn * v[t, p]
            else:
                s[t + 1, n] = f[t] * s[t, n] + kn
                for p in range(width):
                    S[t + 1, n, p] = f[t] * S[t, n, p] + kn * v[t, p]
    for t in range(length - 1, -1, -1):
        a, dd = q.dtype.type(0), q.dtype.type(0)
        for p in range(width):
            num[p] = 0
            dv[t, p] = 0
        for n in range(size):
            a += s[t + 1, n] * q[t, n]
            for p in range(width):
                num[p] += S[t + 1, n, p] * q[t, n]
        low, one = _floor(m[t + 1], least[0])
        larger = abs(a) * low
        d = (one if larger < one else larger) + low * eps[0]
        for p in range(width):
            dd -= dy[t, p] * (low * num[p] / d)
            num[p] = low * dy[t, p] / d
        dd /= d
        da = low * dd * np.sign(a)
        if larger < one:
            da *= 0
        left[0] += low * eps[0] * dd
        by_f, by_i = q.dtype.type(0), q.dtype.type(0)
        for n in range(size):
            h[n] += q[t, n] * da
            by_q, by_k, by_S = s[t + 1, n] * da, h[n], s[t, n] * h[n]
            kn = g[t] * k[t, n]
            for p in range(width):
                G[n, p] += q[t, n] * num[p]
                by_q += S[t + 1, n, p] * num[p]
                by_k += G[n, p] * v[t, p]
                by_S += S[t, n, p] * G[n, p]
                dv[t, p] += G[n, p] * kn
                G[n, p] *= f[t]
            h[n] *= f[t]
            dq[t, n], dk[t, n] = by_q, g[t] * by_k
            if not resets[t]:
                by_f += f[t] * by_S
            by_i += k[t, n] * dk[t, n]
        if b[t] < i[t]:
            by_i += left[0]
            left[0] = 0
        df[t], di[t] = by_f + left[0], by_i
        if resets[t]:
            left[0] = 0
            for n in range(size):
                h[n] = 0
                for p in range(width):
                    G[n, p] = 0


def _run(arguments, state, resets, *, eps=0.0):
    """All outputs, and the last state."""
    given, state, resets, small = _completed(arguments, state, resets, eps)
    y, S, s, m = mlstm_scan(*given, *state, resets, *small)
    return y, S, s, m[..., 0]


def _back(cotangents, arguments, state, resets, *, eps=0.0):
    """Gradients for the arguments and the state."""
    given, start, begun, small = _completed(arguments, state, resets, eps)
    dy, *dlast = cotangents
    length = dy.shape[-2]

    def cut(w):
        pairs = zip(given, TIMED, strict=True)
        return [x[..., w, :] if rank == 2 else x[..., w] for x, rank in pairs]

    def after(w, now):
        return mlstm_scan(*cut(w), *now, begun[..., w], *small)[1:]

    pairs = blocks(after, start, length)
    if dlast:
        dS, ds, dm = dlast
        S, s, _ = after(pairs[0][0], pairs[0][1])
        left = dm - (dS * S).sum((-1, -2)) - (ds * s).sum(-1)
        carried = dS, ds, left[..., None]
    else:
        carried = tuple(np.zeros_like(x) for x in start)
    pieces = []
    for w, now in pairs:
        made = mlstm_back(dy[..., w, :], *carried, *cut(w), *now, begun[..., w], *small)
        parts, carried = made[:5], made[5:]
        pieces.append([x if rank == 2 else x[..., None] for x, rank in
                       zip(parts, TIMED, strict=True)])  # fmt: skip
    found = joined(pieces, -2)
    gradients = unbroadcast_each((*found[:3], *(x[..., 0] for x in found[3:])), arguments)
    if state is None:
        return gradients
    dS, ds, left = carried
    dm = left[..., 0] + (dS * start[0]).sum((-1, -2)) + (ds * start[1]).sum(-1)
    return *gradients, *unbroadcast_each((dS, ds, dm), state)


def _completed(arguments, state, resets, eps):
    """The kernel's arguments, the first state and the resets, and the small numbers."""
    _, k, v, *_ = arguments
    kind = np.result_type(*arguments, *(() if state is None else state))
    size, width = k.shape[-1], v.shape[-1]
    rest = np.zeros((size, width), kind), np.zeros(size, kind), np.zeros(1, kind)
    start = rest if state is None else (state[0], state[1], state[2][..., None])
    resets = no_resets(k.shape[-2]) if resets is None else resets != 0
    small = np.array([eps], kind), np.array([LEAST[kind.char]], kind)
    return arguments, start, resets, small


(
    (mlstm, mlstm_vjp),
    (mlstm_stateful, mlstm_stateful_vjp),
    (mlstm_packed, mlstm_packed_vjp),
    (mlstm_packed_stateful, mlstm_packed_stateful_vjp),
    (mlstm_states, mlstm_states_vjp),
    (mlstm_step, mlstm_step_vjp),
) = XLSTM.mirrors(_run, _back, mirror)
