"""Any operator of gated units from one function of decays and inputs: where its sequences begin.

`sequences(op, arguments)` brings the arguments of every form to one: an axis of time, where a
sequence begins, and from which state. Programs of (a, b) over such sequences are `scanned` and its
adjoint `turned_back`.
"""

from typing import NamedTuple

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.gated_units.real_gated import REAL_GATED, UNSCALED_START

FORMS = ("", "_from", "_packed", "_packed_from")
REAL, MINIMAL = REAL_GATED.operators, MINIMAL_GATED.operators
UNSCALED = UNSCALED_START.operators


class Sequences(NamedTuple):
    """The arguments of a call, as of a scan over time."""

    told: dict  # by name, each with an axis of time or, as a_param, broadcast over it
    first: np.ndarray  # (…, l): a sequence begins
    rest: np.ndarray  # (…, l): it begins without a state
    start: np.ndarray  # (…, l, n): the state before, where one begins
    unscaled: bool  # no root where a sequence begins from rest

    def __getattr__(self, name):
        try:
            return self.told[name]
        except KeyError:
            raise AttributeError(name) from None


def sequences(op: Operator, arguments) -> Sequences:
    """The arguments of a call of `op`."""
    told = dict(zip(op.inputs, arguments, strict=True))
    gated = next(name for name in op.inputs if name in ("u", "k"))
    if op.form == "step":
        told = {name: x[..., None, :] for name, x in told.items()}
    elif "a_param" in told:
        told["a_param"] = told["a_param"][..., None, :]
    l, n = told[gated].shape[-2:]
    first, start = np.arange(l) == 0, np.zeros((l, n), told[gated].dtype)
    rest = first & ("x" not in told and "x0" not in told)
    if "resets" in told:
        first = rest = first | (told["resets"] != 0)
    if "ends" in told:
        number = np.searchsorted(told["ends"], np.arange(l), side="right")
        first = np.isin(np.arange(l), [0, *told["ends"][:-1]])
        start = told["x0"][..., number, :]
    elif "x0" in told:
        start = told["x0"][..., None, :] + np.zeros((l, 1), told[gated].dtype)
    elif op.form == "step":
        start = told["x"]
    return Sequences(told, first, rest, start, "unscaled" in op.name)


def _at(x, t):
    return x[..., t, :]


def scanned(a, b, s: Sequences, keep=lambda x: x, carry=lambda x, t: x):
    """x_t = a_t x_{t-1} + b_t; `keep` changes the state that is kept, `carry` what comes from it.

    Where a sequence begins from rest x_t is b_t.
    """
    kind = np.result_type(a, b, s.start)
    shape = np.broadcast_shapes(a.shape, b.shape, s.start.shape, (*s.rest.shape, 1))
    a, b, start = (np.broadcast_to(x, shape) for x in (a, b, s.start))
    x = np.empty(shape, kind)
    state = np.zeros((*shape[:-2], shape[-1]), kind)
    for t in range(shape[-2]):
        state = np.where(s.first[..., t, None], _at(start, t), carry(state, t))
        carried = np.where(s.rest[..., t, None], 0, _at(a, t) * state)
        x[..., t, :] = state = keep((carried + _at(b, t)).astype(kind))
    return x


def before(x, s: Sequences):
    """The state before each step; 0 where a sequence begins from rest."""
    earlier = np.concatenate([x[..., :1, :], x[..., :-1, :]], axis=-2)
    earlier = np.where(s.first[..., None], s.start, earlier)
    return np.where(s.rest[..., None], 0, earlier).astype(x.dtype)


def turned_back(dx, a, s: Sequences, carry=lambda g, t: g):
    """g_t = dx_t + a_{t+1} g_{t+1}, nothing from a sequence that begins; `carry` changes it."""
    g = dx.copy()
    a = np.broadcast_to(a, dx.shape)
    for t in range(dx.shape[-2] - 2, -1, -1):
        passed = carry(_at(a, t + 1) * _at(g, t + 1), t + 1)
        g[..., t, :] += np.where(s.first[..., t + 1, None], 0, passed).astype(g.dtype)
    return g


def shaped(op: Operator, x, arguments):
    """A result of `op`, in the type of its arguments, without an axis of time for a step."""
    kind = np.result_type(*(a for a in arguments if a.dtype.kind == "f"))
    x = x[..., 0, :] if op.form == "step" else x
    return np.ascontiguousarray(x.astype(kind, copy=False))


def starts_back(op: Operator, a, g, s: Sequences):
    """The gradient of the states, from a_t g_t where sequences begin."""
    passed = np.broadcast_to(a, g.shape) * g
    if "ends" not in op.inputs:
        return passed[..., 0, :] if g.shape[-2] else np.zeros_like(g[..., :0, :].sum(-2))
    ends = s.told["ends"]
    begins = [0, *ends[:-1]]
    parts = [_at(passed, i) if e > i else 0 * g.sum(-2) for i, e in zip(begins, ends, strict=True)]
    return np.stack(parts, axis=-2) if parts else np.zeros_like(s.told["x0"])


def gradients(op: Operator, found, arguments):
    """The gradients by name as the VJP of `op` returns them; summed where an argument is shared."""
    made = []
    for name, x in zip(op.inputs, arguments, strict=True):
        if name in ("resets", "ends"):
            made.append(None)
            continue
        g = found["x0" if name == "x" else name]
        if op.form == "step" and name != "x":
            g = g[..., 0, :]
        elif name == "a_param":
            g = g.sum(-2)
        made.append(unbroadcast(g.astype(np.result_type(g, x), copy=False), x))
    return tuple(made)


def cotangent(op: Operator, dx):
    """The cotangent with an axis of time."""
    return dx[..., None, :] if op.form == "step" else dx
