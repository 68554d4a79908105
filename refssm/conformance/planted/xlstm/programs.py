"""Building blocks of the planted bugs of mLSTM: programs with replaceable parts.

A bug is written once, as wrong(right, g) -> y, S, s, m with `recurrence` as the right program, or
as wrong(right, cotangents, g) -> gradients by name with `adjoint`, for `GivenSteps`.
"""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each

RANKS = {"q": 2, "k": 2, "v": 2, "i": 1, "log_f": 1}  # core axes; the first is time


class GivenSteps(namedtuple("GivenSteps", "q k v i log_f S0 s0 m0 resets")):
    """The arguments of all forms, without a state or resets zeros."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        parts = {name: _cut(getattr(self, name), steps, rank) for name, rank in RANKS.items()}
        return self.but(**parts, resets=self.resets[..., steps])


def _cut(x, steps, rank):
    return x[(..., steps, *[slice(None)] * (rank - 1))]


def given(op: Operator, arguments) -> GivenSteps:
    """The arguments of a call; without a state or resets these are zero."""
    told = dict(zip(op.inputs, arguments, strict=True))
    step = op.form == "step"
    timed = [_in_time(told[name], step, rank - 1) for name, rank in RANKS.items()]
    parts = [told.get(name, told.get(f"{name}0")) for name in "Ssm"]
    resets = told.get("resets", np.zeros(timed[0].shape[-2], bool)) != 0
    cores = (*RANKS.values(), 1, 2, 1, 0)
    all_of_it = zip((*timed, resets, *parts), cores, strict=True)
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - r] for x, r in all_of_it if x is not None))
    n, p, kind = timed[1].shape[-1], timed[2].shape[-1], timed[1].dtype
    starts = [
        np.zeros((*batch, *core), kind) if x is None else np.broadcast_to(x, (*batch, *core))
        for x, core in zip(parts, ((n, p), (n,), ()), strict=True)
    ]
    return GivenSteps(*timed, *starts, resets)


def form(op: Operator, whole):
    """`whole` with the arguments and results of `op`."""

    def forward(*arguments):
        y, *state = whole(given(op, arguments))
        kind = np.result_type(*(a for a in arguments if a.dtype.kind == "f"))
        y = (y[..., 0, :] if op.form == "step" else y).astype(kind, copy=False)
        return (y, *(x.astype(kind, copy=False) for x in state)) if op.form else y

    return forward


def gradient_form(op: Operator, whole):
    """`whole` as the VJP of `op`."""

    def vjp(dy, *more):
        count = len(op.outputs) - 1
        last, arguments = more[:count], more[count:]
        g, step = given(op, arguments), op.form == "step"
        last = last or [np.zeros_like(x) for x in (g.S0, g.s0, g.m0)]
        found, made = whole((_in_time(dy, step, 1), *last), g), []
        for name, x in zip(op.inputs, arguments, strict=True):
            if name == "resets":
                made.append(None)
                continue
            gradient = found[f"{name}0" if name in "Ssm" else name]
            if step and name in RANKS:
                gradient = _cut(gradient, 0, RANKS[name])
            made += unbroadcast_each((gradient,), (x,))
        return tuple(made)

    return vjp


def _in_time(x, step: bool, rank: int):
    """The array with an axis of time of length 1, if it is of one step."""
    return x[(..., None, *[slice(None)] * rank)] if step else x


def in_form(op):
    """Turn wrong(right, given) into a program of an operator."""

    def adapt(wrong):
        program = form(op, lambda g: wrong(recurrence, g))
        return lambda right, *args, **statics: program(*args)

    return adapt


def in_gradient_form(op):
    """Turn wrong(right, cotangents, given) into a VJP of an operator."""

    def adapt(wrong):
        vjp = gradient_form(op, lambda cotangents, g: wrong(adjoint, cotangents, g))
        return lambda right, *args, **statics: vjp(*args)

    return adapt


def _same(*x):
    return x


def outer(k, v):
    """k vᵀ."""
    return k[..., :, None] * v[..., None, :]


def recalled(S, q):
    """Sᵀ q."""
    return np.einsum("...np,...n->...p", S, q)


def inner(a, b):
    """Σ a b over the keys."""
    return (a * b).sum(-1)


def scale(now, m):
    """max(log_f + m, i)."""
    return np.maximum(now.log_f + m, now.i)


def gates(now, m, m_next):
    """e^{log_f + m − m'}, e^{i − m'}."""
    return np.exp(now.log_f + m - m_next), np.exp(now.i - m_next)


def updated(now, S, s):
    """f S + g k vᵀ and f s + g k."""
    f, k = now.f[..., None], now.g[..., None] * now.k
    return f[..., None] * S + outer(k, now.v), f * s + k


def divided(num, a, m):
    """num / max(|a|, e^{−m})."""
    return num / np.maximum(np.abs(a), np.exp(-m))[..., None]


def steps_of(g: GivenSteps):
    """The arguments of each step."""
    for t in range(g.q.shape[-2]):
        told = {name: _cut(getattr(g, name), t, rank) for name, rank in RANKS.items()}
        yield SimpleNamespace(**told, t=t, resets=g.resets[..., t])


def recurrence(
    g: GivenSteps,
    *,
    scale=scale,
    gates=gates,
    update=updated,
    divide=divided,
    keep=_same,
    carry=None,
):
    """The recurrence; each keyword replaces a part by a wrong one.

    `scale(now, m)` gives the next m, `gates(now, m, m')` the gates, `update(now, S, s)` the next
    state, `divide(num, a, m)` the output; `keep(S, s, m)` changes what is kept, `carry(now, S, s,
    m)` what comes from the step before.
    """
    S, s, m, y = g.S0, g.s0, g.m0, []
    with np.errstate(all="ignore"):
        for now in steps_of(g):
            if carry is not None:
                S, s, m = carry(now, S, s, m)
            S, s, m = rested(now.resets, S, s, m)
            m_next = scale(now, m)
            now.f, now.g = gates(now, m, m_next)
            now.before = S, s
            S, s = update(now, S, s)
            m = m_next
            S, s, m = keep(S, s, m)
            y.append(divide(recalled(S, now.q), inner(s, now.q), m))
    return np.stack(y, axis=-2), S, s, m


def rested(resets, S, s, m):
    """The state, or zeros where a sequence begins."""
    now = resets[..., None]
    return np.where(now[..., None], 0, S), np.where(now, 0, s), np.where(resets, 0, m)


def but_for(**places):
    """The right program with some of its parts replaced."""
    return lambda right, *args: right(*args, **places)


def output(change):
    """Wrong outputs, change(y, g), with the right state."""

    def program(right, g):
        y, *state = right(g)
        return change(y, g), *state

    return program


def earlier(a, axis=-1):
    """a one step earlier along an axis, with zeros first."""
    late = np.roll(a, 1, axis=axis)
    late[(*(slice(None),) * (a.ndim + axis), slice(0, 1))] = 0
    return late


def adjoint(cotangents, g: GivenSteps, *, sign=np.sign, back=None, change=None, denominator=None):
    """The VJP with m as a constant; each keyword replaces a part by a wrong one.

    `sign(a)` is that of sᵀ q, `denominator(dd, now)` its gradient, `back(now)` gives the cotangents
    (G, h) of the state before a step, `change(now)` wrong gradients of a step by name.
    """
    dy, dS, ds, _ = cotangents
    S, s, m, steps = g.S0, g.s0, g.m0, []
    with np.errstate(all="ignore"):
        for now in steps_of(g):
            now.S_before, now.s_before, m = rested(now.resets, S, s, m)
            now.m_before, now.m = m, scale(now, m)
            now.f, now.g = gates(now, m, now.m)
            S, s = updated(now, now.S_before, now.s_before)
            now.S, now.s, m = S, s, now.m
            steps.append(now)
        G, h, found = dS, ds, []
        for now in reversed(steps):
            _of_step(now, dy[..., now.t, :], G, h, sign, denominator)
            found.insert(0, now.found | (change(now) if change else {}))
            G, h = (now.dS, now.ds) if back is None else back(now)
            G, h, _ = rested(now.resets, G, h, 0 * now.m)
    made = {
        name: np.stack(np.broadcast_arrays(*(step[name] for step in found)), axis=-rank)
        for name, rank in RANKS.items()
    }
    dm = (G * g.S0).sum((-1, -2)) + (h * g.s0).sum(-1)
    return made | {"S0": G, "s0": h, "m0": dm}


def _of_step(now, dy, G, h, sign, denominator):
    """The gradients of one step."""
    a, floor = inner(now.s, now.q), np.exp(-now.m)
    d = np.maximum(np.abs(a), floor)
    y = recalled(now.S, now.q) / d[..., None]
    dnum, dd = dy / d[..., None], -(dy * y).sum(-1) / d
    dd = dd if denominator is None else denominator(dd, now)
    da = np.where(np.abs(a) < floor, 0, dd * sign(a))
    now.G = G + outer(now.q, dnum)
    now.h = h + now.q * da[..., None]
    now.later, now.da, now.dnum, now.dd = (G, h), da, dnum, dd
    now.dS, now.ds = now.f[..., None, None] * now.G, now.f[..., None] * now.h
    dk = now.g[..., None] * (np.einsum("...np,...p->...n", now.G, now.v) + now.h)
    kept = (now.S_before * now.dS).sum((-1, -2)) + (now.s_before * now.ds).sum(-1)
    now.found = {
        "q": np.einsum("...np,...p->...n", now.S, dnum) + now.s * da[..., None],
        "k": dk,
        "v": now.g[..., None] * recalled(now.G, now.k),
        "i": (now.k * dk).sum(-1),
        "log_f": np.where(now.resets, 0, kept),
    }


def in_place_of(name, of):
    """One gradient of each step computed otherwise, of(now)."""
    return but_for(change=lambda now: {name: of(now)})
