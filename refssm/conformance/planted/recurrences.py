"""Planted bugs that every recurrence may have: in its resets, its first state and its last state.

A family plants them in its forms, and adds what only it can get wrong.
"""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import of_result

BLOCK = 16  # steps that a kernel takes at once


def shifted(resets, by):
    """Each reset so many steps later; none comes in from outside."""
    moved = np.roll(resets, by, axis=-1)
    moved[..., slice(by) if by > 0 else slice(by, None)] = False
    return moved


def _at_blocks(resets):
    """Each reset moved to the start of its block."""
    k = np.arange(resets.shape[-1])
    starts = np.add.reduceat(resets, k[::BLOCK], axis=-1) > 0
    return np.where(k % BLOCK == 0, np.repeat(starts, BLOCK, axis=-1)[..., : k.size], False)


def _first_member(x, core):
    return np.broadcast_to(x[:1], x.shape) if x.ndim > core else x


def _on_multiples(n, seen):
    return lambda r: r & ((np.arange(r.shape[-1]) % n == 0) == seen)


_RESETS = [
    ("reset_ignored", "resets ignored: one sequence throughout", np.zeros_like),
    ("reset_late", "the state dropped one step late", lambda r: shifted(r, 1)),
    ("reset_early", "the state dropped one step early", lambda r: shifted(r, -1)),
    ("reset_turned", "the state dropped where a sequence goes on", np.logical_not),
    ("reset_first_only", "only the first reset taken", lambda r: r & (np.cumsum(r, axis=-1) <= 1)),
    ("reset_last_only", "only the last reset taken",
     lambda r: r & (np.cumsum(r[..., ::-1], axis=-1)[..., ::-1] <= 1)),
    ("reset_second_lost", "the second reset not seen",
     lambda r: r & (np.cumsum(r, axis=-1) != 2)),
    ("reset_within_64", "resets beyond the first chunk of 64 lost",
     lambda r: r & (np.arange(r.shape[-1]) < 64)),
    ("reset_at_last_step_lost", "a sequence of one step at the end joined to the one before",
     lambda r: r & (np.arange(r.shape[-1]) < r.shape[-1] - 1)),
    ("reset_beside_a_reset_lost", "of two resets in a row only the first taken",
     lambda r: r & ~shifted(r, 1)),
    ("reset_of_first_in_batch", "the first member's resets for all",
     lambda r: _first_member(r, 1)),
    ("reset_at_block", f"the state dropped at the beginning of the block of {BLOCK}", _at_blocks),
    *((f"reset_lost_at_{n}", f"resets at multiples of {n} ignored", _on_multiples(n, False))
      for n in (16, 64)),
    *((f"reset_on_grid_{n}", f"resets seen only at multiples of {n}", _on_multiples(n, True))
      for n in (16, 64)),
]  # fmt: skip
RESETS = [
    (name, what, {"resets": lambda resets, change=change: change(resets != 0)})
    for name, what, change in _RESETS
]


def starts(state: str, core: int) -> list:
    """Bugs of the first state, which is the argument `state` and has `core` axes of its own."""

    def alone(x):
        return x * (x.ndim == core or x.shape[0] != 1)

    rows = [
        ("start_ignored", "the first state taken as zero", lambda x: 0 * x),
        ("start_ignored_in_batch_of_one", "the first state taken as zero where the batch is 1",
         alone),
        ("start_of_first_in_batch", "the first member's state for all",
         lambda x: _first_member(x, core)),
        ("start_in_float16", "the first state rounded to float16", float16),
        ("start_in_bfloat16", "the first state rounded to bfloat16", bfloat16),
    ]  # fmt: skip
    return [(name, what, {state: change}) for name, what, change in rows]


def complex_starts(state: str) -> list:
    """Bugs of the first state that only complex numbers show."""
    return [
        ("start_conjugate", "the first state conjugated", {state: np.conj}),
        ("start_real", "the imaginary part of the first state dropped", {state: _real}),
    ]


def _real(x):
    return x.real.astype(x.dtype)


def _ending(change):
    return of_result(lambda y, x: (y, change(x).copy()))


def lasts(core: int) -> list:
    """Bugs of the last state, the second result."""
    return [
        ("last_zero", "zeros for the last state", _ending(lambda x: 0 * x)),
        ("last_in_bfloat16", "the last state rounded to bfloat16", _ending(bfloat16)),
        ("last_in_float16", "the last state rounded to float16", _ending(float16)),
        ("last_reversed", "the entries of the last state the other way round",
         _ending(lambda x: x[..., ::-1])),
        ("last_of_first_in_batch", "the first member's last state for all",
         _ending(lambda x: _first_member(x, core))),
    ]  # fmt: skip


COMPLEX_LASTS = [
    ("last_conjugate", "the last state conjugated", _ending(np.conj)),
    ("last_real", "the real part of the last state", _ending(_real)),
]
