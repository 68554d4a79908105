"""Gradients of selective scans with exchangeable parts, to plant a bug in one of them."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from refssm.broadcasting import unbroadcast_each
from refssm.conformance.honest.selective_scan.back import sigmoid
from refssm.conformance.honest.selective_scan.forms import batch_of, rest, softplus
from refssm.conformance.planted.planting import instead

NAMES = ("u", "dt", "A", "B", "C", "x0")


def star(p, name):
    """The conjugate of an argument or a state, unless the bug is that it is not."""
    value = getattr(p, name)
    return value if name in p.plain else np.conj(value)


def pieces(dy, dx, u, dt, A, B, C, x0, resets, plain=(), after=0, forget=0, cast=None):
    """All states and cotangents g_k = C* dy + a_{k+1+after}* g_{k+1}, with the axes of all."""
    batch, (l, n) = batch_of(u, dt, A, B, C, x0), B.shape[-2:]
    p = SimpleNamespace(plain=plain, dy=np.broadcast_to(dy, (*batch, l))[..., None], dx=dx)
    p.u, p.dt = (np.broadcast_to(v, (*batch, l))[..., None] for v in (u, dt))
    p.A = np.broadcast_to(A[..., None, :], (*batch, 1, n))
    p.B, p.C = (np.broadcast_to(v, (*batch, l, n)) for v in (B, C))
    p.x0 = np.broadcast_to(x0, (*batch, n))
    kind = np.result_type(dy, dx, u, dt, A, B, C, x0)
    gone = np.zeros((l, 1), bool) if resets is None else resets[..., None]
    p.a = np.where(gone, 0, np.exp(p.dt * p.A)).astype(kind)
    p.x, p.before, p.g = (np.empty((*batch, l, n), kind) for _ in range(3))
    state, carried = p.x0, np.broadcast_to(dx, (*batch, n)).astype(kind)
    for k in range(l):
        p.before[..., k, :] = state
        state = p.a[..., k, :] * state + (p.dt * p.u * p.B)[..., k, :]
        p.x[..., k, :] = state
    back = star(p, "a")
    for k in range(l - 1, -1, -1):
        carried = cast(carried) if cast else carried
        p.g[..., k, :] = (star(p, "C") * p.dy)[..., k, :] + carried
        carried = back[..., min(k + after, l - 1), :] * p.g[..., k, :]
        carried = 0 * carried if forget and k and k % forget == 0 else carried
    p.first, p.past = carried, star(p, "before") if "x" not in plain else p.before
    p.e = back * p.past * p.g
    return p


RIGHT = {
    "u": lambda p: (p.dt * star(p, "B") * p.g).sum(-1),
    "dt": lambda p: (star(p, "u") * star(p, "B") * p.g + star(p, "A") * p.e).sum(-1),
    "A": lambda p: (p.dt * p.e).sum(-2),
    "B": lambda p: p.dt * star(p, "u") * p.g,
    "C": lambda p: star(p, "x") * p.dy,
    "x0": lambda p: p.first,
}
GATED = {
    "ds": lambda q: q.gate * q.dy,
    "dz": lambda q: q.s.conj() * q.dy * (q.open + q.gate * (1 - q.open)),
    "D": lambda q: (q.u.conj() * q.ds).sum(-1),
    "skip": lambda q: q.D[..., None].conj() * q.ds,
    "slope": lambda q: sigmoid(q.v),
    "bias": lambda q: q.ddt.sum(-1),
}


def selective_back(dy, dx, u, dt, A, B, C, x0, resets, how):
    """Gradients at every step of (u, dt, A, B, C, x0)."""
    formulas = RIGHT | {name: f for name, f in how.items() if name in RIGHT}
    options = {k: v for k, v in how.items() if k in ("plain", "after", "forget", "cast")}
    p = pieces(dy, dx, u, dt, A, B, C, x0, resets, **options)
    return tuple(formulas[name](p) for name in NAMES)


def mamba_back(dy, dx, u, dt, A, B, C, D, z, dt_bias, x0, resets, how):
    """Gradients at every step of (u, dt, A, B, C, D, z, dt_bias, x0)."""
    f = GATED | {name: g for name, g in how.items() if name in GATED}
    q = SimpleNamespace(dy=dy, u=u, D=D, z=z, v=dt + dt_bias[..., None], open=sigmoid(z))
    q.step, q.gate = softplus(q.v), z * q.open
    still = pieces(0 * dy, 0 * dx, u, q.step, A, B, C, x0, resets)
    q.y = (C * still.x).sum(-1)
    q.s = q.y + D[..., None] * u
    q.ds = f["ds"](q)
    du, dstep, dA, dB, dC, dx0 = selective_back(q.ds, dx, u, q.step, A, B, C, x0, resets, how)
    q.ddt = dstep * f["slope"](q)
    return du + f["skip"](q), q.ddt, dA, dB, dC, f["D"](q), f["dz"](q), f["bias"](q), dx0


def changed(**how):
    """The gradient with formulas of RIGHT and GATED, options of `pieces`, or `fold` exchanged."""
    return SimpleNamespace(**how)


def vjp_as(name: str, wrong) -> Callable:
    """What is `changed` as a VJP of one operator; any other program changes the right VJP."""
    return wrong if callable(wrong) else instead(vjp_of(name, vars(wrong)))


def vjp_of(name, how):
    """The VJP of one operator, with `how` in it; `fold` takes the place of `unbroadcast_each`."""
    back = mamba_back if name.startswith("mamba") else selective_back
    fold = how.get("fold", unbroadcast_each)

    def scan(dy, *args):
        start = rest(*args[:5])
        return fold(back(dy, start, *args, start, None, how)[:-1], args)

    def stateful(dy, dx, *args):
        return fold(back(dy, dx, *args, None, how), args)

    def packed(dy, *args):
        *others, resets = args
        start = rest(*args[:5])
        return *fold(back(dy, start, *others, start, resets, how)[:-1], others), None

    def step(dy, dx, u, dt, A, B, C, *others):
        others = [v[..., None] if i == 1 and len(others) > 1 else v for i, v in enumerate(others)]
        alone = (u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :], *others)
        wanted = zip(stateful(dy[..., None], dx, *alone), alone, strict=True)
        along = {0: -1, 1: -1, 3: -2, 4: -2} | ({6: -1} if len(others) > 1 else {})
        return tuple(
            np.squeeze(g, along[i]) if i in along else g for i, (g, _) in enumerate(wanted)
        )

    forms = {"scan": scan, "stateful": stateful, "packed": packed, "step": step}
    return forms[name.rpartition("_")[2]]
