"""Planted bugs of short convolutions: taps, starts, states, pieces shorter than the taps."""

import numpy as np

from refssm._declaration.arguments import several
from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.convolution.whole import (
    AS_JAX,
    back,
    but_last,
    kept,
    later,
    not_conjugated,
    rolled,
    weights_of_first,
)
from refssm.conformance.planted.planting import Planting, of_result
from refssm.conformance.planted.recurrences import RESETS
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)

EACH = (SHORT_CONVOLUTION, SHORT_CONVOLUTION_STATEFUL, SHORT_CONVOLUTION_STEP)
SHORT, STATEFUL, STEP = EACH[:1], EACH[1:2], EACH[2:]
LONG, STREAMS = EACH[:2], EACH[1:]


def past_of(s, u):
    """The t earlier inputs and the new ones, joined along time."""
    batch = np.broadcast_shapes(s.shape[:-1], u.shape[:-1])
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in (s, u)], axis=-1)


def filtered(past, k):
    """y_i = Σ_j k_j past_{t+i−j}, for all i ≥ 0."""
    t = k.shape[-1]
    l = past.shape[-1] - t
    batch = np.broadcast_shapes(past.shape[:-1], k.shape[:-1])
    y = np.zeros((*batch, l), np.result_type(past, k))
    for j in range(t):
        y = y + k[..., j, None] * past[..., t - j : t - j + l]
    return y


def streaming(k, s, u):
    """The right outputs."""
    return filtered(past_of(s, u), k)


def newest(k, s, u):
    """The right state: the last t inputs, the newest one last."""
    return past_of(s, u)[..., u.shape[-1] :].copy()


def in_form(op, place):
    """Turn wrong(right, k, s, u) into a program of `op` whose output number `place` is wrong.

    `u` always has an axis of time, even of one step; `s` is zero if `op` has no state.
    """

    def adapt(wrong):
        def program(right, u, k, *s):
            told = [*several(right(u, k, *s))]
            start = s[0] if s else np.zeros_like(k, u.dtype)
            y = wrong((streaming, newest)[place], k, start, u[..., None] if op in STEP else u)
            y = y[..., 0] if op in STEP and place == 0 else y
            told[place] = y.astype(op.output_types(u, k, *s)[place])
            return tuple(told) if s else told[0]

        return program

    return adapt


def _circular(right, k, s, u):
    """The end of the signal is used as its past."""
    wrapped = np.concatenate([u] * (k.shape[-1] // u.shape[-1] + 1), axis=-1)
    return right(k, s + wrapped[..., -k.shape[-1] :], u)


def _anticausal(right, k, s, u):
    """Half of the padding is at the end, as with `padding="same"`."""
    late = (k.shape[-1] - 1) // 2
    past = np.concatenate([past_of(s, u), np.zeros_like(u, shape=(*u.shape[:-1], late))], axis=-1)
    return filtered(past[..., late:], k)


def _short_refused(right, k, s, u):
    if u.shape[-1] < k.shape[-1]:
        raise ValueError("fewer samples than taps")
    return right(k, s, u)


def _short_cut(right, k, s, u):
    """With more taps than samples, only the last taps are used, as if they were the first."""
    cut = max(k.shape[-1] - u.shape[-1], 0)
    return right(np.roll(np.where(np.arange(k.shape[-1]) < cut, 0, k), -cut, axis=-1), s, u)


def _in_blocks(right, k, s, u):
    """Blocks of 64 samples, without the taps that reach into the previous block."""
    cuts = [u[..., i : i + 64] for i in range(0, u.shape[-1], 64)]
    return np.concatenate([right(k, 0 * s if i else s, c) for i, c in enumerate(cuts)], -1)


def _weights_miss_beginning(right, dy, *args):
    du, dk, *ds = right(dy, *args)
    late = np.arange(dy.shape[-1]) >= dk.shape[-1] - 1
    return du, right(dy * late, *args)[1], *ds


def _state_at_beginning(right, dy, ds, u, k, s):
    du, dk, ds0 = right(dy, 0 * ds, u, k, s)
    return du, dk, ds0 + unbroadcast(ds, s)


OF_SHORT = []
for _op in EACH:
    _planting = Planting(_op, "float32")
    _planting.usual()
    OF_SHORT += _planting.bugs


def plant(*rows, place=None, by="value"):
    """Plant (operators, name, what, wrong), adapted by `in_form` if `place` is given."""
    for operators, *row in rows:
        for op in operators:
            planting = Planting(op, "float32", None if place is None else in_form(op, place))
            planting.plant(row, by=by)
            OF_SHORT.extend(planting.bugs)


OF_SUMS = [  # LONG: one step does not show it
    (EACH, "taps_reversed", "a correlation: the last tap for the newest input", {"k": back}),
    (EACH, "one_step_late", "Σ_j k_j u_{i−1−j}", {"k": later}),
    (EACH, "first_tap_lost", "Σ_{j>0} k_j u_{i−j}", {"k": lambda k: k - kept(k, 1)}),
    (EACH, "last_tap_lost", "the last tap dropped",
     {"k": lambda k: kept(k, max(k.shape[-1] - 1, 1))}),
    (EACH, "four_taps", "taps beyond the fourth dropped", {"k": lambda k: kept(k, 4)}),
    (LONG, "blocks_apart", "blocks of 64 samples convolved apart", _in_blocks),
    (LONG, "circular", "the end wraps around onto the beginning", _circular),
    (LONG, "anticausal", "padding on both sides", _anticausal),
    (LONG, "signal_reversed", "u backwards", lambda right, k, s, u: right(k, s, back(u))),
    (EACH, "short_refused", "fewer samples than taps raise", _short_refused),
    (EACH, "short_cut", "the last l taps used where samples are fewer", _short_cut),
    (EACH, "skip_added", "u added", lambda right, k, s, u: right(k, s, u) + u),
    (EACH, "state_in_bfloat16", "the kept inputs in bfloat16",
     lambda right, k, s, u: right(k, bfloat16(s), bfloat16(u))),
    (STREAMS, "start_dropped", "s0 taken as zero", lambda right, k, s, u: right(k, 0 * s, u)),
    (STREAMS, "start_reversed", "s0 with the newest first",
     lambda right, k, s, u: right(k, back(s), u)),
    (STREAMS, "start_one_late", "s0 taken for the inputs up to the one before the last",
     lambda right, k, s, u: right(k, rolled(s), u)),
    (STREAMS, "start_one_early", "s0's first t − 1 entries used, not its last",
     lambda right, k, s, u: right(k, np.concatenate([s[..., :1], s[..., :-1]], axis=-1), u)),
    (STREAMS, "start_ignored_in_batch_of_one", "s0 taken as zero where the batch is 1",
     lambda right, k, s, u: right(k, s * (s.shape[0] != 1), u)),
]  # fmt: skip
plant(*OF_SUMS, place=0)
plant(
    (EACH, "conjugate_taps", "k* for k", {"k": np.conj}),
    (EACH, "conjugate_signal", "u* for u", lambda right, k, s, u: right(k, s.conj(), u.conj())),
    place=0, by="value[complex64]",
)  # fmt: skip
NAN_SPREAD = (LONG, "nan_spread", "0 · NaN of the future reaches the past",
              lambda right, k, s, u: right(k, s, u + 0 * u.sum(-1, keepdims=True)))  # fmt: skip
plant(NAN_SPREAD, place=0, by="nan")
STATES = [
    ("state_reversed", "the newest first", lambda right, k, s, u: back(right(k, s, u))),
    ("state_one_late", "without the newest input", lambda right, k, s, u: right(k, s, u[..., :-1])),
    ("state_weighted", "the inputs times the taps", lambda right, k, s, u: k * right(k, s, u)),
    ("state_not_updated", "s0 returned", lambda right, k, s, u: right(k, s, u[..., :0])),
    ("state_not_updated_if_short", "s0 returned where samples are fewer than taps",
     lambda right, k, s, u: right(k, s, u if u.shape[-1] >= k.shape[-1] else u[..., :0])),
    ("state_padded_if_short", "zeros for s0 where samples are fewer than taps",
     lambda right, k, s, u: right(k, 0 * s, u)),
    ("state_in_half", "the state rounded to float16",
     lambda right, k, s, u: float16(right(k, s, u))),
]  # fmt: skip
OF_BEGINNING = ("state_of_beginning", "the first t inputs",
                lambda right, k, s, u: right(k, s, u[..., : k.shape[-1]]))  # fmt: skip
plant(*((STEP, *row) for row in STATES), place=1)
plant(
    *((STATEFUL, *row) for row in STATES),
    (STATEFUL, *OF_BEGINNING),
    place=1, by="state",
)  # fmt: skip
plant(
    (EACH, "weights_reversed", "dk with the newest lag last", {"k": back}),
    (EACH, "weights_one_late", "dk_j of lag j − 1", {"k": later}),
    (EACH, "weights_of_first_batch", "dk of the first sequence only", weights_of_first),
    (LONG, "weights_miss_beginning", "dk without the first t − 1 outputs", _weights_miss_beginning),
    # each gradient depends on one argument: du and ds on k, dk on u and s
    (SHORT, "taps_reversed", "du by a convolution, not a correlation",
     lambda right, dy, u, k: right(dy, u, back(k))),
    (STREAMS, "taps_reversed", "du by a convolution, not a correlation",
     lambda right, dy, ds, u, k, s: right(dy, ds, u, back(k), s)),
    (EACH, "sign", "du with the other sign", {"u": np.negative}),
    (EACH, "float16", "the cotangent in float16", {"dy": float16}),
    (LONG, "last_step_dropped", "the last cotangent left out", {"dy": but_last}),
    (STREAMS, "start_missing", "ds0 = 0", of_result(lambda du, dk, ds: (du, dk, 0 * ds))),
    (STREAMS, "state_dropped", "the last state's cotangent dropped",
     lambda right, dy, ds, *args: right(dy, 0 * ds, *args)),
    (STREAMS, "state_at_beginning", "the last state's cotangent sent to s0", _state_at_beginning),
    (STREAMS, "start_reversed", "ds0 with the newest first",
     of_result(lambda du, dk, ds: (du, dk, back(ds)))),
    (STREAMS, "state_reversed", "the last state's cotangent with the newest first",
     lambda right, dy, ds, *args: right(dy, back(ds), *args)),
    (STREAMS, "start_in_weights", "dk as if s0 were zero",
     lambda right, dy, ds, u, k, s: right(dy, ds, u, k, 0 * s)),
    by="gradient",
)  # fmt: skip
plant(
    (EACH, "not_conjugated", "k and u for k* and u*", not_conjugated),
    (EACH, *AS_JAX),
    by="gradient[complex64]",
)
OF_SHORT.sort(key=lambda bug: bug.op)
PACKED = Planting(SHORT_CONVOLUTION_PACKED, "float32")
PACKED.usual()
PACKED.plant(
    *RESETS,
    ("taps_reversed", "a correlation: the last tap for the newest input", {"k": back}),
    ("one_step_late", "Σ_j k_j u_{i−1−j}", {"u": later}),
    ("first_tap_lost", "Σ_{j>0} k_j u_{i−j}", {"k": lambda k: k - kept(k, 1)}),
    ("input_dropped", "the first input of a sequence dropped", lambda right, u, k, resets:
     right(np.where(resets, 0, u).astype(u.dtype), k, resets)),
)  # fmt: skip
PACKED.plant(
    ("taps_reversed", "the gradient of the taps in reverse order", {"k": back}),
    ("resets_ignored", "gradients flow over resets", lambda right, dy, u, k, resets:
     right(dy, u, k, np.zeros_like(resets))),
    ("in_float16", "the cotangent rounded to float16", {"dy": float16}),
    by="gradient",
)  # fmt: skip

BUGS = [*PACKED.bugs, *OF_SHORT]
