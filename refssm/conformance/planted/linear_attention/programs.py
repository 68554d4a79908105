"""Building blocks of the planted bugs of linear attention: programs with replaceable parts.

A bug is written once, as wrong(right, g) -> y, S with `recurrence` as the right program, or as
wrong(right, dy, dS, g) -> gradients by name with `adjoint`, and planted in the named operators.
"""

from types import SimpleNamespace

import numpy as np

from refssm.conformance.planted.linear_attention.forms import Given, form, gradient_form


def in_form(op):
    """Turn wrong(right, given) into a program of an operator, step by step also by chunks."""

    def adapt(wrong):
        program = form(op, lambda g: wrong(recurrence, g))
        return lambda right, *args, **statics: program(*args)

    return adapt


def in_gradient_form(op):
    """Turn wrong(right, dy, dS, given) into a VJP of an operator."""

    def adapt(wrong):
        vjp = gradient_form(op, lambda dy, dS, g: wrong(adjoint, dy, dS, g))
        return lambda right, *args, **statics: vjp(*args, **statics)

    return adapt


def _same(x, *_):
    return x


def recalled(S, k):
    """Sᵀ k."""
    return np.einsum("...np,...n->...p", S, k)


def outer(k, v):
    """k vᵀ."""
    return k[..., :, None] * v[..., None, :]


class StepArguments(SimpleNamespace):
    """One step: q, k, v, a, beta, the state before it, and t."""


def updated(now: StepArguments, S):
    """diag(a) S, then the delta rule, if there is a rate."""
    Z = now.a[..., None] * S
    if now.beta is None:
        return Z, Z + outer(now.k, now.v)
    return Z, Z + outer(now.k, now.beta * (now.v - recalled(Z, now.k)))


def recurrence(g: Given, *, gates=np.exp, update=updated, keep=_same, carry=_same, read=None):
    """The recurrence; each keyword replaces a part by a wrong one.

    `gates(log_g)` gives the decays, `update(step, S)` the decayed state and the next one; `keep(S)`
    changes the state that is kept, `carry(S, t)` what comes from the step before, and
    `read(S, Z, before)` gives the state that the query reads.
    """
    S, y, a = g.S0, [], gates(g.log_g)
    for t in range(g.q.shape[-2]):
        before = S = np.where(g.resets[..., t, None, None], 0, carry(S, t))
        beta = None if g.beta is None else g.beta[..., t, None]
        now = StepArguments(
            q=g.q[..., t, :], k=g.k[..., t, :], v=g.v[..., t, :], a=a[..., t, :], beta=beta
        )
        Z, S = update(now, S)
        S = keep(S)
        y.append(recalled(S if read is None else read(S, Z, before), now.q))
    return np.stack(y, axis=-2), S


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


def earlier(a, axis=-1):
    """a one step earlier along an axis, with zeros first."""
    late = np.roll(a, 1, axis=axis)
    late[(*(slice(None),) * (a.ndim + axis), slice(0, 1))] = 0
    return late


def turned_if_square(S):
    """The state transposed if p = n."""
    return np.swapaxes(S, -1, -2) if S.shape[-1] == S.shape[-2] else S


def _forward(g: Given):
    """Z_t, r_t and S_t of all steps."""
    S, Zs, rs, states = g.S0, [], [], []
    for t in range(g.q.shape[-2]):
        S = np.where(g.resets[..., t, None, None], 0, S)
        Z = np.exp(g.log_g[..., t, :, None]) * S
        r = g.v[..., t, :] if g.beta is None else g.v[..., t, :] - recalled(Z, g.k[..., t, :])
        u = r if g.beta is None else g.beta[..., t, None] * r
        S = Z + outer(g.k[..., t, :], u)
        Zs, rs, states = [*Zs, Z], [*rs, r], [*states, S]
    return Zs, rs, states


def adjoint(dy, dS, g: Given, *, back=None, carry=_same, change=lambda parts: {}):
    """The VJP; each keyword replaces a part by a wrong one.

    `back(step)` gives the cotangent of the state before a step from that after it, `carry(G, t)`
    changes it; `change(parts)` gives wrong gradients by name.
    """
    Zs, rs, states = _forward(g)
    G, Gs = dS, []
    for t in range(len(states) - 1, -1, -1):
        G = G + outer(g.q[..., t, :], dy[..., t, :])
        Gs.insert(0, G)
        k, a = g.k[..., t, :], np.exp(g.log_g[..., t, :])
        beta = None if g.beta is None else g.beta[..., t, None]
        dZ = G if beta is None else G - outer(k, beta * recalled(G, k))
        now = StepArguments(k=k, a=a, beta=beta, dZ=dZ, G=G)
        G = carry(a[..., None] * dZ if back is None else back(now), t)
        G = np.where(g.resets[..., t, None, None], 0, G)
    Zs, rs, states, Gs = map(_stacked, (Zs, [r[..., None, :] for r in rs], states, Gs))
    told = SimpleNamespace(Z=Zs, S=states, G=Gs, r=rs[..., 0, :], dy=dy, dS=dS, g=g)
    found = _gradients(told) | {"S0": G}
    told.found = found
    return found | change(told)


def _stacked(xs):
    return np.stack(np.broadcast_arrays(*xs), axis=-3)


def _gradients(p):
    g, k = p.g, p.g.k
    p.w = recalled(p.G, k)
    p.by_r, p.by_w = (np.einsum("...np,...p->...n", M, x) for M, x in ((p.G, p.r), (p.Z, p.w)))
    p.rate = np.ones_like(g.k[..., :1]) if g.beta is None else g.beta[..., None]
    corrected = g.beta is not None
    dv = p.rate * p.w
    p.dZ = p.G - outer(k, dv) if corrected else p.G
    keys = (p.Z * p.dZ).sum(-1)
    keyed = g.log_g.shape[-1] == g.k.shape[-1]
    dlog_g = keys if keyed else keys.sum(-1, keepdims=True)
    return {
        "q": np.einsum("...np,...p->...n", p.S, p.dy),
        "k": p.rate * (p.by_r - p.by_w) if corrected else p.by_r,
        "v": dv,
        "log_g": np.where(g.resets[..., None], 0, dlog_g),
        "beta": (p.r * p.w).sum(-1),
    }


def in_place_of(name, of):
    """One gradient computed otherwise, of(parts)."""
    return but_for(change=lambda parts: {name: of(parts)})
