"""CuPy mirrors of refssm.mamba3: angles in log₂ l passes, then the kernels of linear attention.

Two moves of an angle are one move by their sum without whole turns, so that all angles follow by
doubling, and no sum grows beyond two turns. Before its own input a step has the state of gated
linear attention with the keys and values of the step before (`refssm_gpu.linear_attention.passes`).
"""

import math

import numpy as np

from refssm.mamba3 import MAMBA3_SISO_RECURRENCE
from refssm_gpu._launching.arrays import Array, common, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu.linear_attention.passes import scan as attention
from refssm_gpu.linear_attention.passes import scan_back as attention_back
from refssm_gpu.scan.linear import scan

TURN = 2 * math.pi


def _within_turn(x: Array) -> Array:
    """From 0 to 2π."""
    return x - TURN * namespace(x).floor(x / TURN)


def _nearest(x: Array) -> Array:
    """From −π to π: a small move back stays small, and has its digits."""
    return x - TURN * namespace(x).round(x / TURN)


def _summed(moves: Array, first: Array, begins: Array) -> Array:
    """The angle after each step, by doubling; from 0 where a sequence begins."""
    xp, l = namespace(moves), moves.shape[-2]
    batch = np.broadcast_shapes(moves.shape[:-2], first.shape[:-1], begins.shape[:-1])
    total = _nearest(xp.broadcast_to(moves, (*batch, *moves.shape[-2:])))
    begun, reach = xp.broadcast_to(begins, (*batch, l)), 1
    while reach < l:
        old, new = slice(None, -reach), slice(reach, None)
        own = begun[..., new]
        both = _nearest(total[..., old, :] + total[..., new, :])
        joined = xp.where(own[..., None], total[..., new, :], both)
        total = xp.concat([total[..., :reach, :], joined], axis=-2)
        begun = xp.concat([begun[..., :reach], own | begun[..., old]], axis=-1)
        reach *= 2
    return _within_turn(xp.where(begun[..., None], total, total + first[..., None, :]))


def _turned(x: Array, c: Array, s: Array) -> Array:
    """Each pair of neighbours, turned."""
    xp = namespace(x)
    first, second = x[..., ::2], x[..., 1::2]
    both = xp.stack([first * c - second * s, first * s + second * c], axis=-1)
    return xp.reshape(both, (*both.shape[:-2], 2 * both.shape[-2]))


def _moment(x: Array, dx: Array) -> Array:
    """x_0 dx_1 − x_1 dx_0 of each pair."""
    return x[..., ::2] * dx[..., 1::2] - x[..., 1::2] * dx[..., ::2]


def _joined(x: Array, y: Array) -> Array:
    """x, then y along time."""
    xp, batch = namespace(x), np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows = [xp.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y)]
    return xp.concat(rows, axis=-2)


def _earlier(x: Array, first: Array, begins: Array) -> Array:
    """x of the step before, `first` at step 0, 0 where a sequence begins."""
    moved = _joined(first[..., None, :], x)[..., :-1, :]
    return _kept(moved, begins)


def _later(d: Array, last: Array, begins: Array) -> tuple[Array, Array]:
    """The cotangents of x and of `first`; `last` are added at the end."""
    d = _joined(_kept(d, begins), last[..., None, :])
    return d[..., 1:, :], d[..., 0, :]


def _kept(x: Array, begins: Array) -> Array:
    """x, or exactly 0 where a sequence begins."""
    xp = namespace(x)
    return xp.where(begins[..., None], xp.zeros_like(x), x)


class OneStepLate:
    """Arguments in one type, turned and delayed, as linear attention takes them."""

    def __init__(self, arguments, state, resets):
        xp, kind = namespace(arguments[0]), common(*arguments, *(state or ()))
        given = [xp.astype(x, kind, copy=False) for x in (*arguments, *(state or ()))]
        self.q, self.k, self.v, log_g, self.dt, trap, angles, *first = given
        l, n, p = (*self.k.shape[-2:], self.v.shape[-1])
        if not first:
            shapes = angles.shape[-1], (n, p), n, p
            first = [xp.zeros(shape, dtype=kind) for shape in shapes]
        self.first = phase0, S, key0, value0 = first
        self.begins = xp.zeros(l, dtype=bool) if resets is None else resets != 0
        self.rate, one = xp.tanh(angles), xp.ones((), dtype=kind)
        moves = math.pi * self.rate * self.dt[..., None]
        self.phase = _summed(moves, phase0, self.begins)
        self.c, self.s = xp.cos(self.phase), xp.sin(self.phase)
        self.turned_q, self.turned_k = (_turned(x, self.c, self.s) for x in (self.q, self.k))
        e = xp.exp(-xp.abs(trap))
        self.share = xp.where(trap >= 0, one, e) / (1 + e)
        self.now, self.own = self.share * self.dt, xp.sum(self.q * self.k, axis=-1)
        self.key = _earlier(self.turned_k, key0, self.begins)
        self.value = _earlier(self.v, value0, self.begins)
        gate = xp.where(self.begins, xp.zeros_like(log_g), log_g)
        rest = _earlier(self.now[..., None], xp.zeros(1, dtype=kind), self.begins)[..., 0]
        self.a, self.weight = xp.exp(gate), rest + (1 - self.share) * self.dt
        writes = (self.a * self.weight)[..., None] * self.key
        self.told = {
            "q": self.turned_q,
            "k": writes,
            "v": self.value,
            "log_g": gate[..., None],
            "beta": None,
            "S0": S,
            "resets": resets,
        }


def _run(arguments, state, resets):
    """The outputs, and the last state if there is a first one."""
    if not arguments[0].shape[-2]:
        return _no_steps(arguments, state, resets)
    given = OneStepLate(arguments, state, resets)
    xp = namespace(given.v)
    y, S = attention(given.told)
    y = y + (given.now * given.own)[..., None] * given.v
    if not state:
        return (y,)
    key, value = given.turned_k[..., -1, :], given.v[..., -1, :]
    S = S + given.now[..., -1, None, None] * key[..., :, None] * value[..., None, :]
    last = ((given.phase[..., -1, :], 1), (S, 2), (key, 1), (value, 1))
    batch = y.shape[:-2]
    # a copy: the last value is a row of `v`
    return y, *(xp.broadcast_to(x, (*batch, *x.shape[x.ndim - r :])) + 0 for x, r in last)


def _no_steps(arguments, state, resets):
    """No outputs, and the first state."""
    first: tuple = state or ()
    xp, kind = namespace(arguments[0]), common(*arguments, *first)
    batch = np.broadcast_shapes(
        *(x.shape[: x.ndim - r] for x, r in zip(arguments, (2, 2, 2, 1, 1, 1, 2), strict=True)),
        *(x.shape[: x.ndim - r] for x, r in zip(first, (1, 2, 1, 1), strict=False)),
        () if resets is None else resets.shape[:-1],
    )
    y = xp.zeros((*batch, 0, arguments[2].shape[-1]), dtype=kind)
    told = zip(first, (1, 2, 1, 1), strict=False)
    parts = [xp.broadcast_to(x, (*batch, *x.shape[x.ndim - r :])) for x, r in told]
    return y, *(xp.astype(x, kind) for x in parts)


def _back(cotangents, arguments, state, resets):
    """Gradients for the arguments and the state."""
    dy, *dlast = cotangents
    xp, primals = namespace(dy), (*arguments, *(state or ()))
    if not dy.shape[-2]:
        zeros = [xp.zeros(x.shape, dtype=x.dtype) for x in arguments]
        return *zeros, *(unbroadcast_and_round(dlast, state) if state else ())
    given = OneStepLate(*_whole(arguments, state, dy.shape[:-2]), resets)
    dphase, dS, dkey, dvalue = dlast or [xp.zeros_like(x) for x in given.first]
    key, value, last = given.turned_k[..., -1, :], given.v[..., -1, :], given.now[..., -1, None]
    found = attention_back(dy, dS if dlast else None, given.told)
    of_v = xp.sum(dS * value[..., None, :], axis=-1)
    of_k = xp.sum(dS * key[..., :, None], axis=-2)
    decayed = (given.a * given.weight)[..., None]
    dk, dkey0 = _later(decayed * found["k"], dkey + last * of_v, given.begins)
    dv, dvalue0 = _later(found["v"], dvalue + last * of_k, given.begins)
    dlate = given.a * xp.sum(found["k"] * given.key, axis=-1)
    of_last = xp.sum(of_v * key, axis=-1, keepdims=True)
    own = xp.sum(dy * given.v, axis=-1)
    dnow = given.own * own + _later(dlate[..., None], of_last, given.begins)[0][..., 0]
    moments = _moment(given.turned_q, found["q"]) + _moment(given.turned_k, dk)
    dphases, dphase0 = _carried(moments, dphase, given.begins)
    gradients = _of_arguments(given, found, dk, dv, dy, own, dnow, dlate, dphases)
    first = [dphase0, found["S0"], dkey0, dvalue0] if state else []
    return unbroadcast_and_round([*gradients, *first], primals)


def _whole(arguments, state, batch):
    """All with the leading axes of the result, so that each gradient is summed once."""
    ranks = (2, 2, 2, 1, 1, 1, 2, 1, 2, 1, 1)
    given = (*arguments, *(state or ()))
    xp = namespace(given[0])
    pairs = zip(given, ranks[: len(given)], strict=True)
    wide = [xp.broadcast_to(x, (*batch, *x.shape[x.ndim - rank :])) for x, rank in pairs]
    count = len(arguments)
    return wide[:count], wide[count:] if state else state


def _of_arguments(given, found, dk, dv, dy, own, dnow, dlate, dphases):
    """The gradients of the arguments, from those of what linear attention takes."""
    xp, share = namespace(dy), given.share
    dqk = (given.now * own)[..., None]
    slopes = math.pi * ((1 - given.rate) * (1 + given.rate)) * given.dt[..., None]
    moved = math.pi * xp.sum(given.rate * dphases, axis=-1)
    of_gate = given.weight * dlate
    return [
        _turned(found["q"], given.c, -given.s) + dqk * given.k,
        _turned(dk, given.c, -given.s) + dqk * given.q,
        dv + (given.now * given.own)[..., None] * dy,
        found["log_g"][..., 0] + xp.where(given.begins, xp.zeros_like(of_gate), of_gate),
        share * dnow + (1 - share) * dlate + moved,
        share * (1 - share) * given.dt * (dnow - dlate),
        slopes * dphases,
    ]


def _carried(moments: Array, last: Array, begins: Array) -> tuple[Array, Array]:
    """The cotangents of all angles and of the first ones: a scan from the last step on."""
    xp, l = namespace(moments), moments.shape[-2]
    batch = np.broadcast_shapes(moments.shape[:-2], last.shape[:-1], begins.shape[:-1])
    passes = xp.astype(xp.broadcast_to(~begins, (*batch, l)), moments.dtype)
    later = xp.concat([passes[..., 1:], xp.ones_like(passes[..., :1])], axis=-1)
    start = xp.broadcast_to(last, (*batch, last.shape[-1]))
    moments = xp.broadcast_to(moments, (*batch, *moments.shape[-2:]))
    gates = xp.broadcast_to(later[..., ::-1, None], moments.shape)
    total = scan(gates, moments[..., ::-1, :], start, at_rest=False)[..., ::-1, :]
    return total, _kept(total[..., :1, :], begins[..., :1])[..., 0, :]


(
    (mamba3_siso, mamba3_siso_vjp),
    (mamba3_siso_stateful, mamba3_siso_stateful_vjp),
    (mamba3_siso_packed, mamba3_siso_packed_vjp),
    (mamba3_siso_packed_stateful, mamba3_siso_packed_stateful_vjp),
    (mamba3_siso_states, mamba3_siso_states_vjp),
    (mamba3_siso_step, mamba3_siso_step_vjp),
) = MAMBA3_SISO_RECURRENCE.mirrors(_run, _back, mirror)
