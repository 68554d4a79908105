"""Planted bugs in the gradients of diagonal systems."""

from typing import NamedTuple

import numpy as np

from refssm.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import float16
from refssm.conformance.planted.planting_old import Planting
from refssm.conformance.planted.scan.base import right


class Through(NamedTuple):
    """Gradients of what goes through the states; da is (…, l, n)."""

    a: np.ndarray
    B: np.ndarray
    C: np.ndarray
    u: np.ndarray
    x0: np.ndarray


def through(
    dy, dx, a, B, C, u, x0, *, conj_a=np.conj, conj_x=np.conj, conj_read=np.conj, conj_u=np.conj,
    conj_B=np.conj, conj_C=np.conj, shift=1, before=1, read_before=0, forget=0, cast=None,
    dx_at=-1, rest=False,
):  # fmt: skip
    """The adjoint with its parts exchangeable: what is conjugated, and from which step."""
    b = u @ B.mT
    x = right(a, b, 0 * x0 if rest else x0)
    start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
    states, a = np.concatenate([start, x], axis=-2), np.broadcast_to(a, x.shape)
    back, length = dy @ conj_C(C), x.shape[-2]
    kind = np.result_type(back, dx, x)
    g, carried = np.empty(x.shape, kind), np.zeros_like(x[..., 0, :], kind)
    last = length - 1 if dx_at == -1 else dx_at
    for k in range(length - 1, -1, -1):
        if forget and (k + 1) % forget == 0:
            carried = 0 * carried
        g[..., k, :] = carried = back[..., k, :] + carried + (dx if k == last else 0)
        decay = conj_a(a[..., min(k + 1 - shift, length - 1), :])
        carried = decay * carried if cast is None else cast(decay * carried)
    da = conj_x(states[..., 1 - before : length + 1 - before, :]) * g
    seen = states[..., 1 - read_before : length + 1 - read_before, :]
    return Through(da, g.mT @ conj_u(u), dy.mT @ conj_read(seen), g @ conj_B(B), carried)


def total(da):
    """Σ_k da_k."""
    return da.sum(-2)


class Parts(NamedTuple):
    """What a VJP of any of the operators is made of, to be replaced one at a time."""

    how: dict
    over_time: object = total
    factors: tuple = (2, 1, 1)  # of dy through the states and past them, and of dx, if real
    skipped: bool = True
    joined: object = lambda past, future: past + future


def built_vjp(op, parts: Parts):
    """The VJP of a diagonal system, with parts exchanged."""
    stateful, both = op.name.endswith("_stateful"), "bidirectional" in op.name
    factors = parts.factors if "real" in op.name else (1, 1, 1)

    def vjp(dy, *args):
        a, B, C, D, u, *x0 = args[1:] if stateful else args
        a_k = a if "varying" in op.name else a[..., None, :]
        start = x0[0] if x0 else np.zeros_like((u @ B.mT)[..., 0, :])
        dx = factors[2] * args[0] if stateful else 0 * start
        pull = _both_ways if both else through
        g = pull(factors[0] * dy, dx, a_k, B, C, u, start, **parts.how)
        da, skip = g.a if a_k is a else parts.over_time(g.a), factors[1] * dy
        du = g.u + (skip @ D.conj() if parts.skipped else 0)
        gradients = (da, g.B, g.C, skip.mT @ u.conj(), du, *([g.x0] if x0 else []))
        return tuple(
            unbroadcast(c, x) for c, x in zip(gradients, (a, B, C, D, u, *x0), strict=True)
        )

    return vjp


def _both_ways(dy, dx, a, B, C, u, x0, *, joined=None, **how):
    """From the past, and with time reversed from the future."""
    n, flip = a.shape[-1], (..., slice(None, None, -1), slice(None))
    past = through(dy, dx, a, B, C[..., :n], u, x0, **how)
    future = through(dy[flip], dx, a, B, C[..., n:], u[flip], x0, **how)
    future = future._replace(u=future.u[flip])
    past, future = joined(past, future) if joined else (past, future)
    dC = np.concatenate([past.C, future.C], axis=-1)
    return Through(past.a + future.a, past.B + future.B, dC, past.u + future.u, past.x0)


def _same(x):
    return x


COMPLEX = {
    "decay_not_conjugated": ("a for a* in the adjoint", {"conj_a": _same}),
    "state_not_conjugated": ("x for x* in da", {"conj_x": _same}),
    "read_not_conjugated": ("x for x* in dC", {"conj_read": _same}),
    "input_matrix_not_conjugated": ("B for B* in du", {"conj_B": _same}),
    "output_matrix_not_conjugated": ("C for C* in the adjoint", {"conj_C": _same}),
}
REAL = {
    "state_one_late": ("da with x_k for x_{k-1}", {"before": 0}),
    "read_one_early": ("dC with x_{k-1} for x_k", {"read_before": 1}),
    "carry_lost_64": ("the adjoint's carry lost at chunks of 64", {"forget": 64}),
    "carry_lost_16": ("the adjoint's carry lost at chunks of 16", {"forget": 16}),
    "recurrence_forgotten": ("g_k = Cᴴ dy_k", {"forget": 1}),
    "float16": ("the adjoint carried in float16", {"cast": float16}),
}
STATEFUL = {
    "last_state_at_first_step": ("the last state's cotangent at the first step", {"dx_at": 0}),
    "start_ignored": ("the states of da and dC from rest", {"rest": True}),
}
DIRECTIONS = {
    "backward_half_dropped": (
        "only the forward half sends gradients to a, B and u",
        lambda p, q: (p, q._replace(a=0 * q.a, B=0 * q.B, u=0 * q.u)),
    ),
    "not_turned_back": (
        "du of the backward half not reversed back in time",
        lambda p, q: (p, q._replace(u=q.u[..., ::-1, :])),
    ),
    "halves_exchanged": (
        "the halves of dC exchanged",
        lambda p, q: (p._replace(C=q.C), q._replace(C=p.C)),
    ),
}


def plant_gradients(p: Planting) -> None:
    """All those that the operator can have."""

    def planted(name, what, how, dtype="", **parts):
        p.gradient(name, what, dtype)(built_vjp(p.op, Parts(how, **parts)))

    stateful, varying = p.op.name.endswith("_stateful"), "varying" in p.op.name
    for name, (what, how) in (REAL | (STATEFUL if stateful else {})).items():
        planted(name, what, how)
    for name, (what, how) in COMPLEX.items():
        planted(name, what, how, "complex64")
    planted("skip_forgotten", "du without Dᴴ dy", {}, skipped=False)
    if varying:
        planted("decay_one_early", "a_k for a_{k+1} in the adjoint", {"shift": 0})
    else:
        planted("last_step_only", "da of the last step", {}, over_time=lambda da: da[..., -1, :])
        planted("mean_over_time", "da averaged over time", {}, over_time=lambda da: da.mean(-2))
    if "real" not in p.op.name:
        planted("input_not_conjugated", "u for u* in dB", {"conj_u": _same}, "complex64")
    else:
        planted("pairs_once", "no factor 2", {}, factors=(1, 1, 1))
        planted("skip_doubled", "the factor 2 in dD and its part of du", {}, factors=(2, 2, 1))
    if "real" in p.op.name and stateful:
        planted("state_doubled", "the factor 2 on the last state", {}, factors=(2, 1, 2))
    for name, (what, joined) in (DIRECTIONS if "bidirectional" in p.op.name else {}).items():
        planted(name, what, {"joined": joined})
    _plant_ends(p, stateful)
    _plant_batch(p, stateful)


def _plant_ends(p: Planting, stateful: bool) -> None:
    """Right gradients changed afterwards, or of changed cotangents."""
    vjp = p.right_vjp
    p.gradient("as_jax", "the conjugate convention", "complex64")(
        lambda *args: tuple(g.conj() for g in vjp(*args))
    )
    p.changed_gradient("sign", "da with the other sign", a=lambda g, _: -g)
    p.changed_gradient("skip_missing", "dD = 0", D=lambda g, _: 0 * g)
    p.changed_gradient("one_row", "dC of the first output for all", C=lambda g, _: 0 * g + g[:1])

    if stateful:
        p.changed_gradient("start_missing", "dx0 = 0", x0=lambda g, _: 0 * g)
        p.gradient("last_state_dropped", "the last state's cotangent dropped")(
            lambda dy, dx, *args: vjp(dy, 0 * dx, *args)
        )
        p.gradient("start_undecayed", "dx0 = g_0")(
            lambda dy, dx, *args: (*vjp(dy, dx, *args)[:-1], _undecayed(p, dy, dx, *args))
        )


def _plant_batch(p: Planting, stateful: bool) -> None:
    vjp = p.right_vjp

    @p.gradient("first_of_batch", "dB of the first sequence only, though B is shared by all")
    def _(*args):
        ends = 2 if stateful else 1
        first = [x[:1] for x in args[:ends]] + [
            x[:1] if "b" in axes else x
            for x, axes in zip(args[ends:], p.op.batch_axes, strict=True)
        ]
        a, _, *others = vjp(*args)
        return a, vjp(*first)[1], *others


def _undecayed(p, dy, dx, a, B, C, D, u, x0):
    """g_0: the decay of the first step taken as one, as if x0 were an input of it."""
    a_k = a if "varying" in p.op.name else np.broadcast_to(a, (*u.shape[:-1], a.shape[-1]))
    first = np.concatenate([0 * a_k[..., :1, :] + 1, a_k[..., 1:, :]], axis=-2)
    factor = 2 if "real" in p.op.name else 1
    return unbroadcast(through(factor * dy, dx, first, B, C, u, x0).x0, x0)
