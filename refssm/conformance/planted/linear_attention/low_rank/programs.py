"""Building blocks of the planted bugs of delta_dplr: programs with replaceable parts.

A bug is written once, as wrong(right, g) -> y, S with `recurrence` as the right program, or as
wrong(right, dy, dS, g) -> gradients by name with `adjoint`, and planted in the forms.
"""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.linear_attention.programs import outer, recalled

TIMED = ("q", "k", "v", "log_g", "a", "b")


class LowRankGiven(namedtuple("LowRankGiven", (*TIMED, "S0", "resets"))):
    """The arguments of a call; without a state or resets these are zero."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        return LowRankGiven(*(x[..., steps, :] for x in self[:6]), self.S0, self.resets[..., steps])


class LowRankStep(SimpleNamespace):
    """One step: q, k, v, gate, a, b; and in a reverse pass G, the cotangent of the state after."""


def given(op: Operator, arguments) -> LowRankGiven:
    """The arguments of a call, those of one step with an axis of time."""
    told = dict(zip(op.inputs, arguments, strict=True))
    timed = [told[n][..., None, :] if op.form == "step" else told[n] for n in TIMED]
    S, (k, v) = told.get("S", told.get("S0")), timed[1:3]
    resets = told.get("resets", np.zeros(k.shape[-2], bool)) != 0
    shapes = [x.shape[:-2] for x in timed] + [resets.shape[:-1]]
    shapes += [] if S is None else [S.shape[:-2]]
    shape = (*np.broadcast_shapes(*shapes), k.shape[-1], v.shape[-1])
    start = np.zeros(shape, k.dtype) if S is None else np.broadcast_to(S, shape)
    return LowRankGiven(*timed, start, resets)


def form(op: Operator, whole):
    """`whole(given) -> y, S` with the arguments and results of `op`."""

    def forward(*arguments):
        y, S = whole(given(op, arguments))
        kind = np.result_type(*(a for a in arguments if a.dtype.kind == "f"))
        y = (y[..., 0, :] if op.form == "step" else y).astype(kind, copy=False)
        return (y, S.astype(kind, copy=False)) if op.form else y

    return forward


def gradient_form(op: Operator, whole):
    """`whole(dy, dS, given) -> gradients by name` as the VJP of `op`."""

    def vjp(dy, *more):
        dS, arguments = more[: len(op.outputs) - 1], more[len(op.outputs) - 1 :]
        g, step = given(op, arguments), op.form == "step"
        found = dict(whole(dy[..., None, :] if step else dy,
                           dS[0] if dS else np.zeros_like(g.S0), g))  # fmt: skip
        made = []
        for name, x in zip(op.inputs, arguments, strict=True):
            if name == "resets":
                made.append(None)
                continue
            gradient = found["S0" if name == "S" else name]
            gradient = gradient[..., 0, :] if step and name in TIMED else gradient
            made += unbroadcast_each((gradient,), (x,))
        return tuple(made)

    return vjp


def in_form(op):
    """Turn wrong(right, given) into a program of an operator."""

    def adapt(wrong):
        program = form(op, lambda g: wrong(recurrence, g))
        return lambda right, *args, **statics: program(*args)

    return adapt


def in_gradient_form(op):
    """Turn wrong(right, dy, dS, given) into a VJP of an operator."""

    def adapt(wrong):
        vjp = gradient_form(op, lambda dy, dS, g: wrong(adjoint, dy, dS, g))
        return lambda right, *args, **statics: vjp(*args)

    return adapt


def _same(x, *_):
    return x


def updated(now, S):
    """diag(gate) S + b (aᵀ S) + k vᵀ."""
    return now.gate[..., None] * S + outer(now.b, recalled(S, now.a)) + outer(now.k, now.v)


def recurrence(g, *, gates=np.exp, update=updated, keep=_same, carry=_same, read=None):
    """The recurrence; each keyword replaces a part by a wrong one.

    `gates(log_g)` gives the decays, `update(step, S)` the next state; `keep(S)` changes the state
    that is kept, `carry(S, t)` what comes from the step before, and `read(S, before, step)` gives
    the state that the query reads.
    """
    S, y, gate = g.S0, [], gates(g.log_g)
    for t in range(g.q.shape[-2]):
        before = np.where(g.resets[..., t, None, None], 0, carry(S, t))
        parts = {name: getattr(g, name)[..., t, :] for name in ("q", "k", "v", "a", "b")}
        now = LowRankStep(**parts, gate=gate[..., t, :])
        S = keep(update(now, before))
        y.append(recalled(S if read is None else read(S, before, now), now.q))
    return np.stack(y, axis=-2), S


def _forward(g):
    """The states before each step and after it."""
    S, before, after = g.S0, [], []
    for t in range(g.q.shape[-2]):
        before.append(np.where(g.resets[..., t, None, None], 0, S))
        parts = {name: getattr(g, name)[..., t, :] for name in ("k", "v", "a", "b")}
        S = updated(LowRankStep(**parts, gate=np.exp(g.log_g[..., t, :])), before[-1])
        after.append(S)
    return before, after


def adjoint(dy, dS, g, *, back=None, carry=_same, change=lambda parts: {}):
    """The VJP; each keyword replaces a part by a wrong one.

    `back(step)` gives the cotangent of the state before a step from that after it, `carry(G, t)`
    changes it; `change(parts)` gives wrong gradients by name.
    """
    before, after = _forward(g)
    G, cotangents = dS, []
    for t in range(len(after) - 1, -1, -1):
        G = G + outer(g.q[..., t, :], dy[..., t, :])
        cotangents.insert(0, G)
        parts = {name: getattr(g, name)[..., t, :] for name in ("a", "b")}
        now = LowRankStep(**parts, gate=np.exp(g.log_g[..., t, :]), G=G)
        G = (back or _back)(now)
        G = np.where(g.resets[..., t, None, None], 0, carry(G, t))
    before, after, cotangents = (
        np.stack(np.broadcast_arrays(*x), axis=-3) for x in (before, after, cotangents)
    )
    told = SimpleNamespace(before=before, S=after, G=cotangents, dy=dy, g=g)
    told.gate = np.exp(g.log_g)
    told.z, told.w = recalled(before, g.a), recalled(cotangents, g.b)
    told.found = _gradients(told) | {"S0": G}
    return told.found | change(told)


def _back(now):
    """diag(gate) G + a (bᵀ G)."""
    return now.gate[..., None] * now.G + outer(now.a, recalled(now.G, now.b))


def applied(S, x):
    """S x."""
    return np.einsum("...np,...p->...n", S, x)


def _gradients(p):
    dlog_g = (p.gate[..., None] * p.before * p.G).sum(-1)
    return {
        "q": applied(p.S, p.dy),
        "k": applied(p.G, p.g.v),
        "v": recalled(p.G, p.g.k),
        "log_g": np.where(p.g.resets[..., None], 0, dlog_g),
        "a": applied(p.before, p.w),
        "b": applied(p.G, p.z),
    }


def in_place_of(name, of):
    """One gradient computed otherwise, of(parts)."""
    return lambda right, *args: right(*args, change=lambda parts: {name: of(parts)})
