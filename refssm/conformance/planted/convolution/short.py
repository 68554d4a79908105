"""Planted bugs in short convolutions: the order of taps, lengths below t, the streaming state."""

import numpy as np

from refssm._arguments import several
from refssm.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.convolution.signals import (
    AS_JAX,
    back,
    but_last,
    kept,
    later,
    not_conjugated,
    rolled,
)
from refssm.conformance.planted.planting import Planting
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)


def past_of(s, u):
    """The t inputs before and those now, along time."""
    batch = np.broadcast_shapes(s.shape[:-1], u.shape[:-1])
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in (s, u)], axis=-1)


def filtered(past, k):
    """y_i = Σ_j k_j past_{t+i−j}, for every i from 0."""
    t = k.shape[-1]
    l = past.shape[-1] - t
    batch = np.broadcast_shapes(past.shape[:-1], k.shape[:-1])
    y = np.zeros((*batch, l), np.result_type(past, k))
    for j in range(t):
        y = y + k[..., j, None] * past[..., t - j : t - j + l]
    return y


def streaming(k, s, u):
    """The outputs without a bug."""
    return filtered(past_of(s, u), k)


def newest(k, s, u):
    """The state without a bug: the last t inputs, the newest last."""
    return past_of(s, u)[..., u.shape[-1] :].copy()


def one_wrong(op, place, right_one):
    """Adapts wrong(right_one, k, s, u) to `op`, for its output of that place; the other is right.

    `u` has an axis of time there, if of one step, and `s` is zero where `op` has no state.
    """
    of_step = op is SHORT_CONVOLUTION_STEP

    def adapt(wrong):
        def program(right, u, k, *s):
            told = [*several(right(u, k, *s))]
            start = s[0] if s else np.zeros_like(k, u.dtype)
            y = wrong(right_one, k, start, u[..., None] if of_step else u)
            y = y[..., 0] if of_step and place == 0 else y
            told[place] = y.astype(op.output_types(u, k, *s)[place])
            return tuple(told) if s else told[0]

        return program

    return adapt


def _circular(right, k, s, u):
    """The end of the signal before its beginning."""
    wrapped = np.concatenate([u] * (k.shape[-1] // u.shape[-1] + 1), axis=-1)
    return right(k, s + wrapped[..., -k.shape[-1] :], u)


def _anticausal(right, k, s, u):
    """Half of the padding behind, as `padding="same"` has it."""
    late = (k.shape[-1] - 1) // 2
    past = np.concatenate([past_of(s, u), np.zeros_like(u, shape=(*u.shape[:-1], late))], axis=-1)
    return filtered(past[..., late:], k)


def _short_refused(right, k, s, u):
    if u.shape[-1] < k.shape[-1]:
        raise ValueError("fewer samples than taps")
    return right(k, s, u)


def _short_cut(right, k, s, u):
    """Where the taps are more than the samples, as many of them as samples, from the wrong end."""
    cut = max(k.shape[-1] - u.shape[-1], 0)
    return right(np.roll(np.where(np.arange(k.shape[-1]) < cut, 0, k), -cut, axis=-1), s, u)


def _in_blocks(right, k, s, u):
    """Blocks of 64 samples apart: the taps do not reach over their edges."""
    cuts = [u[..., i : i + 64] for i in range(0, u.shape[-1], 64)]
    return np.concatenate([right(k, 0 * s if i else s, c) for i, c in enumerate(cuts)], -1)


TAPS = [
    ("taps_reversed", "a correlation: the last tap for the newest input", {"k": back}),
    ("one_step_late", "Σ_j k_j u_{i−1−j}", {"k": later}),
    ("first_tap_lost", "Σ_{j>0} k_j u_{i−j}", {"k": lambda k: k - kept(k, 1)}),
    ("last_tap_lost", "the last tap dropped", {"k": lambda k: kept(k, max(k.shape[-1] - 1, 1))}),
    ("four_taps", "taps beyond the fourth dropped", {"k": lambda k: kept(k, 4)}),
]
OUTPUTS = [  # wrong(right, k, s, u) -> y
    ("short_refused", "fewer samples than taps raise", _short_refused),
    ("short_cut", "the last l taps used where samples are fewer", _short_cut),
    ("skip_added", "u added", lambda right, k, s, u: right(k, s, u) + u),
    ("state_in_bfloat16", "the kept inputs in bfloat16",
     lambda right, k, s, u: right(k, bfloat16(s), bfloat16(u))),
]  # fmt: skip
OUTPUTS_ALONG_TIME = [
    ("blocks_apart", "blocks of 64 samples convolved apart", _in_blocks),
    ("circular", "the end wraps around onto the beginning", _circular),
    ("anticausal", "padding on both sides", _anticausal),
    ("signal_reversed", "u backwards", lambda right, k, s, u: right(k, s, back(u))),
]
COMPLEX = [
    ("conjugate_taps", "k* for k", lambda right, k, s, u: right(k.conj(), s, u)),
    ("conjugate_signal", "u* for u", lambda right, k, s, u: right(k, s.conj(), u.conj())),
]
FROM = [
    ("start_dropped", "s0 taken as zero", lambda right, k, s, u: right(k, 0 * s, u)),
    ("start_reversed", "s0 with the newest first", lambda right, k, s, u: right(k, back(s), u)),
    ("start_one_late", "s0 taken for the inputs up to the one before the last",
     lambda right, k, s, u: right(k, rolled(s), u)),
    ("start_one_early", "s0's first t − 1 entries used, not its last", lambda right, k, s, u:
     right(k, np.concatenate([s[..., :1], s[..., :-1]], axis=-1), u)),
    ("start_ignored_in_batch_of_one", "s0 taken as zero where the batch is 1",
     lambda right, k, s, u: right(k, s * (s.shape[0] != 1), u)),
]  # fmt: skip
STATES = [  # wrong(right, k, s, u) -> the state
    ("state_reversed", "the newest first", lambda right, k, s, u: back(right(k, s, u))),
    ("state_one_late", "without the newest input",
     lambda right, k, s, u: right(k, s, u[..., :-1])),
    ("state_weighted", "the inputs times the taps", lambda right, k, s, u: k * right(k, s, u)),
    ("state_not_updated", "s0 returned", lambda right, k, s, u: right(k, s, u[..., :0])),
    ("state_not_updated_if_short", "s0 returned where samples are fewer than taps",
     lambda right, k, s, u: right(k, s, u if u.shape[-1] >= k.shape[-1] else u[..., :0])),
    ("state_padded_if_short", "zeros for s0 where samples are fewer than taps",
     lambda right, k, s, u: right(k, 0 * s, u)),
    ("state_in_half", "the state rounded to float16",
     lambda right, k, s, u: float16(right(k, s, u))),
]  # fmt: skip
STATES_ALONG_TIME = [
    ("state_of_beginning", "the first t inputs", lambda right, k, s, u:
     right(k, s, u[..., : k.shape[-1]])),
]  # fmt: skip
NAN_SPREAD = ("nan_spread", "0 · NaN of the future reaches the past", lambda right, k, s, u:
              right(k, s, u + 0 * u.sum(-1, keepdims=True)))  # fmt: skip


def _in_du(change):
    """du and ds0 as of changed taps; dk is right."""

    def program(right, *args):
        place = len(args) // 2 + 1  # of k: after the cotangents, one fewer than arguments, and u
        given = [change(a) if i == place else a for i, a in enumerate(args)]
        du, _, *ds = right(*given)
        return du, right(*args)[1], *ds

    return program


def _weights_of_first_batch(op):
    """dk of no cotangents but those of the first sequence, where there are several."""

    def program(right, dy, *args):
        du, dk, *ds = right(dy, *args)
        if dy.ndim - len(op.output_dims[0]) > dk.ndim - 1:
            dk = right(np.concatenate([dy[:1], 0 * dy[1:]]), *args)[1]
        return du, dk, *ds

    return program


def _weights_miss_beginning(right, dy, *args):
    du, dk, *ds = right(dy, *args)
    late = np.arange(dy.shape[-1]) >= dk.shape[-1] - 1
    return du, right(dy * late, *args)[1], *ds


def _state_at_beginning(right, dy, ds, u, k, s):
    du, dk, ds0 = right(dy, 0 * ds, u, k, s)
    return du, dk, ds0 + unbroadcast(ds, s)


def _start_in_weights(right, dy, ds, u, k, s):
    du, _, ds0 = right(dy, ds, u, k, s)
    return du, right(dy, ds, u, k, 0 * s)[1], ds0


GRADIENTS = [
    ("weights_reversed", "dk with the newest lag last", {"k": back}),
    ("weights_one_late", "dk_j of lag j − 1", {"k": later}),
    ("taps_reversed", "du by a convolution, not a correlation", _in_du(back)),
    ("sign", "du with the other sign", {"u": np.negative}),
    ("float16", "the cotangent in float16", {"dy": float16}),
]
GRADIENTS_ALONG_TIME = [
    ("weights_miss_beginning", "dk without the first t − 1 outputs", _weights_miss_beginning),
    ("last_step_dropped", "the last cotangent left out", {"dy": but_last}),
]
COMPLEX_GRADIENTS = [("not_conjugated", "k and u for k* and u*", not_conjugated), AS_JAX]


def _state_gradients(s, ds):
    """By the names of the state before and of the cotangent of the state after."""
    return [
        ("start_missing", "ds0 = 0", {s: np.zeros_like}),
        ("state_dropped", "the last state's cotangent dropped", {ds: np.zeros_like}),
        ("state_at_beginning", "the last state's cotangent sent to s0", _state_at_beginning),
        ("start_reversed", "ds0 with the newest first", {s: back}),
        ("state_reversed", "the last state's cotangent with the newest first", {ds: back}),
        ("start_in_weights", "dk as if s0 were zero", _start_in_weights),
    ]


def _bugs(op):
    one, streams = op is SHORT_CONVOLUTION_STEP, op is not SHORT_CONVOLUTION
    p = Planting(op, "float32")
    p.usual()
    outputs = Planting(op, "float32", adapt=one_wrong(op, 0, streaming))
    outputs.plant(*TAPS, *OUTPUTS, *(FROM if streams else ()))
    outputs.plant(*COMPLEX, by="value[complex64]")
    p.plant(*GRADIENTS, by="gradient")
    p.plant(("weights_of_first_batch", "dk of the first sequence only",
             _weights_of_first_batch(op)), by="gradient")  # fmt: skip
    p.plant(*COMPLEX_GRADIENTS, by="gradient[complex64]")
    if not one:  # one step does not show them
        outputs.plant(*OUTPUTS_ALONG_TIME)
        outputs.plant(NAN_SPREAD, by="nan")
        p.plant(*GRADIENTS_ALONG_TIME, by="gradient")
    if not streams:
        return [*p.bugs, *outputs.bugs]
    states = Planting(op, "float32", adapt=one_wrong(op, 1, newest))
    states.plant(*STATES, *(() if one else STATES_ALONG_TIME), by="value" if one else "state")
    p.plant(*_state_gradients([*op.inputs][2], f"d{op.outputs[1]}"), by="gradient")
    return [*p.bugs, *outputs.bugs, *states.bugs]


OPERATORS = (SHORT_CONVOLUTION, SHORT_CONVOLUTION_STATEFUL, SHORT_CONVOLUTION_STEP)
SHORT = [bug for op in OPERATORS for bug in _bugs(op)]
