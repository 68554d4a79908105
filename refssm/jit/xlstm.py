"""Numba mirrors of refssm.xlstm: gates and normaliser in passes over time, states as those of SSD.

With x = e^{i − m} (v, 1), log_a = log_f_t + m_{t-1} − m_t, B = k and C = q the states are those of
state-space duality, whose kernels take pieces by matrix products and share what a group shares. A
single step has a kernel of its own.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit.ssd.kernels import pulled_back, scan
from refssm.scan.blocks import no_resets
from refssm.xlstm import XLSTM, XLSTM_CHUNKED

KINDS = ("f4", "f8")
LEAST = {"f": np.finfo(np.float32).tiny, "d": np.finfo(np.float64).tiny}


@part
def _larger(b, i):
    """max(b, i); NaN if one of them is."""
    return i if i > b or i != i else b


@part
def _floor(m, least):
    """e^{min(m, 0)} and e^{−max(m, 0)}, at least a normal number."""
    return np.exp(min(m, 0 * m)), max(np.exp(-max(m, 0 * m)), least)


@gufunc("(l),(l),(o),(l)->(l),(l),(l),(l),(o)", flag=3, kinds=KINDS)
def gates(i, log_f, m0, resets, m, log_a, weight, passes, last):
    """m_t = max(log_f_t + m_{t-1}, i_t), with log_f_t + m_{t-1} − m_t and e^{i_t − m_t};
    `passes` has 1 where log_f + m is the larger."""
    last[0] = m0[0]
    for t in range(i.size):
        b = log_f[t] + (0 * log_f[t] if resets[t] else last[0])
        last[0] = _larger(b, i[t])
        m[t], log_a[t], weight[t] = last[0], b - last[0], np.exp(i[t] - last[0])
        passes[t] = 0 if b < i[t] else 1


@gufunc("(l,r),(l),(l,p),(o),(o)->(l,p)", kinds=KINDS)
def divided(read, m, v, eps, least, y):
    """y_tp = read_tp / (max(|read_tr|, e^{−m_t}) + eps), where r is the last entry."""
    width = y.shape[1]
    for t in range(m.size):
        low, one = _floor(m[t], least[0])
        a = low * abs(read[t, width])
        d = (one if a < one else a) + low * eps[0]
        for p in range(width):
            y[t, p] = low * read[t, p] / d


@gufunc("(l,p),(l,r),(l),(o),(o)->(l,r),(l)", kinds=KINDS)
def divided_back(dy, read, m, eps, least, dread, of_eps):
    """The cotangent of `read`, and what eps leaves for m."""
    width = dy.shape[1]
    for t in range(m.size):
        low, one = _floor(m[t], least[0])
        a, dd = low * read[t, width], 0 * m[t]
        below = abs(a) < one
        d = (one if below else abs(a)) + low * eps[0]
        for p in range(width):
            dd -= dy[t, p] * (low * read[t, p] / d)
            dread[t, p] = low * dy[t, p] / d
        dd /= d
        dread[t, width] = 0 * dd if below else low * dd * np.sign(a)
        of_eps[t] = low * eps[0] * dd


@gufunc("(l),(l),(o),(l)->(l),(l),(o)", flag=3, kinds=KINDS)
def shared(of_eps, passes, left, resets, of_b, of_i, before):
    """What of that log_f_t + m_{t-1} and i_t get at each step, and what is left at the start."""
    before[0] = left[0]
    for t in range(of_eps.size - 1, -1, -1):
        total = before[0] + of_eps[t]
        of_b[t] = total if passes[t] else 0 * total
        of_i[t] = total - of_b[t]
        before[0] = 0 * total if resets[t] else of_b[t]


@gufunc("(n),(n),(p),(o),(o),(n,p),(n),(o),(o),(o)->(p),(n,p),(n),(o)", kinds=KINDS)
def one_step(q, k, v, i, log_f, S0, s0, m0, eps, least, y, S, s, m):
    """One step: the state is read once and written once."""
    size, width = S0.shape
    b = log_f[0] + m0[0]
    m[0] = _larger(b, i[0])
    f, g, a = np.exp(b - m[0]), np.exp(i[0] - m[0]), q.dtype.type(0)
    for p in range(width):
        y[p] = 0
    for n in range(size):
        kn, qn = g * k[n], q[n]
        s[n] = f * s0[n] + kn
        a += s[n] * qn
        for p in range(width):
            S[n, p] = f * S0[n, p] + kn * v[p]
            y[p] += S[n, p] * qn
    low, one = _floor(m[0], least[0])
    a = low * abs(a)
    d = (one if a < one else a) + low * eps[0]
    for p in range(width):
        y[p] = low * y[p] / d


class Duality:
    """Arguments in one type, with gates, and as SSD takes them."""

    def __init__(self, arguments, state, resets, eps):
        self.kind = np.result_type(*arguments, *(() if state is None else state))
        q, self.k, self.v, i, log_f = (x.astype(self.kind, copy=False) for x in arguments)
        self.resets = no_resets(q.shape[-2]) if resets is None else resets != 0
        self.small = np.array([eps], self.kind), np.array([LEAST[self.kind.char]], self.kind)
        m0 = np.zeros(1, self.kind) if state is None else state[2][..., None]
        made = gates(i, log_f, m0, self.resets)
        self.m, log_a, self.weight, self.passes, last = made
        self.last = last[..., 0]
        ones = np.ones((*self.v.shape[:-1], 1), self.kind)
        x = self.weight[..., None] * np.concatenate([self.v, ones], axis=-1)
        start = np.zeros((x.shape[-1], self.k.shape[-1]), self.kind)
        if state is not None:
            start = _rows(state[0], state[1])
        self.ssd = x, log_a, self.k, q, start, self.resets


def _rows(S, s):
    """The state of SSD, (p + 1, n): S turned, with s as one more row."""
    batch = np.broadcast_shapes(S.shape[:-2], s.shape[:-1])
    turned = np.broadcast_to(np.swapaxes(S, -1, -2), (*batch, S.shape[-1], S.shape[-2]))
    return np.concatenate(
        [turned, np.broadcast_to(s, (*batch, s.shape[-1]))[..., None, :]], axis=-2
    )


def _apart(state):
    """S and s."""
    return np.swapaxes(state[..., :-1, :], -1, -2), state[..., -1, :]


def _run(arguments, state, resets, *, eps=0.0, chunk=0):
    """All outputs, and the last state; the kernels choose the chunk."""
    del chunk
    if state is not None and resets is None and arguments[0].shape[-2] == 1:
        return _single(arguments, state, eps)
    given = Duality(arguments, state, resets, eps)
    read, S = scan(*given.ssd)
    y = divided(read, given.m, given.v, *given.small)
    return y, *map(np.ascontiguousarray, _apart(S)), with_batch(given.last, 0, S.shape[:-2])


def _single(arguments, state, eps):
    """One step from a state."""
    kind = np.result_type(*arguments, *state)
    q, k, v, i, log_f = arguments
    small = np.array([eps], kind), np.array([LEAST[kind.char]], kind)
    now = q[..., 0, :], k[..., 0, :], v[..., 0, :], i, log_f
    y, S, s, m = one_step(*now, state[0], state[1], state[2][..., None], *small)
    return y[..., None, :], S, s, m[..., 0]


def _back(cotangents, arguments, state, resets, *, eps=0.0, chunk=0):
    """Gradients for the arguments and the state."""
    del chunk
    given = Duality(arguments, state, resets, eps)
    dy, *dlast = cotangents
    read, S = scan(*given.ssd)
    dread, of_eps = divided_back(dy, read, given.m, *given.small)
    dS = _rows(*dlast[:2]) if dlast else np.zeros_like(given.ssd[4])
    dx, db, dk, dq, dstart = pulled_back(dread, dS, *given.ssd)
    di = (dx * given.ssd[0]).sum(-1)
    dv = given.weight[..., None] * dx[..., :-1]
    left = dlast[2] - (dS * S).sum((-1, -2)) if dlast else np.zeros((), given.kind)
    if dlast or eps:
        of_b, of_i, left = shared(of_eps, given.passes, left[..., None], given.resets)
        db, di, left = db + of_b, di + of_i, left[..., 0]
    gradients = unbroadcast_each((dq, dk, dv, di, db), arguments)
    if state is None:
        return gradients
    dm = left + (dstart * given.ssd[4]).sum((-1, -2))
    return *gradients, *unbroadcast_each((*_apart(dstart), dm), state)


(
    (mlstm, mlstm_vjp),
    (mlstm_stateful, mlstm_stateful_vjp),
    (mlstm_packed, mlstm_packed_vjp),
    (mlstm_packed_stateful, mlstm_packed_stateful_vjp),
    (mlstm_states, mlstm_states_vjp),
    (mlstm_step, mlstm_step_vjp),
) = XLSTM.mirrors(_run, _back, mirror)
(
    (mlstm_chunked, mlstm_chunked_vjp),
    (mlstm_chunked_stateful, mlstm_chunked_stateful_vjp),
    (mlstm_chunked_packed, mlstm_chunked_packed_vjp),
    (mlstm_chunked_packed_stateful, mlstm_chunked_packed_stateful_vjp),
) = XLSTM_CHUNKED.mirrors(_run, _back, mirror)
