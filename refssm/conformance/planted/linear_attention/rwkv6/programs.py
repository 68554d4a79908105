"""Programs of RWKV-6 with replaceable parts, and its operators from one function of all arguments.

A bug is written once, as wrong(right, g) -> y, S with `recurrence` as the right program, or as
wrong(right, dy, dS, g) -> gradients by name with `adjoint`, and planted in the named operators.
"""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import at, unbroadcast_each

TIMED = ("r", "k", "v", "log_w")


class Arguments(namedtuple("Arguments", "r k v log_w u S0 resets")):
    """The arguments of all forms; of a step they have one time, without a state it is zero."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        timed = {name: getattr(self, name)[..., steps, :] for name in TIMED}
        return self._replace(resets=self.resets[..., steps], **timed)


def _arguments(op: Operator, arrays) -> Arguments:
    told = dict(zip(op.inputs, arrays, strict=True))
    r, k, v, log_w = (told[n][..., None, :] if op.form == "step" else told[n] for n in TIMED)
    S = told.get("S", told.get("S0"))
    resets = told.get("resets", np.zeros(r.shape[-2], bool)) != 0
    batch = np.broadcast_shapes(
        *(x.shape[:-2] for x in (r, k, v, log_w)),
        told["u"].shape[:-1],
        resets.shape[:-1],
        () if S is None else S.shape[:-2],
    )
    shape = (*batch, k.shape[-1], v.shape[-1])
    start = np.zeros(shape, k.dtype) if S is None else np.broadcast_to(S, shape)
    return Arguments(r, k, v, log_w, told["u"], start, resets)


def form(op: Operator, whole):
    """`whole` with the arguments and results of `op`."""

    def forward(*arrays):
        y, S = whole(_arguments(op, arrays))
        kind = np.result_type(*(a for a in arrays if a.dtype.kind == "f"))
        y = (y[..., 0, :] if op.form == "step" else y).astype(kind, copy=False)
        return (y, S.astype(kind, copy=False)) if op.form else y

    return forward


def gradient_form(op: Operator, whole):
    """`whole` as the VJP of `op`."""
    step = op.form == "step"

    def vjp(dy, *more):
        dS, arrays = more[: len(op.outputs) - 1], more[len(op.outputs) - 1 :]
        g = _arguments(op, arrays)
        dy = dy[..., None, :] if step else dy
        found = dict(whole(dy, dS[0] if dS else np.zeros_like(g.S0), g))
        found["S"] = found["S0"]
        made = []
        for name, x in zip(op.inputs, arrays, strict=True):
            if name == "resets":
                made.append(None)
                continue
            own = found[name][..., 0, :] if step and name in TIMED else found[name]
            made += unbroadcast_each((own,), (x,))
        return tuple(made)

    return vjp


def in_form(op):
    """Turn wrong(right, arguments) into a program of an operator, by chunks also step by step."""

    def adapt(wrong):
        program = form(op, lambda g: wrong(recurrence, g))
        return lambda right, *arrays, **statics: program(*arrays)

    return adapt


def in_gradient_form(op):
    """Turn wrong(right, dy, dS, arguments) into a VJP of an operator."""

    def adapt(wrong):
        vjp = gradient_form(op, lambda dy, dS, g: wrong(adjoint, dy, dS, g))
        return lambda right, *arrays, **statics: vjp(*arrays)

    return adapt


class OneStep(SimpleNamespace):
    """One step: r, k, v, u, the decays a, new = k vᵀ, and whether it is the first one."""


def _at(g: Arguments, a, t) -> OneStep:
    r, k, v = (x[..., t, :] for x in (g.r, g.k, g.v))
    new = k[..., :, None] * v[..., None, :]
    a, u = a[..., t, :, None], g.u[..., :, None]
    return OneStep(r=r, k=k, v=v, a=a, u=u, new=new, first=t == 0)


def _same(x, *_):
    return x


def _seen(now, S):
    """S + diag(u) k vᵀ."""
    return S + now.u * now.new


def _updated(now, S):
    """diag(a) S + k vᵀ."""
    return now.a * S + now.new


def recurrence(g, *, gates=np.exp, read=_seen, update=_updated, keep=_same, carry=_same):
    """The recurrence; each keyword replaces a part by a wrong one.

    `gates(log_w)` gives the decays; `read(now, S)` is the matrix that r reads, `update(now, S)` the
    next state; `keep(S)` changes the state that is kept, `carry(S, t)` what comes from before.
    """
    S, y, a = g.S0, [], gates(g.log_w)
    for t in range(g.r.shape[-2]):
        S = np.where(g.resets[..., t, None, None], 0, carry(S, t))
        now = _at(g, a, t)
        y.append(np.einsum("...np,...n->...p", read(now, S), now.r))
        S = keep(update(now, S))
    return np.stack(np.broadcast_arrays(*y), axis=-2), S


def but_for(**places):
    """The right program with some of its parts replaced."""
    return lambda right, *args: right(*args, **places)


def output(change):
    """Wrong outputs, change(y, g), with the right state."""

    def program(right, g):
        y, S = right(g)
        return change(y, g), S

    return program


def state_as(change):
    """The right outputs, with the last state for changed arguments, change(g)."""
    return lambda right, g: (right(g)[0], right(change(g))[1])


def turned_if_square(S):
    """The state transposed if p = n."""
    return np.swapaxes(S, -1, -2) if S.shape[-1] == S.shape[-2] else S


def adjoint(dy, dS, g, *, back=None, carry=_same, change=lambda parts: {}):
    """The VJP; each keyword replaces a part by a wrong one.

    `back(now, R, G)` gives the cotangent of the state before a step from that after it and that of
    what r reads, R = r dyᵀ; `carry(G, t)` changes it; `change(parts)` gives wrong gradients.
    """
    S, a, before, steps = g.S0, np.exp(g.log_w), [], []
    for t in range(g.r.shape[-2]):
        before.append(np.where(g.resets[..., t, None, None], 0, S))
        steps.append(_at(g, a, t))
        S = _updated(steps[-1], before[-1])
    G, Gs, Rs = dS, [], []
    for t in range(len(steps) - 1, -1, -1):
        now = steps[t]
        R = now.r[..., :, None] * dy[..., t, None, :]
        Gs.insert(0, G)
        Rs.insert(0, R)
        G = carry(R + now.a * G if back is None else back(now, R, G), t)
        G = np.where(g.resets[..., t, None, None], 0, G)
    parts = SimpleNamespace(S=_stacked(before), G=_stacked(Gs), R=_stacked(Rs), dy=dy, dS=dS, g=g)
    parts.a, parts.u = a[..., None], g.u[..., None, :, None]
    parts.new = g.k[..., :, None] * g.v[..., None, :]
    parts.found = gradients_of(parts) | {"S0": G}
    return parts.found | change(parts)


def gradients_of(p):
    """The gradients of all arguments but the state, from the parts of `adjoint`."""
    H = p.G + p.u * p.R
    dlog_w = (p.a * p.S * p.G).sum(-1)
    return {
        "r": np.einsum("...np,...p->...n", p.S + p.u * p.new, p.dy),
        "k": np.einsum("...np,...p->...n", H, p.g.v),
        "v": np.einsum("...np,...n->...p", H, p.g.k),
        "log_w": np.where(p.g.resets[..., None], 0, dlog_w),
        "u": (p.new * p.R).sum((-1, -3)),
    }


def in_place_of(name, of):
    """One gradient computed otherwise, of(parts)."""
    return but_for(change=lambda parts: {name: of(parts)})


def _stacked(xs):
    return np.stack(np.broadcast_arrays(*xs), axis=-3)


def earlier(x):
    """x one step earlier, with zeros first."""
    return np.concatenate([0 * at(x, slice(1), -2), at(x, slice(-1), -2)], axis=-2)
