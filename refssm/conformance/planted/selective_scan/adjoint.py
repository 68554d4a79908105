"""VJPs of selective scans with parts that a planted bug can replace."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.planting import instead
from refssm.conformance.planted.selective_scan.forms import rest, sigmoid, softplus
from refssm.conformance.planted.selective_scan.right import discrete, segmented


def star(p, name):
    """The conjugate of an argument or a state, unless `p.plain` has its name."""
    value = getattr(p, name)
    return value if name in p.plain else np.conj(value)


def pieces(dy, dx, u, dt, A, B, C, x0, resets, plain=(), after=0, forget=0, cast=lambda g: g):
    """All states and cotangents g_k = C* dy + a_{k+1+after}* g_{k+1}, with the axes of all."""
    l = B.shape[-2]
    resets = np.zeros(l, bool) if resets is None else resets
    p = SimpleNamespace(plain=plain, dx=dx, shapes={"A": A.shape, "B": B.shape, "C": C.shape})
    p.dy, p.u, p.dt = dy[..., None], u[..., None], dt[..., None]
    p.A, p.B, p.C, p.not_last = A[..., None, :], B, C, np.arange(l)[:, None] < l - 1
    kind = np.result_type(dy, dx, u, dt, A, B, C, x0)
    a, b = discrete(u, dt, A, B, C, x0)
    p.a, p.x = np.where(resets[..., None], 0, a).astype(kind), segmented(a, b, x0, resets)
    start = np.broadcast_to(x0[..., None, :], p.x[..., :1, :].shape)
    p.before = np.concatenate([start, p.x[..., :-1, :]], axis=-2)
    p.g, carried = np.empty(p.x.shape, kind), np.broadcast_to(dx, p.x[..., 0, :].shape).astype(kind)
    back, sent = star(p, "a"), star(p, "C") * p.dy
    for k in range(l - 1, -1, -1):
        p.g[..., k, :] = sent[..., k, :] + cast(carried)
        carried = back[..., min(k + after, l - 1), :] * p.g[..., k, :]
        carried = 0 * carried if forget and k and k % forget == 0 else carried
    p.first, p.past = carried, p.before if "x" in plain else np.conj(p.before)
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
AROUND = {
    "ds": lambda q: q.gate * q.dy,
    "dz": lambda q: q.s.conj() * q.dy * (q.open + q.gate * (1 - q.open)),
    "D": lambda q: (q.u.conj() * q.ds).sum(-1),
    "skip": lambda q: q.D[..., None].conj() * q.ds,
    "slope": lambda q: sigmoid(q.v),
    "bias": lambda q: q.ddt.sum(-1),
}
changed = SimpleNamespace  # formulas of RIGHT and AROUND exchanged, or options of `pieces`


def selective_back(how, *args):
    """Gradients at every step of (u, dt, A, B, C, x0)."""
    p = pieces(*args, **{k: v for k, v in how.items() if k not in RIGHT | AROUND})
    return tuple(how.get(name, right)(p) for name, right in RIGHT.items())


def mamba_back(how, dy, dx, u, dt, A, B, C, D, z, dt_bias, x0, resets):
    """Gradients at every step of (u, dt, A, B, C, D, z, dt_bias, x0)."""
    f = AROUND | how
    q = SimpleNamespace(dy=dy, u=u, D=D, z=z, v=dt + dt_bias[..., None], open=sigmoid(z))
    q.step, q.gate = softplus(q.v), z * q.open
    q.y = (C * pieces(0 * dy, 0 * dx, u, q.step, A, B, C, x0, resets).x).sum(-1)
    q.s = q.y + D[..., None] * u
    q.ds = f["ds"](q)
    du, dstep, dA, dB, dC, dx0 = selective_back(how, q.ds, dx, u, q.step, A, B, C, x0, resets)
    q.ddt = dstep * f["slope"](q)
    return du + f["skip"](q), q.ddt, dA, dB, dC, f["D"](q), f["dz"](q), f["bias"](q), dx0


def vjp_as(name: str, wrong) -> Callable:
    """`changed(…)` as a VJP of one operator; any other program changes the right VJP."""
    if callable(wrong):
        return wrong
    back, how = mamba_back if name.startswith("mamba") else selective_back, vars(wrong)

    def folded(dy, dx, args, x0, resets=None):
        return unbroadcast_each(back(how, dy, dx, *args, x0, resets), (*args, x0))

    def scan(dy, *args):
        start = rest(*args[:5])
        return folded(dy, start, args, start)[:-1]

    def stateful(dy, dx, *args):
        return folded(dy, dx, args[:-1], args[-1])

    def packed(dy, *args):
        start = rest(*args[:5])
        return *folded(dy, start, args[:-1], start, args[-1])[:-1], None

    def step(dy, dx, *args):
        time = {0: -1, 1: -1, 3: -2, 4: -2} | ({6: -1} if len(args) > 6 else {})  # u dt B C z
        alone = [np.expand_dims(v, time[i]) if i in time else v for i, v in enumerate(args)]
        gradients = enumerate(stateful(dy[..., None], dx, *alone))
        return tuple(np.squeeze(g, time[i]) if i in time else g for i, g in gradients)

    forms = {"scan": scan, "stateful": stateful, "packed": packed, "step": step}
    return instead(forms[name.rpartition("_")[2]])
