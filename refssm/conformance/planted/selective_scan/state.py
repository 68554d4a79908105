"""Planted bugs in the state that selective scans start from, return, and step."""

import numpy as np

from refssm.conformance.honest.selective_scan.orders import discrete
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.selective_scan.base import STATEFUL, STEP, Table, given, unrolled

TABLE = Table()
plant = TABLE.plant
DEVIATIONS = TABLE.bugs


def starts(name, what, start, check="value[float32]", on=STATEFUL):
    """A scan that starts from something made of x0."""
    plant(on, name, what, given(lambda x0, **_: {"x0": start(x0)}), check)


def _first_member(x):
    return np.broadcast_to(x[:1], x.shape) if x.ndim > 1 else x


starts("start_ignored", "x0 taken as zero", lambda x: 0 * x)
starts(
    "start_ignored_in_batch_of_one",
    "x0 taken as zero where the batch is 1",
    lambda x: x * (x.shape[0] != 1) if x.ndim > 1 else x,
)
starts("start_of_first_batch", "the first member's x0 for all", _first_member)
starts("start_in_bfloat16", "x0 rounded to bfloat16", bfloat16, on=(*STATEFUL, *STEP))
starts("start_in_float16", "x0 rounded to float16", float16, on=(*STATEFUL, *STEP))
starts("start_conjugate", "x0* for x0", np.conj, "value[complex64]", (*STATEFUL, *STEP))
starts(
    "start_real",
    "the imaginary part of x0 dropped",
    lambda x: x.real.astype(x.dtype),
    "value[complex64]",
)


def _undecayed(*args):
    return unrolled(*args, update=lambda k, a, x, b: (x if k == 0 else a * x) + b)


def _every_step(u, dt, A, B, C, x0, resets):
    return unrolled(u, dt, A, B, C, x0, resets, update=lambda k, a, x, b: a * x + b + (k > 0) * x0)


def _added_after(u, dt, A, B, C, x0, resets):
    """Scanned from rest, x0 added to the first output only."""
    y, x = unrolled(u, dt, A, B, C, 0 * x0, resets)
    first = (C * np.exp(dt[..., None] * A[..., None, :]) * x0[..., None, :]).sum(-1)
    return y + np.where(np.arange(u.shape[-1]) == 0, first, 0), x


plant(STATEFUL, "start_undecayed", "x_0 = x0 + dt u B", _undecayed)
plant(STATEFUL, "start_at_every_step", "x0 added at every step", _every_step)
plant(STATEFUL, "start_in_first_output", "x0 seen by the first output only", _added_after)


def ends(name, what, last, check="state[float32]", on=STATEFUL):
    """A right y beside a wrong last state: last(x, args)."""

    def core(*args):
        y, x = unrolled(*args)
        return y, last(x, *args)

    plant(on, name, what, core, check)


def _shorter(keep):
    """The state after the first `keep` steps: a count, or a function of the length."""

    def last(x, u, dt, A, B, C, x0, resets):
        end = keep(u.shape[-1]) if callable(keep) else max(u.shape[-1] + keep, 0)
        if end == 0:
            return np.broadcast_to(x0, x.shape).astype(x.dtype)
        w = slice(0, end)
        return unrolled(u[..., w], dt[..., w], A, B[..., w, :], C[..., w, :], x0, resets)[1]

    return last


def _without_input(x, u, dt, A, B, C, x0, resets):
    _, b = discrete(u, dt, A, B, C, x0)
    return x - b[..., -1, :]


def _padded(x, u, dt, A, B, C, x0, resets):
    """After padding to a multiple of 32 with the last step and no input."""
    steps = -u.shape[-1] % 32
    return x * np.exp(dt[..., -1, None] * A) ** steps


ends("last_one_early", "the last state before the last step", _shorter(-1))
ends(
    "last_of_first_chunk",
    "the state at the last multiple of 64",
    _shorter(lambda l: l // 64 * 64 or l),
)
ends("last_without_input", "the last state without the last input", _without_input)
ends("last_times_C", "C x for the last state", lambda x, u, dt, A, B, C, *_: C[..., -1, :] * x)
ends("last_times_B", "B x for the last state", lambda x, u, dt, A, B, *_: B[..., -1, :] * x)
ends("last_padded", "the last state decayed by the padding to a multiple of 32", _padded)
ends(
    "last_decayed_again",
    "the last state decayed once more",
    lambda x, u, dt, A, *_: np.exp(dt[..., -1, None] * A) * x,
)
ends("last_in_bfloat16", "the last state rounded to bfloat16", lambda x, *_: bfloat16(x))
ends("last_in_float16", "the last state rounded to float16", lambda x, *_: float16(x))
ends(
    "last_is_start",
    "x0 returned for the last state",
    lambda x, u, dt, A, B, C, x0, _: np.broadcast_to(x0, x.shape).copy(),
)
ends(
    "last_of_first_member",
    "the first member's last state for all",
    lambda x, *_: _first_member(x).copy(),
)
ends(
    "last_reversed",
    "the entries of the last state the other way round",
    lambda x, *_: x[..., ::-1].copy(),
)
ends("last_conjugate", "the last state conjugated", lambda x, *_: x.conj(), "state[complex64]")
ends(
    "last_real",
    "the real part of the last state",
    lambda x, *_: x.real.astype(x.dtype),
    "state[complex64]",
)

ends(
    "state_not_updated",
    "the state before the step returned",
    lambda x, u, dt, A, B, C, x0, _: np.broadcast_to(x0, x.shape).copy(),
    "value[float32]",
    STEP,
)
ends(
    "state_without_input",
    "the state returned has no input in it",
    _without_input,
    "value[float32]",
    STEP,
)
ends(
    "state_returned_in_float16",
    "the state returned in float16",
    lambda x, *_: float16(x),
    "value[float32]",
    STEP,
)


def _in_place(*args):
    """The state updated where it lies, as decoding caches do."""
    y, x = unrolled(*args)
    args[5][...] = x if args[5].shape == x.shape else args[5]
    return y, x


plant(
    STEP,
    "state_in_place",
    "the state updated in the memory of the argument",
    _in_place,
    "unchanged[float32]",
)


def _returned_in_place(*args):
    y, x = unrolled(*args)
    if args[5].shape != x.shape or args[5].dtype != x.dtype:
        return y, x
    args[5][...] = x
    return y, args[5]


plant(
    STEP,
    "state_is_argument",
    "the state returned lies in the argument's memory",
    _returned_in_place,
    "alias[float32]",
)
