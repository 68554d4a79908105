"""Planted bugs in the state that selective scans start from, return, and step."""

import numpy as np

from refssm.conformance.honest.selective_scan.orders import discrete
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.selective_scan.programs import STATEFUL, STEP, Bugs, parts

STATES = Bugs()
plant = STATES.plant


def _real(x):
    return x.real.astype(x.dtype)


def _first_member(x):
    return np.broadcast_to(x[:1], x.shape) if x.ndim > 1 else x


def _at_every_step(right, u, dt, A, B, C, x0, resets):
    return right(u, dt, A, B, C, x0, resets, update=lambda k, a, x, b: a * x + b + (k > 0) * x0)


def _in_first_output(right, u, dt, A, B, C, x0, resets):
    """Scanned from rest, x0 added to the first output only."""
    y, x = right(u, dt, A, B, C, 0 * x0, resets)
    first = (C * np.exp(dt[..., None] * A[..., None, :]) * x0[..., None, :]).sum(-1)
    return y + np.where(np.arange(u.shape[-1]) == 0, first, 0), x


plant(
    STATEFUL,
    ("start_ignored", "x0 taken as zero", {"x0": lambda x: 0 * x}),
    ("start_ignored_in_batch_of_one", "x0 taken as zero where the batch is 1",
     {"x0": lambda x: x * (x.shape[0] != 1) if x.ndim > 1 else x}),
    ("start_of_first_batch", "the first member's x0 for all", {"x0": _first_member}),
    ("start_undecayed", "x_0 = x0 + dt u B",
     parts(update=lambda k, a, x, b: (x if k == 0 else a * x) + b)),
    ("start_at_every_step", "x0 added at every step", _at_every_step),
    ("start_in_first_output", "x0 seen by the first output only", _in_first_output),
)  # fmt: skip
plant(
    (*STATEFUL, *STEP),
    ("start_in_bfloat16", "x0 rounded to bfloat16", {"x0": bfloat16}),
    ("start_in_float16", "x0 rounded to float16", {"x0": float16}),
)
CONJUGATE = ("start_conjugate", "x0* for x0", {"x0": np.conj})
plant((*STATEFUL, *STEP), CONJUGATE, by="value[complex64]")
REAL = ("start_real", "the imaginary part of x0 dropped", {"x0": _real})
plant(STATEFUL, REAL, by="value[complex64]")


def ends(last):
    """A right y beside a wrong last state: last(x, u, dt, A, B, C, x0, resets)."""

    def wrong(right, *args):
        y, x = right(*args)
        return y, last(x, *args)

    return wrong


def _after(steps):
    """The state after the first steps(l) steps of l."""

    def wrong(right, u, dt, A, B, C, x0, resets):
        y, x = right(u, dt, A, B, C, x0, resets)
        w = slice(0, steps(u.shape[-1]))
        if w.stop == 0:
            return y, np.broadcast_to(x0, x.shape).astype(x.dtype)
        return y, right(u[..., w], dt[..., w], A, B[..., w, :], C[..., w, :], x0, resets)[1]

    return wrong


def _without_input(x, u, dt, A, B, C, x0, resets):
    _, b = discrete(u, dt, A, B, C, x0)
    return x - b[..., -1, :]


def _start(x, u, dt, A, B, C, x0, resets):
    return np.broadcast_to(x0, x.shape).copy()


def _padded(x, u, dt, A, *others):
    """After padding to a multiple of 32 with the last step and no input."""
    steps = -u.shape[-1] % 32
    return x * np.exp(dt[..., -1, None] * A) ** steps


plant(
    STATEFUL,
    ("last_one_early", "the last state before the last step", _after(lambda l: max(l - 1, 0))),
    ("last_of_first_chunk", "the state at the last multiple of 64",
     _after(lambda l: l // 64 * 64 or l)),
    ("last_without_input", "the last state without the last input", ends(_without_input)),
    ("last_times_C", "C x for the last state",
     ends(lambda x, u, dt, A, B, C, *others: C[..., -1, :] * x)),
    ("last_times_B", "B x for the last state",
     ends(lambda x, u, dt, A, B, *others: B[..., -1, :] * x)),
    ("last_padded", "the last state decayed by the padding to a multiple of 32", ends(_padded)),
    ("last_decayed_again", "the last state decayed once more",
     ends(lambda x, u, dt, A, *others: np.exp(dt[..., -1, None] * A) * x)),
    ("last_in_bfloat16", "the last state rounded to bfloat16", ends(lambda x, *_: bfloat16(x))),
    ("last_in_float16", "the last state rounded to float16", ends(lambda x, *_: float16(x))),
    ("last_is_start", "x0 returned for the last state", ends(_start)),
    ("last_of_first_member", "the first member's last state for all",
     ends(lambda x, *_: _first_member(x).copy())),
    ("last_reversed", "the entries of the last state the other way round",
     ends(lambda x, *_: x[..., ::-1].copy())),
    by="state",
)  # fmt: skip
plant(
    STATEFUL,
    ("last_conjugate", "the last state conjugated", ends(lambda x, *_: x.conj())),
    ("last_real", "the real part of the last state", ends(lambda x, *_: _real(x))),
    by="state[complex64]",
)
plant(
    STEP,
    ("state_not_updated", "the state before the step returned", ends(_start)),
    ("state_without_input", "the state returned has no input in it", ends(_without_input)),
    ("state_returned_in_float16", "the state returned in float16", ends(lambda x, *_: float16(x))),
)


def _in_place(x, u, dt, A, B, C, x0, resets):
    """The state updated where it lies, as decoding caches do."""
    x0[...] = x if x0.shape == x.shape else x0
    return x


def _returned_in_place(x, u, dt, A, B, C, x0, resets):
    if x0.shape != x.shape or x0.dtype != x.dtype:
        return x
    x0[...] = x
    return x0


IN_PLACE = ("state_in_place", "the state updated in the memory of the argument", ends(_in_place))
plant(STEP, IN_PLACE, by="unchanged")
plant(
    STEP,
    ("state_is_argument", "the state returned lies in the argument's memory",
     ends(_returned_in_place)),
    by="alias",
)  # fmt: skip
