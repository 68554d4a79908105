"""Planted bugs in the first and last state of state-space duality, and in resets.

The check `value` compares only the outputs, `state` the last state.
"""

import numpy as np

from refssm.conformance.planted.planting import InEach, of_result
from refssm.conformance.planted.recurrences import (
    COMPLEX_LASTS,
    RESETS,
    complex_starts,
    lasts,
    starts,
)
from refssm.conformance.planted.ssd import programs
from refssm.conformance.planted.ssd.operators import CHUNK_PACKED, PACKED, STATEFUL
from refssm.conformance.planted.ssd.programs import by_chunks, state_as, unbroken

STATE = InEach(programs.in_form)


def _ending(change):
    return of_result(lambda y, S: (y, change(S)))


def _after(steps):
    """The last state is that after only steps(l, chunk) steps."""

    def program(right, g):
        y, S = right(g)
        number = steps(g.x.shape[-2], g.chunk)
        return y, right(g.at(slice(number)))[1] if number else g.S0 + 0 * S

    return program


def _last(g):
    """A mask that is true for the last step."""
    return np.arange(g.x.shape[-2]) == g.x.shape[-2] - 1


LAST_STATES = [
    ("without_last_input", "without x_{l-1} B_{l-1}ᵀ",
     state_as(lambda g: g.but(x=np.where(_last(g)[:, None], 0, g.x)))),
    ("one_step_early", "S_{l-2} for S_{l-1}", _after(lambda l, chunk: l - 1)),
    ("decayed_again", "decayed once more", lambda right, g:
     _ending(lambda S: np.exp(g.log_a[..., -1, None, None]) * S)(right, g)),
    ("undecayed_at_end", "S_{l-2} + x Bᵀ: the last decay left out",
     state_as(lambda g: g.but(log_a=np.where(_last(g), 0, g.log_a)))),
    ("transposed", "returned as (n, p) where p = n", _ending(programs.turned_if_square)),
    ("input_only", "the last input only",
     state_as(lambda g: g.but(x=np.where(_last(g)[:, None], g.x, 0), S0=0 * g.S0))),
    ("at_padding", "where log_a was last not 0",
     state_as(lambda g: g.but(x=np.where((g.log_a == 0)[..., None], 0, g.x)))),
    ("of_whole_chunks", "that of the last whole chunk",
     _after(lambda l, chunk: l // chunk * chunk)),
    ("from_rest", "as if S0 had been 0", state_as(lambda g: g.but(S0=0 * g.S0))),
]  # fmt: skip
STATE.plant(
    *((f"last_state_{n}", f"the last state: {what}", wrong) for n, what, wrong in LAST_STATES),
    *lasts(core=2),
    of=STATEFUL, by="state",
)  # fmt: skip
STATE.plant(*COMPLEX_LASTS, of=STATEFUL, by="state[complex64]")
STATE.plant(
    *starts("S0", core=2),
    ("start_transposed", "S0 read as (n, p) where p = n", {"S0": programs.turned_if_square}),
    ("start_of_first_head", "S0 that of the first head for all",
     {"S0": lambda S: np.broadcast_to(S[..., :1, :, :], S.shape) if S.ndim > 2 else S}),
    ("start_undecayed", "S_0 = S0 + x_0 B_0ᵀ",
     lambda right, g: right(g.but(log_a=np.where(np.arange(g.x.shape[-2]) == 0, 0, g.log_a)))),
    ("left_padding_cut", "S0 does not decay before the first x that is not 0",
     lambda right, g: right(g.but(log_a=np.where(
         np.logical_and.accumulate((g.x == 0).all(axis=-1), axis=-1), 0, g.log_a)))),
    ("start_in_every_chunk", "every chunk begins with S0", lambda right, g: right(g, carry=
     lambda S, t, before: S if t % g.chunk else np.exp(g.log_a[..., t, None, None]) * g.S0)),
    ("start_in_heads_order", "S0 laid out (h, g) and read as (g, h)",
     {"S0": lambda S: np.swapaxes(S, -4, -3).reshape(S.shape) if S.ndim > 3 else S}),
    of=STATEFUL,
)  # fmt: skip
STATE.plant(*complex_starts("S0"), of=STATEFUL, by="value[complex64]")


# packed sequences: what leaks across a reset, and where
def _where_in_chunk(kept):
    """Only resets at places in their chunk for which `kept(place, chunk)` is true."""
    return lambda right, g: right(
        g.but(resets=g.resets & kept(np.arange(g.x.shape[-2]) % g.chunk, g.chunk))
    )


def _rounded_to_grid(right, g):
    rounded = np.zeros_like(g.resets)
    for start in range(0, g.x.shape[-2], g.chunk):
        rounded[..., start] = g.resets[..., max(start - g.chunk + 1, 0) : start + 1].any(-1)
    return right(g.but(resets=rounded))


def _parity(right, g):
    number = np.cumsum(g.resets, axis=-1) % 2
    y, S = 0, 0
    for of in (0, 1):
        mine = (number == of)[..., None]
        out, S = right(unbroken(g).but(x=np.where(mine, g.x, 0), S0=g.S0 * (of == 0)))
        y = y + np.where(mine, out, 0)
    return y, S


STATE.plant(
    *RESETS,
    ("off_the_grid", "resets only where a chunk begins",
     _where_in_chunk(lambda place, chunk: place == 0)),
    ("on_the_grid", "no reset where a chunk begins",
     _where_in_chunk(lambda place, chunk: place != 0)),
    ("parity", "sequences told apart by the parity of their number", _parity),
    ("input_reset_too", "the input at a reset is lost with the state",
     lambda right, g: right(g.but(x=np.where(g.resets[..., None], 0, g.x)))),
    ("decayed_by_10", "−10 added to log_a at a reset for −∞", lambda right, g: right(
     unbroken(g).but(log_a=g.log_a + np.where(g.resets, g.log_a.dtype.type(-10), 0)))),
    of=PACKED,
)  # fmt: skip
STATE.plant(
    ("end_of_chunk", "no reset at a chunk's last step",
     _where_in_chunk(lambda place, chunk: place != chunk - 1)),
    ("rounded_to_grid", "a sequence begins where the next chunk does", _rounded_to_grid),
    ("leak_through_state", "the carry read past a reset in the chunk",
     by_chunks(seen=np.ones_like)),
    ("leak_through_sums", "inside a chunk the segment sums know no resets",
     by_chunks(inside=lambda g: programs.recurrence(unbroken(g)))),
    ("leak_to_the_end", "inputs before a reset are in the chunk's last state",
     programs.ended_as(unbroken)),
    of=CHUNK_PACKED,
)  # fmt: skip
STATE.plant((PACKED, "nan_leaks", "the state times 0 at a reset: NaN comes through",
             lambda right, g: right(unbroken(g), a=np.exp(g.log_a) * ~g.resets)),
            by="nan")  # fmt: skip
