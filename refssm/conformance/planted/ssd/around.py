"""Mamba-2's whole call around a function of state-space duality, right or wrong.

whole(x, log_a, B, C, S0, resets, chunk) -> y, S gives four operators; the parts of the call before
and after it can be replaced. So can the parts of the gradients around those of `whole`.
"""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.conformance.planted.selective_scan.forms import sigmoid, silu, softplus
from refssm.conformance.planted.ssd.forms import DEFAULT_CHUNK
from refssm.ssd.mamba2 import (
    MAMBA2_SCAN,
    MAMBA2_SCAN_PACKED,
    MAMBA2_SCAN_STATEFUL,
    MAMBA2_STEP,
)

SCANS = (MAMBA2_SCAN, MAMBA2_SCAN_STATEFUL, MAMBA2_SCAN_PACKED)
EACH = (*SCANS, MAMBA2_STEP)
TIMED = {"x": 2, "dt": 1, "B": 2, "C": 2, "z": 2}  # the axis of time, from the end


class Mamba2Call(namedtuple("Mamba2Call", "x dt A B C D z dt_bias S0 resets dt_min dt_max")):
    """The arguments of all operators together."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        x, B, C, z = (a[..., steps, :] for a in (self.x, self.B, self.C, self.z))
        dt, resets = self.dt[..., steps], self.resets[..., steps]
        return self.but(x=x, dt=dt, B=B, C=C, z=z, resets=resets)


def biased(g):
    """dt + dt_bias."""
    return g.dt + g.dt_bias[..., None]


def limited(step, g):
    """The steps between their limits."""
    return np.clip(step, g.dt_min, g.dt_max).astype(step.dtype)


def step_sizes(g):
    """clip(softplus(dt + dt_bias))."""
    return limited(softplus(biased(g)), g)


def driven(g, step):
    """Δ x."""
    return step[..., None] * g.x


def logarithms(g, step):
    """Δ A."""
    return step * g.A[..., None]


def skipped(g):
    """D x."""
    return g.D[..., None, None] * g.x


def gated(s, g):
    """(s + D x) silu(z)."""
    return (s + skipped(g)) * silu(g.z)


def around(whole, *, steps=step_sizes, inputs=driven, logs=logarithms, after=gated):
    """A program of the call's arguments, with `whole` in it."""

    def program(g):
        step = steps(g)
        s, S = whole(inputs(g, step), logs(g, step), g.B, g.C, g.S0, g.resets, DEFAULT_CHUNK)
        return after(s, g), S

    return program


def form(op: Operator, program):
    """`program` with the arguments and results of `op`."""

    def forward(*args, **limits):
        g = _call(op, args, limits)
        y, S = program(g)
        kind = np.result_type(*(a for a in g[:9]))
        y, S = (a.astype(kind, copy=False) for a in (y, S))
        if not _from_state(op):
            return y
        S = with_batch(S, 2, y.shape[:-2])
        return (y[..., 0, :], S) if op is MAMBA2_STEP else (y, S)

    return forward


def gradient_form(op: Operator, program):
    """program(dy, dS, g) -> the nine gradients, as the VJP of `op`."""

    def vjp(*args, **limits):
        count = len(op.outputs)
        (dy, *dS), primals = args[:count], args[count:]
        g = _call(op, primals, limits)
        dy = dy[..., None, :] if op is MAMBA2_STEP else dy
        gradients = program(dy, dS[0] if dS else np.zeros_like(g.S0), g)
        kept = g[:9] if _from_state(op) else g[:8]
        told = list(unbroadcast_each(gradients[: len(kept)], kept))
        if op is MAMBA2_STEP:
            shaped = zip(told, primals, strict=True)
            return tuple(gradient.reshape(a.shape) for gradient, a in shaped)
        return (*told, None) if "resets" in op.inputs else tuple(told)

    return vjp


def _call(op, args, limits):
    """The arguments, with a state of zeros and no resets if `op` has none."""
    (x, dt, A, B, C, D, z, dt_bias), more = args[:8], args[8:]
    if op is MAMBA2_STEP:
        x, dt, B, C, z = x[..., None, :], dt[..., None], *(a[..., None, :] for a in (B, C, z))
    leading = (dt.shape[:-1], A.shape, dt_bias.shape, *(a.shape[:-2] for a in (x, B, C)))
    rest = np.zeros((*np.broadcast_shapes(*leading), x.shape[-1], B.shape[-1]), x.dtype)
    S0 = more[0] if _from_state(op) else rest
    resets = more[0] if "resets" in op.inputs else np.zeros(x.shape[-2], bool)
    low, high = limits.get("dt_min", 0.0), limits.get("dt_max", np.inf)
    return Mamba2Call(x, dt, A, B, C, D, z, dt_bias, S0, resets, low, high)


def _from_state(op):
    return bool(op.form)


# Gradients: each formula is a function of what was computed before it


def inside(q):
    """True where the step is not limited."""
    return (q.soft >= q.dt_min) & (q.soft <= q.dt_max)


FORMULAS = {
    "ds": lambda q: q.dy * q.gate,
    "dz": lambda q: q.dy * q.s * (q.open + q.gate * (1 - q.open)),
    "dstep": lambda q: (q.x * q.dv).sum(-1) + q.A[..., None] * q.dlog_a,
    "passed": inside,
    "slope": lambda q: sigmoid(q.v),
    "dx": lambda q: q.step[..., None] * q.dv + q.D[..., None, None] * q.ds,
    "dA": lambda q: (q.step * q.dlog_a).sum(-1),
    "dD": lambda q: (q.x * q.ds).sum((-2, -1)),
    "ddt_bias": lambda q: q.ddt.sum(-1),
}


def back_around(whole, whole_vjp, **changed):
    """A program of gradients; `changed` replaces formulas of `FORMULAS` by name."""

    def program(dy, dS, g):
        formulas = FORMULAS | changed
        q = SimpleNamespace(**g._asdict(), dy=dy)
        q.v = biased(g)
        q.soft, q.open = softplus(q.v), sigmoid(q.z)
        q.step, q.gate = limited(q.soft, g), q.z * q.open
        given = driven(g, q.step), logarithms(g, q.step), g.B, g.C, g.S0, g.resets, DEFAULT_CHUNK
        q.y = whole(*given)[0]
        q.s = q.y + skipped(g)
        q.ds = formulas["ds"](q)
        q.dv, q.dlog_a, q.dB, q.dC, q.dS0 = whole_vjp(q.ds, dS, *given)
        q.dstep = formulas["dstep"](q)
        q.ddt = np.where(formulas["passed"](q), q.dstep, 0) * formulas["slope"](q)
        q.dx, q.dA, q.dD, q.dz, q.ddt_bias = (
            formulas[name](q) for name in ("dx", "dA", "dD", "dz", "ddt_bias")
        )
        return q.dx, q.ddt, q.dA, q.dB, q.dC, q.dD, q.dz, q.ddt_bias, q.dS0

    return program
