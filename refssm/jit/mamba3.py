"""Numba mirrors of refssm.mamba3: angles in passes over time, states as those of SSD.

With x the values and B the weighed keys of the step before, and C the turned queries, the states
before a step's own input are those of state-space duality, whose kernels take pieces by matrix
products. What a step adds itself needs no state.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit.ssd.kernels import pulled_back, scan
from refssm.mamba3 import MAMBA3_SISO_RECURRENCE, PARTS
from refssm.scan.blocks import no_resets

KINDS = ("f4", "f8")
RANKS = (2, 2, 2, 1, 1, 1, 2)  # core axes of each argument


@gufunc("(l,n),(l),(n),(l)->(l,n),(n)", flag=3, kinds=KINDS)
def summed(angles, dt, first, resets, phase, last):
    """φ_t = φ_{t-1} + π tanh(angles_t) Δ_t without whole turns, and the last one."""
    pi = dt.dtype.type(np.pi)
    for n in range(first.size):
        last[n] = first[n]
    for t in range(dt.size):
        for n in range(first.size):
            start = 0 * dt[t] if resets[t] else last[n]
            x = start + pi * np.tanh(angles[t, n]) * dt[t]
            last[n] = x - 2 * pi * np.floor(x / (2 * pi))
            phase[t, n] = last[n]


@gufunc("(l,r),(l,r),(l,n)->(l,r),(l,r)", kinds=KINDS)
def turned(q, k, phase, q_turned, k_turned):
    """Each pair of neighbours of q and of k, turned by its angle."""
    for t in range(phase.shape[0]):
        for n in range(phase.shape[1]):
            c, s, i, j = np.cos(phase[t, n]), np.sin(phase[t, n]), 2 * n, 2 * n + 1
            q_turned[t, i] = q[t, i] * c - q[t, j] * s
            q_turned[t, j] = q[t, i] * s + q[t, j] * c
            k_turned[t, i] = k[t, i] * c - k[t, j] * s
            k_turned[t, j] = k[t, i] * s + k[t, j] * c


@gufunc("(l,r),(l,r),(l,r),(l,r),(n),(l)->(l,n),(n)", flag=5, kinds=KINDS)
def turned_back(q, dq, k, dk, dlast, resets, dphase, dfirst):
    """The cotangents of all angles and of the first ones, from the last step to the first."""
    for n in range(dlast.size):
        dfirst[n] = dlast[n]
    for t in range(q.shape[0] - 1, -1, -1):
        for n in range(dlast.size):
            i, j = 2 * n, 2 * n + 1
            dfirst[n] += q[t, i] * dq[t, j] - q[t, j] * dq[t, i]
            dfirst[n] += k[t, i] * dk[t, j] - k[t, j] * dk[t, i]
            dphase[t, n] = dfirst[n]
            if resets[t]:
                dfirst[n] = 0


@gufunc("(l,r),(r),(l)->(l,r)", flag=2, kinds=KINDS)
def delayed(x, first, resets, y):
    """x of the step before, `first` at step 0, and 0 where a sequence begins."""
    for t in range(x.shape[0]):
        for n in range(x.shape[1]):
            y[t, n] = 0 if resets[t] else (x[t - 1, n] if t else first[n])


@gufunc("(l,r),(r),(l)->(l,r),(r)", flag=2, kinds=KINDS)
def delayed_back(dy, dlast, resets, dx, dfirst):
    """The cotangents of x, with `dlast` for its last row, and of `first`."""
    l = dy.shape[0]
    for n in range(dlast.size):
        dfirst[n] = 0 if resets[0] else dy[0, n]
        dx[l - 1, n] = dlast[n]
    for t in range(1, l):
        for n in range(dlast.size):
            dx[t - 1, n] = 0 if resets[t] else dy[t, n]


class TurnedDuality:
    """Arguments in one type, turned and delayed, as SSD takes them."""

    def __init__(self, arguments, state, resets):
        kind = np.result_type(*arguments, *(state or ()))
        self.q, self.k, self.v, log_g, self.dt, trap, angles = (
            x.astype(kind, copy=False) for x in arguments
        )
        self.resets = no_resets(self.q.shape[-2]) if resets is None else resets != 0
        pairs, n, p = angles.shape[-1], self.k.shape[-1], self.v.shape[-1]
        shapes = (pairs,), (n, p), (n,), (p,)
        first = state or [np.zeros(shape, kind) for shape in shapes]
        phase0, self.S, key0, value0 = self.first = [x.astype(kind, copy=False) for x in first]
        self.rate = np.tanh(angles)
        self.phase, self.last = summed(angles, self.dt, phase0, self.resets)
        self.turned = turned(self.q, self.k, self.phase)
        with np.errstate(over="ignore"):
            self.share = 1 / (1 + np.exp(-trap))
        self.now = self.share * self.dt
        self.own = np.einsum("...ln,...ln->...l", self.q, self.k)
        self.key = delayed(self.turned[1], key0, self.resets)
        self.value = delayed(self.v, value0, self.resets)
        gate = np.where(self.resets, 0, log_g).astype(kind, copy=False)
        rest = delayed(self.now[..., None], np.zeros(1, kind), self.resets)[..., 0]
        self.a, self.weight = np.exp(gate), rest + (1 - self.share) * self.dt
        writes = (self.a * self.weight)[..., None] * self.key
        start = np.swapaxes(self.S, -1, -2)
        self.ssd = self.value, gate, writes, self.turned[0], start, self.resets


def _run(arguments, state, resets):
    """All outputs, and the last state."""
    given = TurnedDuality(arguments, state, resets)
    y, U = scan(*given.ssd)
    y = y + (given.now * given.own)[..., None] * given.v
    S, phase, (_, _, key, value) = np.swapaxes(U, -1, -2), given.last, given.first
    if y.shape[-2]:
        key, value = given.turned[1][..., -1, :], given.v[..., -1, :]
        S = S + given.now[..., -1, None, None] * key[..., :, None] * value[..., None, :]
    parts = ((phase, 1), (S, 2), (key, 1), (value, 1))
    return y, *(with_batch(x, rank, y.shape[:-2]) for x, rank in parts)


def _whole(arguments, state, batch):
    """All with the leading axes of the result, so that each gradient is summed once."""
    pairs = zip((*arguments, *(state or ())), (*RANKS, *PARTS), strict=False)
    wide = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - r :])) for x, r in pairs]
    return wide[: len(RANKS)], wide[len(RANKS) :]


def _back(cotangents, arguments, state, resets):
    """Gradients for the arguments and the state."""
    dy, *dlast = cotangents
    if not dy.shape[-2]:
        zeros = [np.zeros_like(x) for x in arguments]
        return *zeros, *(unbroadcast_each(dlast, state) if state else ())
    given = TurnedDuality(*_whole(arguments, state, dy.shape[:-2]), resets)
    dphase, dS, dkey, dvalue = dlast or [np.zeros_like(x) for x in given.first]
    q, k, v, resets = given.q, given.k, given.v, given.resets
    key, value, last = given.turned[1][..., -1, :], v[..., -1, :], given.now[..., -1, None]
    dvalues, dgate, dwrites, dq, dstart = pulled_back(dy, np.swapaxes(dS, -1, -2), *given.ssd)
    of_v = (dS @ value[..., None])[..., 0]
    of_k = (key[..., None, :] @ dS)[..., 0, :]
    decayed = (given.a * given.weight)[..., None]
    dk, dkey0 = delayed_back(decayed * dwrites, dkey + last * of_v, resets)
    dv, dvalue0 = delayed_back(dvalues, dvalue + last * of_k, resets)
    dphases, dphase0 = turned_back(given.turned[0], dq, given.turned[1], dk, dphase, resets)
    own = np.einsum("...lp,...lp->...l", dy, v)
    dlate = given.a * np.einsum("...ln,...ln->...l", dwrites, given.key)
    of_last = np.einsum("...n,...n->...", of_v, key)[..., None]
    dnow = given.own * own + delayed_back(dlate[..., None], of_last, resets)[0][..., 0]
    dq, dk = turned(dq, dk, -given.phase)
    dqk, share, pi = (given.now * own)[..., None], given.share, v.dtype.type(np.pi)
    slopes = pi * ((1 - given.rate) * (1 + given.rate)) * given.dt[..., None]
    moved = pi * np.einsum("...ln,...ln->...l", given.rate, dphases)
    gradients = (
        dq + dqk * k,
        dk + dqk * q,
        dv + (given.now * given.own)[..., None] * dy,
        dgate + np.where(resets, 0, given.weight * dlate),
        share * dnow + (1 - share) * dlate + moved,
        share * (1 - share) * given.dt * (dnow - dlate),
        slopes * dphases,
    )
    gradients = unbroadcast_each(gradients, arguments)
    if state is None:
        return gradients
    first = dphase0, np.swapaxes(dstart, -1, -2), dkey0, dvalue0
    return *gradients, *unbroadcast_each(first, state)


(
    (mamba3_siso, mamba3_siso_vjp),
    (mamba3_siso_stateful, mamba3_siso_stateful_vjp),
    (mamba3_siso_packed, mamba3_siso_packed_vjp),
    (mamba3_siso_packed_stateful, mamba3_siso_packed_stateful_vjp),
    (mamba3_siso_states, mamba3_siso_states_vjp),
    (mamba3_siso_step, mamba3_siso_step_vjp),
) = MAMBA3_SISO_RECURRENCE.mirrors(_run, _back, mirror)
