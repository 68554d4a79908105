"""Planted bugs in a selective scan's first state, last state, single step, and resets."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.recurrences import (
    COMPLEX_LASTS,
    RESETS,
    complex_starts,
    lasts,
    starts,
)
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.forms import biased
from refssm.conformance.planted.selective_scan.programs import Around, Bugs, parts, unrolled
from refssm.conformance.planted.selective_scan.right import discrete

STATES = Bugs()
plant = STATES.plant


def _in_first_output(right, u, dt, A, B, C, x0, resets):
    """A scan from zero, with x0 only in the first output."""
    y, x = right(u, dt, A, B, C, 0 * x0, resets)
    first = (C * np.exp(dt[..., None] * A[..., None, :]) * x0[..., None, :]).sum(-1)
    return y + np.where(np.arange(u.shape[-1]) == 0, first, 0), x


plant(on.STATEFUL,
      *starts("x0", core=1),
      ("start_undecayed", "x_0 = x0 + dt u B",
       parts(update=lambda k, a, x, b: (x if k == 0 else a * x) + b)),
      ("start_at_every_step", "x0 added at every step", lambda right, *args:
       right(*args, update=lambda k, a, x, b: a * x + b + (k > 0) * args[5])),
      ("start_in_first_output", "x0 seen by the first output only", _in_first_output))  # fmt: skip
plant(on.STATEFUL, *complex_starts("x0"), by="value[complex64]")
plant(on.STEP,
      ("start_in_bfloat16", "x rounded to bfloat16", {"x": bfloat16}),
      ("start_in_float16", "x rounded to float16", {"x": float16}))  # fmt: skip
plant(on.STEP, ("start_conjugate", "x* for x", {"x": np.conj}), by="value[complex64]")


def ends(last):
    """A right y with a wrong last state: last(x, u, dt, A, B, C, x0, resets)."""

    def wrong(right, *args):
        y, x = right(*args)
        return y, last(x, *args)

    return wrong


def _after(steps):
    """The state after only steps(l) of l steps."""
    return ends(lambda x, u, *others: unrolled(u, *others, update=lambda k, a, x, b:
        a * x + b if k < steps(u.shape[-1]) else x)[1])  # fmt: skip


def _without_input(x, u, dt, A, B, C, x0, resets):
    return x - discrete(u, dt, A, B, C, x0)[1][..., -1, :]


def _start(x, u, dt, A, B, C, x0, resets):
    return np.broadcast_to(x0, x.shape).copy()


plant(on.STATEFUL,
      ("last_one_early", "the last state before the last step", _after(lambda l: l - 1)),
      ("last_of_first_chunk", "the state at the last multiple of 64",
       _after(lambda l: l // 64 * 64 or l)),
      ("last_without_input", "the last state without the last input", ends(_without_input)),
      ("last_times_C", "C x for the last state",
       ends(lambda x, u, dt, A, B, C, *others: C[..., -1, :] * x)),
      ("last_times_B", "B x for the last state",
       ends(lambda x, u, dt, A, B, *others: B[..., -1, :] * x)),
      ("last_padded", "the last state decayed by the padding to a multiple of 32",
       ends(lambda x, u, dt, A, *others:  # padded with the last step and no input
            x * np.exp(dt[..., -1, None] * A) ** (-u.shape[-1] % 32))),
      ("last_decayed_again", "the last state decayed once more",
       ends(lambda x, u, dt, A, *others: np.exp(dt[..., -1, None] * A) * x)),
      ("last_is_start", "x0 returned for the last state", ends(_start)),
      ("last_lacks_B", "B applied at the output, with C: the last state lacks it",
       ends(lambda x, u, dt, A, B, *others: unrolled(u, dt, A, np.ones_like(B), *others)[1])),
      *lasts(core=1), by="state")  # fmt: skip
plant(on.STATEFUL, *COMPLEX_LASTS, by="state[complex64]")


def _in_place(x, u, dt, A, B, C, x0, resets):
    """The state is updated in place, as in decoding caches."""
    if x0.shape != x.shape or x0.dtype != x.dtype:
        return x
    x0[...] = x
    return x0


plant(on.STEP,
      ("state_not_updated", "the state before the step returned", ends(_start)),
      ("state_without_input", "the state returned has no input in it", ends(_without_input)),
      ("state_returned_in_float16", "the state returned in float16",
       ends(lambda x, *_: float16(x))))  # fmt: skip
plant(on.STEP, ("state_in_place", "the state updated in the memory of the argument",
                ends(lambda x, *args: _in_place(x, *args).copy())), by="unchanged")  # fmt: skip
plant(on.STEP, ("state_is_argument", "the state returned lies in the argument's memory",
                ends(_in_place)), by="alias")  # fmt: skip


def _decay_times(factor):
    """At a reset only the decay changes, times `factor`: NaN times 0 is NaN."""
    return lambda right, *args: right(*args[:-1], None, update=lambda k, a, x, b:
        np.where(args[-1][..., k, None], a * a.dtype.type(factor), a) * x + b)  # fmt: skip


def _old_state_read(right, *args):
    """The first output of a sequence still reads the old state."""
    gone, before = iter(np.moveaxis(args[-1], -1, 0)[..., None]), []

    def update(k, a, x, b):
        before.append(x)  # `read` gets it without what a reset drops
        return a * x + b

    return right(*args, update=update, read=lambda C, x, _:
                 (C * (x + np.where(next(gone), before[-1], 0))).sum(-1))  # fmt: skip


def _nan_leaks(right, u, *others):
    """The right scan, with 0 · x added: NaN of another sequence remains."""
    y, x = right(u, *others)
    masked = np.cumsum(others[-1], axis=-1) > 0
    return y + (0 * (u * ~masked)).sum(-1, keepdims=True) * masked, x


plant(on.PACKED,
      *RESETS,
      ("reset_by_small_decay", "the decay times e^(−10) at a reset", _decay_times(np.exp(-10))),
      ("step_masked", "dt set to 0 at a reset, and nothing else",  # nor is the input taken
       lambda right, u, dt, A, B, C, x0, resets:
       right(u, np.where(resets, 0, dt), A, B, C, x0, None)),
      ("first_input_lost", "the first input of a sequence dropped too",
       lambda right, u, *others: right(np.where(others[-1], 0, u), *others)),
      ("old_state_read", "C reads the old state at the first step too", _old_state_read),
)  # fmt: skip
plant(on.PACKED,
      ("reset_by_zero_decay", "the decay multiplied by 0: NaN leaks", _decay_times(0)),
      ("nan_leaks", "NaN of the first sequence masked by 0 · x", _nan_leaks), by="nan")  # fmt: skip
plant(on.PACKED[1:],
      ("bias_at_padding", "dt_bias only where dt is positive, as after masking the pre-activation",
       Around(before=lambda dt, dt_bias:
              biased(np.where(dt > 0, dt + dt_bias[..., None], dt), 0 * dt_bias))))  # fmt: skip
