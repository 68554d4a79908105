"""Diagonal systems and their VJPs, with parts that a planted bug can replace."""

from collections import namedtuple
from functools import partial

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.scan.programs import adjoint, before, same, scan

Through = namedtuple("Through", "a B C u x0")  # gradients through the states; da is (…, l, n)


def made_for(op):
    """A function that completes `with_parts` and `back` to programs of one operator."""
    return lambda wrong: wrong(op) if isinstance(wrong, partial) else wrong


def with_parts(**parts):
    """A system with another `states(right, a, b, x0)`, `read(C, x)` or `last(x, a, b, x0)`."""
    return partial(_system, **parts)


def back(**parts):
    """A VJP with other parts, by the names of the keywords of `_vjp` and `_through`."""
    return partial(_vjp, **parts)


def by_halves(read):
    """The output of a bidirectional system, by halves of C and of the states: read(C, E, x, z)."""
    return with_parts(read=lambda C, x: read(*np.split(C, 2, axis=-1), *np.split(x, 2, axis=-1)))


def _last(x, a, b, x0):
    return x[..., -1, :].copy()


def _system(op, *, states=lambda right, a, b, x0: right(a, b, x0), read=None, last=_last):
    real, both = "real" in op.name, "bidirectional" in op.name

    def program(right, a, B, C, D, u, *x0):
        a_k, b = a if "varying" in op.name else a[..., None, :], u @ B.mT
        start = x0[0] if x0 else np.zeros_like(b[..., 0, :])
        x = states(scan, a_k, b, start)
        if both:
            future = states(scan, a_k, b[..., ::-1, :], start)[..., ::-1, :]
            x = np.concatenate([x, future], axis=-1)
        y = read(C, x) if read else 2 * (x @ C.mT).real if real else x @ C.mT
        y = (y + u @ D.mT).astype(op.output_types(a, B, C, D, u, *x0)[0])
        return (y, last(x, a_k, b, start)) if x0 else y

    return program


def _through(
    dy, dx, a, B, C, u, x0, *, conj_a=np.conj, conj_x=np.conj, conj_read=np.conj, conj_u=np.conj,
    conj_B=np.conj, conj_C=np.conj, shift=1, late=False, read_early=False, forget=0, cast=same,
    dx_at=-1, rest=False, start_decays=True,
):  # fmt: skip
    """The gradients through the states; keywords replace conjugates and shift steps."""
    x = scan(a, u @ B.mT, 0 * x0 if rest else x0)
    early, decays = before(x, x0), np.broadcast_to(conj_a(a), x.shape)
    g = (dy @ conj_C(C)).astype(np.result_type(dy, C, dx, x))
    g[..., dx_at, :] += dx
    g = adjoint(g, lambda k, g: decays[..., k + shift, :] * g, forget, cast)
    dC = dy.mT @ conj_read(early if read_early else x)
    dx0 = cast(decays[..., 0, :] * g[..., 0, :]) if start_decays else g[..., 0, :]
    return Through(conj_x(x if late else early) * g, g.mT @ conj_u(u), dC, g @ conj_B(B), dx0)


def _both_ways(dy, dx, a, B, C, u, x0, *, joined=lambda past, future: (past, future), **how):
    """`_through` for the past, and in reversed time for the future."""
    n, flip = a.shape[-1], (..., slice(None, None, -1), slice(None))
    past = _through(dy, dx, a, B, C[..., :n], u, x0, **how)
    future = _through(dy[flip], dx, a, B, C[..., n:], u[flip], x0, **how)
    past, future = joined(past, future._replace(u=future.u[flip]))
    dC = np.concatenate([past.C, future.C], axis=-1)
    return Through(past.a + future.a, past.B + future.B, dC, past.u + future.u, past.x0)


def _vjp(op, *, over_time=lambda da: da.sum(-2), factors=(2, 1, 1), skipped=True, **how):
    """The whole VJP; `factors` multiply dy through the states, dy past them, and dx, if real."""
    pull = _both_ways if "bidirectional" in op.name else _through
    factors = factors if "real" in op.name else (1, 1, 1)

    def program(right, dy, *args):
        dx, args = (args[0], args[1:]) if op.form == "stateful" else (0, args)
        a, B, C, D, u, *x0 = args
        a_k = a if "varying" in op.name else a[..., None, :]
        start = x0[0] if x0 else np.zeros_like((u @ B.mT)[..., 0, :])
        g = pull(factors[0] * dy, factors[2] * dx, a_k, B, C, u, start, **how)
        da, skip = g.a if a_k is a else over_time(g.a), factors[1] * dy
        du = g.u + (skip @ D.conj() if skipped else 0)
        return unbroadcast_each((da, g.B, g.C, skip.mT @ u.conj(), du, g.x0)[: len(args)], args)

    return program
