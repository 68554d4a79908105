"""Planted bugs in the first and last state of delta_dplr, and in resets.

The check `value` compares only the outputs, `state` the last state.
"""

import numpy as np

from refssm.conformance.planted.linear_attention.low_rank import programs
from refssm.conformance.planted.linear_attention.programs import state_as, turned_if_square
from refssm.conformance.planted.linear_attention.state import KINDS
from refssm.conformance.planted.planting import InEach, of_result
from refssm.conformance.planted.recurrences import RESETS, lasts, starts
from refssm.linear_attention.delta_dplr import DELTA_DPLR_PACKED, DELTA_DPLR_STATEFUL
from refssm.linear_attention.delta_dplr_chunked import (
    DELTA_DPLR_CHUNKED_PACKED,
    DELTA_DPLR_CHUNKED_STATEFUL,
)

STATEFUL = (DELTA_DPLR_STATEFUL, DELTA_DPLR_CHUNKED_STATEFUL)
PACKED = (DELTA_DPLR_PACKED, DELTA_DPLR_CHUNKED_PACKED)


def _ending(change):
    return of_result(lambda y, S: (y, change(S)))


def _last(g):
    """A mask that is true for the last step."""
    return (np.arange(g.q.shape[-2]) == g.q.shape[-2] - 1)[:, None]


def _one_early(right, g):
    y, S = right(g)
    number = g.q.shape[-2] - 1
    return y, right(g.at(slice(number)))[1] if number else g.S0 + 0 * S


STATE = InEach(programs.in_form)
STATE.plant(
    ("last_state_one_step_early", "the last state: S_{l-2} for S_{l-1}", _one_early),
    ("last_state_transposed", "the last state: returned as (p, n) where p = n",
     _ending(turned_if_square)),
    ("last_state_from_rest", "the last state: as if S0 had been 0",
     state_as(lambda g: g.but(S0=0 * g.S0))),
    ("last_state_decayed_again", "the last state: decayed once more", lambda right, g:
     _ending(lambda S: np.exp(g.log_g[..., -1, :, None]) * S)(right, g)),
    ("last_state_undecayed", "the last state: the last gate left out",
     state_as(lambda g: g.but(log_g=np.where(_last(g), 0, g.log_g)))),
    ("last_state_not_removed", "the last state: the last removal left out",
     state_as(lambda g: g.but(b=np.where(_last(g), 0, g.b)))),
    *lasts(core=2),
    of=STATEFUL, by="state",
)  # fmt: skip
STATE.plant(
    *starts("S0", core=2),
    ("start_transposed", "S0 read as (p, n) where p = n", {"S0": turned_if_square}),
    ("start_of_first_head", "S0 that of the first head for all",
     {"S0": lambda S: np.broadcast_to(S[..., :1, :, :], S.shape) if S.ndim > 2 else S}),
    ("start_undecayed", "S0 does not decay at the first step", lambda right, g: right(
        g.but(log_g=np.where((np.arange(g.q.shape[-2]) == 0)[:, None], 0, g.log_g)))),
    ("start_not_read", "a does not read S0 at the first step", lambda right, g: right(
        g.but(a=np.where((np.arange(g.q.shape[-2]) == 0)[:, None], 0, g.a)))),
    of=STATEFUL,
)  # fmt: skip
STATE.plant(
    *(row for row in RESETS if row[0].removeprefix("reset_") in KINDS),
    ("value_lost_at_reset", "the first value of a sequence is lost with the state",
     lambda right, g: right(g.but(v=np.where(g.resets[..., None], 0, g.v)))),
    ("removed_across_reset", "a reads the state before a reset", lambda right, g: right(
        g.but(resets=np.zeros_like(g.resets), log_g=np.where(
            g.resets[..., None], -np.inf, g.log_g).astype(g.log_g.dtype)))),
    of=PACKED,
)  # fmt: skip


def _multiplied(right, g):
    """The state times 0 at a reset."""
    kept = np.where(g.resets, 0, 1).astype(g.q.dtype)
    return right(g.but(resets=np.zeros_like(g.resets)),
                 carry=lambda S, t: S * kept[..., t, None, None])  # fmt: skip


# not by chunks: there 0 · NaN within a block is accepted
STATE.plant((PACKED[:1], "nan_leaks", "the state times 0 at a reset: NaN comes through",
             _multiplied), by="nan")  # fmt: skip
