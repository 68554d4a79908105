"""Make any operator of linear attention from one function of all arguments together.

A program is whole(g) -> y, S, a VJP whole(dy, dS, g) -> gradients by name, for `Given` arguments.
"""

from collections import namedtuple

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import Recurrence
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.linear_attention.chunked import CHUNKED
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI
from refssm.linear_attention.sweep import gates_keys

RECURRENCES = (GATED_LINEAR, DELTA, GATED_DELTA, KIMI)
NAMES = ("q", "k", "v", "log_g", "beta")


class Given(namedtuple("Given", "q k v log_g beta S0 resets")):
    """The arguments of all recurrences; log_g is (…, l, n) or (…, l, 1), beta (…, l) or None."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        q, k, v, log_g = (x[..., steps, :] for x in self[:4])
        beta = None if self.beta is None else self.beta[..., steps]
        return Given(q, k, v, log_g, beta, self.S0, self.resets[..., steps])


def given(op: Operator, arguments) -> Given:
    """The arguments of a call; without a state or resets these are zero."""
    told = dict(zip(op.inputs, arguments, strict=True))
    step = op.form == "step"
    q, k, v = (_in_time(told[name], step, 1) for name in "qkv")
    beta = _in_time(told["beta"], step, 0) if "beta" in told else None
    log_g = np.zeros((*k.shape[:-1], 1), k.dtype)
    if "log_g" in told:
        keyed = gates_keys(op)
        log_g = _in_time(told["log_g"], step, int(keyed))
        log_g = log_g if keyed else log_g[..., None]
    S = told.get("S", told.get("S0"))
    resets = told.get("resets", np.zeros(q.shape[-2], bool)) != 0
    batch = np.broadcast_shapes(
        *(x.shape[:-2] for x in (q, k, v, log_g)),
        () if beta is None else beta.shape[:-1],
        resets.shape[:-1],
        () if S is None else S.shape[:-2],
    )
    shape = (*batch, k.shape[-1], v.shape[-1])
    start = np.zeros(shape, k.dtype) if S is None else np.broadcast_to(S, shape)
    return Given(q, k, v, log_g, beta, start, resets)


def form(op: Operator, whole):
    """`whole` with the arguments and results of `op`."""

    def forward(*arguments):
        y, S = whole(given(op, arguments))
        kind = np.result_type(*(a for a in arguments if a.dtype.kind == "f"))
        y = (y[..., 0, :] if op.form == "step" else y).astype(kind, copy=False)
        return (y, S.astype(kind, copy=False)) if op.form else y

    return forward


def gradient_form(op: Operator, whole):
    """`whole` as the VJP of `op`."""

    def vjp(dy, *more):
        dS, arguments = more[: len(op.outputs) - 1], more[len(op.outputs) - 1 :]
        g, step = given(op, arguments), op.form == "step"
        dS = dS[0] if dS else np.zeros_like(g.S0)
        found = dict(whole(_in_time(dy, step, 1), dS, g))
        if "log_g" in found and not gates_keys(op):
            found["log_g"] = found["log_g"][..., 0]
        made = []
        for name, x in zip(op.inputs, arguments, strict=True):
            if name == "resets":
                made.append(None)
                continue
            gradient = found["S0" if name == "S" else name]
            rank = 1 if name in "qkv" or (name == "log_g" and gates_keys(op)) else 0
            timed = step and name in NAMES
            gradient = gradient[(..., 0, *[slice(None)] * rank)] if timed else gradient
            made += unbroadcast_each((gradient,), (x,))
        return tuple(made)

    return vjp


def _in_time(x, step: bool, rank: int):
    """The array with an axis of time of length 1, if it is of one step."""
    return x[(..., None, *[slice(None)] * rank)] if step else x


def plain(recurrence: Recurrence) -> Operator:
    """The form from rest."""
    return recurrence.operators[0]


def stateful(recurrence: Recurrence) -> Operator:
    """The form from a state."""
    return recurrence.operators[1]


def packed(recurrence: Recurrence) -> Operator:
    """The form of packed sequences."""
    return recurrence.operators[2]


def one_step(recurrence: Recurrence) -> Operator:
    """One step."""
    return recurrence.operators[-1]


def sequences(recurrence: Recurrence) -> tuple[Operator, ...]:
    """The forms over whole sequences: from rest, from a state, packed."""
    return recurrence.operators[:3]


def with_states(recurrence: Recurrence) -> tuple[Operator, ...]:
    """The forms other than that from rest and the step: from a state, packed, by pieces."""
    kept = {plain(recurrence), *([] if recurrence in CHUNKED else [one_step(recurrence)])}
    return tuple(op for op in recurrence.operators if op not in kept)
