"""Building blocks of the planted bugs of Mamba-3: programs with replaceable parts.

A bug is written once, as wrong(right, g) -> y, phase, S, key, value with `recurrence` as the right
program, or as wrong(right, cotangents, g) -> gradients by name with `adjoint`, for `TurningSteps`.
"""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each

# core axes; the first is time
RANKS = {"q": 2, "k": 2, "v": 2, "log_g": 1, "dt": 1, "trap": 1, "angles": 2}
PARTS = {"phase": 1, "S": 2, "key": 1, "value": 1}
TURN = 2 * np.pi


class TurningSteps(namedtuple("TurningSteps", [*RANKS, *(f"{name}0" for name in PARTS), "resets"])):
    """The arguments of all forms, without a state or resets zeros."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        parts = {name: _cut(getattr(self, name), steps, rank) for name, rank in RANKS.items()}
        return self.but(**parts, resets=self.resets[..., steps])

    @property
    def state(self):
        """The first state."""
        return [getattr(self, f"{name}0") for name in PARTS]

    def starting(self, state):
        """The same arguments from another state."""
        return self.but(**{f"{name}0": x for name, x in zip(PARTS, state, strict=True)})


def _cut(x, steps, rank):
    return x[(..., steps, *[slice(None)] * (rank - 1))]


def given(op: Operator, arguments) -> TurningSteps:
    """The arguments of a call; without a state or resets these are zero."""
    told = dict(zip(op.inputs, arguments, strict=True))
    step = op.form == "step"
    timed = [_in_time(told[name], step, rank - 1) for name, rank in RANKS.items()]
    parts = [told.get(name, told.get(f"{name}0")) for name in PARTS]
    resets = told.get("resets", np.zeros(timed[0].shape[-2], bool)) != 0
    cores = (*RANKS.values(), 1, *PARTS.values())
    all_of_it = zip((*timed, resets, *parts), cores, strict=True)
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - r] for x, r in all_of_it if x is not None))
    n, p, pairs, kind = (*(timed[i].shape[-1] for i in (1, 2, 6)), timed[1].dtype)
    starts = [
        np.zeros((*batch, *core), kind) if x is None else np.broadcast_to(x, (*batch, *core))
        for x, core in zip(parts, ((pairs,), (n, p), (n,), (p,)), strict=True)
    ]
    return TurningSteps(*timed, *starts, resets)


def form(op: Operator, whole):
    """`whole` with the arguments and results of `op`."""

    def forward(*arguments):
        y, *state = whole(given(op, arguments))
        kind = np.result_type(*(a for a in arguments if a.dtype.kind == "f"))
        y = (y[..., 0, :] if op.form == "step" else y).astype(kind, copy=False)
        batch = y.shape[: y.ndim - len(op.output_dims[0])]
        pairs = zip(state, PARTS.values(), strict=True)
        parts = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - r :])) for x, r in pairs]
        return (y, *(x.astype(kind) for x in parts)) if op.form else y

    return forward


def gradient_form(op: Operator, whole):
    """`whole` as the VJP of `op`."""

    def vjp(dy, *more):
        count = len(op.outputs) - 1
        last, arguments = more[:count], more[count:]
        g, step = given(op, arguments), op.form == "step"
        last = last or [np.zeros_like(x) for x in g.state]
        found, made = whole((_in_time(dy, step, 1), *last), g), []
        for name, x in zip(op.inputs, arguments, strict=True):
            if name == "resets":
                made.append(None)
                continue
            gradient = found[f"{name}0" if name in PARTS else name]
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


def outer(k, v):
    """k vᵀ."""
    return k[..., :, None] * v[..., None, :]


def rate(now):
    """π tanh(angles) Δ."""
    return (np.pi * np.tanh(now.angles) * now.dt[..., None]).astype(now.angles.dtype)


def within_turn(phase):
    """An angle from 0 to 2π."""
    return (phase - TURN * np.floor(phase / TURN)).astype(phase.dtype)


def rotated(x, phase):
    """Neighbours turned by their angle."""
    c, s, even, odd = np.cos(phase), np.sin(phase), x[..., ::2], x[..., 1::2]
    both = np.stack([even * c - odd * s, even * s + odd * c], axis=-1)
    return both.reshape(*both.shape[:-2], -1)


def turns_back(x, phase):
    """Neighbours turned back."""
    return rotated(x, -phase)


def share(trap):
    """σ(trap)."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-trap))


def weights(now):
    """α, β and γ."""
    a, own = np.exp(now.log_g), share(now.trap)
    return a, (1 - own) * now.dt * a, own * now.dt


def updated(now, S, key, value):
    """α S + β key valueᵀ + γ k vᵀ, of turned keys."""
    before = now.before[..., None] * key
    return (
        now.a[..., None, None] * S
        + outer(before, value)
        + outer(now.now[..., None] * now.k_t, now.v)
    )


def steps_of(g: TurningSteps):
    """The arguments of each step."""
    for t in range(g.q.shape[-2]):
        told = {name: _cut(getattr(g, name), t, rank) for name, rank in RANKS.items()}
        yield SimpleNamespace(**told, t=t, resets=g.resets[..., t])


def rested(resets, *state):
    """The state, or zeros where a sequence begins."""
    pairs = zip(state, PARTS.values(), strict=True)
    return [np.where(resets[(..., *[None] * rank)], 0, x) for x, rank in pairs]


def recurrence(g: TurningSteps, *, move=rate, wrap=within_turn, turn=rotated, turn_q=None,
               weigh=weights, update=updated, keep=None, carry=None, read=None):  # fmt: skip
    """The recurrence; each keyword replaces a part by a wrong one.

    `move(now)` is the change of the angles, `wrap(phase)` what is kept of them, `turn(x, phase)`
    and `turn_q` turn keys and queries, `weigh(now)` gives α, β, γ, `update(now, S, key, value)`
    the next S, `read(now, S)` the output; `keep(now, state)` changes what is kept, `carry(now,
    state)` what comes from the step before.
    """
    state, y = g.state, []
    with np.errstate(all="ignore"):
        for now in steps_of(g):
            if carry is not None:
                state = carry(now, *state)
            now.phase, S, key, value = rested(now.resets, *state)
            now.phase = wrap(now.phase + move(now))
            now.q_t, now.k_t = (turn_q or turn)(now.q, now.phase), turn(now.k, now.phase)
            now.a, now.before, now.now = weigh(now)
            now.S_before, now.key, now.value = S, key, value
            S = update(now, S, key, value)
            y.append(np.einsum("...np,...n->...p", S, now.q_t) if read is None else read(now, S))
            state = now.phase, S, now.k_t, now.v
            state = state if keep is None else keep(now, *state)
    return np.stack(y, axis=-2), *state


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


def moment(x, dx):
    """x_0 dx_1 − x_1 dx_0."""
    return x[..., ::2] * dx[..., 1::2] - x[..., 1::2] * dx[..., ::2]


def adjoint(cotangents, g: TurningSteps, *, back=None, change=None, moment=moment):
    """The VJP; each keyword replaces a part by a wrong one.

    `back(now)` gives the cotangents (dphase, dS, dkey, dvalue) of the state before a step,
    `change(now)` wrong gradients of a step by name, `moment` the cotangent of an angle.
    """
    dy, *carried = cotangents
    steps, state = [], g.state
    with np.errstate(all="ignore"):
        for now in steps_of(g):
            now.phase, now.S_before, now.key, now.value = rested(now.resets, *state)
            now.phase = within_turn(now.phase + rate(now))
            now.q_t, now.k_t = rotated(now.q, now.phase), rotated(now.k, now.phase)
            now.a, now.before, now.now = weights(now)
            now.S = updated(now, now.S_before, now.key, now.value)
            state = now.phase, now.S, now.k_t, now.v
            steps.append(now)
        found = []
        for now in reversed(steps):
            _of_step(now, dy[..., now.t, :], carried, moment)
            found.insert(0, now.found | (change(now) if change else {}))
            carried = rested(now.resets, *(now.carried if back is None else back(now)))
    made = {
        name: np.stack(np.broadcast_arrays(*(step[name] for step in found)), axis=-rank)
        for name, rank in RANKS.items()
    }
    return made | {f"{name}0": x for name, x in zip(PARTS, carried, strict=True)}


def _of_step(now, dy, carried, moment):
    """The gradients of one step."""
    now.later = dphase, dS, dkey, dvalue = carried
    G = now.G = outer(now.q_t, dy) + dS
    own, late = share(now.trap), 1 - share(now.trap)
    of_v, of_value = ((G @ x[..., None])[..., 0] for x in (now.v, now.value))
    w, b = (now.k_t * of_v).sum(-1), (now.key * of_value).sum(-1)
    dq = (now.S @ dy[..., None])[..., 0]
    dk = dkey + now.now[..., None] * of_v
    now.dq_t, now.dk_t, now.w, now.b = dq, dk, w, b
    dphase = now.dphase = dphase + moment(now.q_t, dq) + moment(now.k_t, dk)
    t = np.tanh(now.angles)
    pi = now.angles.dtype.type(np.pi)
    back = now.before[..., None]
    now.carried = (
        dphase, now.a[..., None, None] * G, back * of_value,
        back * np.einsum("...np,...n->...p", G, now.key),
    )  # fmt: skip
    decayed = now.a * (now.S_before * G).sum((-1, -2)) + now.before * b
    now.found = {
        "q": rotated(dq, -now.phase),
        "k": rotated(dk, -now.phase),
        "v": dvalue + now.now[..., None] * np.einsum("...np,...n->...p", G, now.k_t),
        "log_g": np.where(now.resets, 0, decayed),
        "dt": own * w + late * now.a * b + pi * (t * dphase).sum(-1),
        "trap": own * late * now.dt * (w - now.a * b),
        "angles": pi * (1 - t * t) * now.dt[..., None] * dphase,
    }


def in_place_of(name, of):
    """One gradient of each step computed otherwise, of(now)."""
    return but_for(change=lambda now: {name: of(now)})
