"""Planted bugs of short convolutions with a bias and SiLU: both, beside those of the sums."""

import numpy as np

from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.activations import gelu, sigmoid, silu, silu_vjp
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.convolution import short
from refssm.conformance.planted.convolution.whole import back, but_last, later, weights_of_first
from refssm.conformance.planted.planting import Planting, of_result
from refssm.conformance.planted.recurrences import RESETS
from refssm.convolution import (
    CAUSAL_CONV1D,
    CAUSAL_CONV1D_PACKED,
    CAUSAL_CONV1D_STATEFUL,
    CAUSAL_CONV1D_STEP,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)

SUMS_OF: dict[Operator, Operator] = {
    CAUSAL_CONV1D: SHORT_CONVOLUTION,
    CAUSAL_CONV1D_STATEFUL: SHORT_CONVOLUTION_STATEFUL,
    CAUSAL_CONV1D_STEP: SHORT_CONVOLUTION_STEP,
    CAUSAL_CONV1D_PACKED: SHORT_CONVOLUTION_PACKED,
}
WITH_SUMS = {sums: op for op, sums in SUMS_OF.items()}
ALL = tuple(SUMS_OF)
STREAMS, LONG = ALL[1:3], (*ALL[:2], ALL[3])


def along(op: Operator, bias):
    """The bias beside the sums: one step has no time axis."""
    return bias if op is CAUSAL_CONV1D_STEP else bias[..., None]


def after_sums(op: Operator):
    """Turn wrong(sums, bias, t) into a program of `op` whose outputs are wrong."""

    def adapt(wrong):
        def program(right, u, k, bias, *rest):
            told = [*several(right(u, k, bias, *rest))]
            sums, *_ = several(SUMS_OF[op].reference(u, k, *rest))
            y = wrong(sums, along(op, bias), k.shape[-1])
            told[0] = np.broadcast_to(y, told[0].shape).astype(told[0].dtype)
            return tuple(told) if len(told) > 1 else told[0]

        return program

    return adapt


def of_short(op: Operator, place: int):
    """Turn a wrong program of short convolutions, as `short.in_form` takes it, into one of `op`."""

    def adapt(wrong):
        inner = short.in_form(SUMS_OF[op], place)(wrong)

        def program(right, u, k, bias, *s):
            y, *states = several(inner(SUMS_OF[op].reference, u, k, *s))
            y = silu(y + along(op, bias))
            return (y, *states) if s else y

        return program

    return adapt


def of_slopes(op: Operator):
    """Turn wrong(dy, sums, bias), the cotangent of the sums, into a wrong VJP of `op`."""

    def adapt(wrong):
        def vjp(right, *args):
            count = len(op.outputs)
            (dy, *others), (u, k, bias, *rest) = args[:count], args[count:]
            sums, *_ = several(SUMS_OF[op].reference(u, k, *rest))
            g = wrong(dy, sums, along(op, bias)).astype(dy.dtype)
            du, dk, *ds = SUMS_OF[op].bare_vjp(g, *others, u, k, *rest)
            total = g if op is CAUSAL_CONV1D_STEP else g.sum(-1)
            return du, dk, unbroadcast(total, bias), *ds

        return vjp

    return adapt


def _of_first_channel(bias):
    return 0 * bias + bias[..., :1] if bias.ndim else bias


def _hard(a):
    return a * np.clip(a / 6 + a.dtype.type(0.5), 0, 1)


def _overflowing(a):
    with np.errstate(all="ignore"):
        return a * np.exp(a) / (1 + np.exp(a))


def _from_full_window(sums, bias, t):
    """The bias only where all t taps meet inputs."""
    return silu(sums + bias * (np.arange(sums.shape[-1]) >= t - 1))


def _zero_start(sums, bias, t):
    """The first t − 1 outputs as zero, as a convolution without padding that is filled up."""
    return np.where(np.arange(sums.shape[-1]) >= t - 1, silu(sums + bias), 0)


def _where_input(sums, bias, t):
    """The bias only where the sum is not zero, as behind a mask of padding."""
    return silu(sums + np.where(sums == 0, 0, bias))


def _without_last_block(sums, bias, t):
    """No SiLU beyond a multiple of 64."""
    a, l = sums + bias, sums.shape[-1]
    return np.where((np.arange(l) >= l // 64 * 64) & (l > 64), a, silu(a))


AFTER = [
    (ALL, "bias_after", "the bias added after SiLU", lambda a, b, t: silu(a) + b),
    (ALL, "bias_before_and_after", "the bias added again after SiLU",
     lambda a, b, t: silu(a + b) + b),
    (ALL, "bias_twice", "the bias added twice", lambda a, b, t: silu(a + 2 * b)),
    (ALL, "bias_forgotten", "no bias", lambda a, b, t: silu(a) + 0 * b),
    (ALL, "bias_subtracted", "the bias with the other sign", lambda a, b, t: silu(a - b)),
    (ALL, "bias_for_each_tap", "the bias added with each tap", lambda a, b, t: silu(a + t * b)),
    (LONG, "bias_from_full_window", "the bias only where all taps meet inputs", _from_full_window),
    (ALL, "bias_where_input", "the bias only where the sum is not 0", _where_input),
    (LONG, "zero_start", "the first t − 1 outputs as 0", _zero_start),
    (ALL, "sigmoid", "σ for silu", lambda a, b, t: sigmoid(a + b)),
    (ALL, "relu", "max(a, 0) for silu", lambda a, b, t: np.maximum(a + b, 0)),
    (ALL, "gelu", "gelu for silu", lambda a, b, t: gelu(a + b)),
    (ALL, "gelu_by_sigmoid", "a σ(1.702 a) for silu",
     lambda a, b, t: (a + b) * sigmoid(a.dtype.type(1.702) * (a + b))),
    (ALL, "hard", "a clip(a/6 + 1/2, 0, 1) for silu", lambda a, b, t: _hard(a + b)),
    (ALL, "silu_forgotten", "the sum and the bias, no SiLU", lambda a, b, t: a + b),
    (ALL, "silu_twice", "silu(silu(a))", lambda a, b, t: silu(silu(a + b))),
    (ALL, "silu_overflows", "a e^a/(1 + e^a): NaN above 88", lambda a, b, t: _overflowing(a + b)),
    (ALL, "silu_cut", "silu as 0 below −20",
     lambda a, b, t: np.where(a + b < -20, 0, silu(a + b))),
    (ALL, "silu_linear", "silu as a above 6",
     lambda a, b, t: np.where(a + b > 6, a + b, silu(a + b))),
    (ALL, "silu_clamped", "a clipped to [−10, 10] in σ",
     lambda a, b, t: (a + b) * sigmoid(np.clip(a + b, -10, 10))),
    (LONG, "last_block_not_activated", "no SiLU beyond a multiple of 64", _without_last_block),
    (ALL, "sums_in_bfloat16", "the sum rounded to bfloat16",
     lambda a, b, t: silu(bfloat16(a) + b)),
    (ALL, "silu_in_bfloat16", "the result rounded to bfloat16",
     lambda a, b, t: bfloat16(silu(a + b))),
]  # fmt: skip
ARGUMENTS = [
    (ALL, "inputs_activated", "silu of the inputs, not of the sum", {"u": silu}),
    (ALL, "bias_of_first_channel", "one bias for all channels", {"bias": _of_first_channel}),
    (ALL, "bias_in_bfloat16", "the bias rounded to bfloat16", {"bias": bfloat16}),
]
OF_STATES = [
    *short.STATES,
    ("state_activated", "silu of the inputs kept", lambda right, k, s, u: silu(right(k, s, u))),
]
SLOPES = [
    (ALL, "slope_of_gate", "σ(a) for the slope of silu",
     lambda dy, a, b: dy * sigmoid(a + b)),
    (ALL, "slope_of_sigmoid", "σ(a) σ(−a) for the slope of silu",
     lambda dy, a, b: dy * sigmoid(a + b) * sigmoid(-a - b)),
    (ALL, "slope_at_sums", "the slope at the sum without the bias",
     lambda dy, a, b: silu_vjp(dy, a + 0 * b)),
    (ALL, "slope_missing", "as if there were no SiLU", lambda dy, a, b: dy + 0 * (a + b)),
    (ALL, "slope_of_value", "the slope at silu(a)", lambda dy, a, b: silu_vjp(dy, silu(a + b))),
    (ALL, "slope_of_relu", "1 above 0, else 0", lambda dy, a, b: dy * (a + b > 0)),
    (ALL, "slope_in_bfloat16", "the slope rounded to bfloat16",
     lambda dy, a, b: dy * bfloat16(silu_vjp(np.ones_like(a), a + b))),
]  # fmt: skip


def bias_gradient(change):
    """The right VJP, with change(dbias, dy, bias) for the bias's."""

    def vjp(right, dy, *args):
        du, dk, dbias, *rest = right(dy, *args)
        return du, dk, change(dbias, dy), *rest

    return vjp


def _of_last_step(right, dy, *args):
    """dbias from the last cotangent only."""
    du, dk, _, *rest = right(dy, *args)
    last = dy * (np.arange(dy.shape[-1]) == dy.shape[-1] - 1)
    return du, dk, right(last, *args)[2], *rest


def _of_first_in_batch(right, dy, *args):
    """dbias of the first sequence only."""
    du, dk, dbias, *rest = right(dy, *args)
    only = np.concatenate([dy[:1], 0 * dy[1:]])
    return du, dk, right(only, *args)[2] if dy.ndim > dbias.ndim + 1 else dbias, *rest


def _averaged(dbias, dy):
    return dbias / dbias.dtype.type(max(1, dy.shape[-1]))


def _start_missing(du, dk, dbias, ds):
    return du, dk, dbias, 0 * ds


GRADIENTS = [
    (ALL, "bias_zero", "dbias = 0", {"bias": lambda d: 0 * d}),
    (ALL, "bias_doubled", "dbias twice", {"bias": lambda d: 2 * d}),
    (ALL, "weights_reversed", "dk with the newest lag last", {"k": back}),
    (ALL, "weights_one_late", "dk_j of lag j − 1", {"k": later}),
    (ALL, "weights_of_first_batch", "dk of the first sequence only", weights_of_first),
    (ALL, "sign", "du with the other sign", {"u": np.negative}),
    (ALL, "float16", "the cotangent in float16", {"dy": float16}),
    (LONG, "bias_of_last_step", "dbias of the last step only", _of_last_step),
    (LONG, "bias_averaged", "dbias averaged over time", bias_gradient(_averaged)),
    (LONG, "bias_of_first_batch", "dbias of the first sequence only", _of_first_in_batch),
    (LONG, "last_step_dropped", "the last cotangent left out", {"dy": but_last}),
    (STREAMS, "start_missing", "ds0 = 0", of_result(_start_missing)),
    (STREAMS, "state_dropped", "the last state's cotangent dropped",
     lambda right, dy, ds, *args: right(dy, 0 * ds, *args)),
    (STREAMS, "state_reversed", "the last state's cotangent with the newest first",
     lambda right, dy, ds, *args: right(dy, back(ds), *args)),
]  # fmt: skip

BUGS = []
for _op in ALL:
    _planting = Planting(_op, "float32")
    _planting.usual()
    BUGS += _planting.bugs


def plant(rows, adapt=None, by="value"):
    """Plant (operators, name, what, wrong), each adapted to its operator."""
    for operators, *row in rows:
        for op in operators:
            planting = Planting(op, "float32", None if adapt is None else adapt(op))
            planting.plant(row, by=by)
            BUGS.extend(planting.bugs)


def _renamed(rows):
    """Rows of short convolutions, for the operators here."""
    return [(tuple(WITH_SUMS[op] for op in operators), *row) for operators, *row in rows]


plant(AFTER, after_sums)
plant(ARGUMENTS)
plant(_renamed(short.OF_SUMS), lambda op: of_short(op, 0))
plant(_renamed([short.NAN_SPREAD]), lambda op: of_short(op, 0), by="nan")
plant([((CAUSAL_CONV1D_STEP,), *row) for row in OF_STATES], lambda op: of_short(op, 1))
plant(
    [((CAUSAL_CONV1D_STATEFUL,), *row) for row in (*OF_STATES, short.OF_BEGINNING)],
    lambda op: of_short(op, 1),
    by="state",
)
plant(SLOPES, of_slopes, by="gradient")
plant(GRADIENTS, by="gradient")
plant([((CAUSAL_CONV1D_PACKED,), *row) for row in RESETS])
plant([
    ((CAUSAL_CONV1D_PACKED,), "taps_reversed", "a correlation: the last tap for the newest input",
     {"k": back}),
    ((CAUSAL_CONV1D_PACKED,), "one_step_late", "Σ_j k_j u_{i−1−j}", {"u": later}),
    ((CAUSAL_CONV1D_PACKED,), "input_dropped", "the first input of a sequence dropped",
     lambda right, u, k, bias, resets:
     right(np.where(resets, 0, u).astype(u.dtype), k, bias, resets)),
])  # fmt: skip
plant([((CAUSAL_CONV1D_PACKED,), "resets_ignored", "gradients flow over resets",
        lambda right, dy, u, k, bias, resets:
        right(dy, u, k, bias, np.zeros_like(resets)))], by="gradient")  # fmt: skip
BUGS.sort(key=lambda bug: bug.op)
