"""Planted bugs in packed sequences of state-space duality: what leaks across a reset, and where."""

import numpy as np

from refssm.conformance.planted.ssd.base import (
    changing,
    chunkwise,
    earlier,
    planting,
    recurrence,
    right,
)
from refssm.ssd import SSD_CHUNKED_PACKED, SSD_RECURRENT_PACKED

DEVIATIONS, planted = planting()
PACKED = (SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED)


def _first(flags):
    """The first of some flags."""
    return flags & (np.cumsum(flags, axis=-1) == 1)


for _name, _what, _change in [
    ("ignored", "resets ignored", np.zeros_like),
    ("late", "a reset one step late", lambda r: earlier(r, -1)),
    ("early", "a reset one step early", lambda r: earlier(r[..., ::-1], -1)[..., ::-1]),
    ("first_only", "only the first reset taken", _first),
    ("of_first_in_batch", "the resets of the first member of the batch for all",
     lambda r: np.broadcast_to(r[:1], r.shape) if r.ndim > 1 else r),
    ("at_last_step_lost", "a sequence of one step at the end joined to the one before",
     lambda r: r & (np.arange(r.shape[-1]) < r.shape[-1] - 1)),
    ("beside_a_reset_lost", "of two resets in a row only the first taken",
     lambda r: r & ~earlier(r, -1)),
    ("turned", "resets read as masks: 0 where a sequence begins", np.logical_not),
]:  # fmt: skip
    planted(f"reset_{_name}", _what, PACKED)(changing(resets=_change))


def _on_grid(kept):
    """Only those resets are taken whose place in the chunk is `kept(place, chunk)`."""

    def whole(x, log_a, B, C, S0, resets, chunk):
        place = np.arange(x.shape[-2]) % chunk
        return right(x, log_a, B, C, S0, resets & kept(place, chunk))

    return whole


planted("off_the_grid", "resets only where a chunk begins", PACKED)(
    _on_grid(lambda place, chunk: place == 0)
)
planted("on_the_grid", "no reset where a chunk begins", PACKED)(
    _on_grid(lambda place, chunk: place != 0)
)
planted("end_of_chunk", "no reset at a chunk's last step", SSD_CHUNKED_PACKED)(
    _on_grid(lambda place, chunk: place != chunk - 1)
)


@planted("rounded_to_grid", "a sequence begins where the next chunk does", SSD_CHUNKED_PACKED)
def _rounded_to_grid(x, log_a, B, C, S0, resets, chunk):
    rounded = np.zeros_like(resets)
    for start in range(0, x.shape[-2], chunk):
        rounded[..., start] = resets[..., max(start - chunk + 1, 0) : start + 1].any(-1)
    return right(x, log_a, B, C, S0, rounded)


@planted("leak_through_state", "the carry read past a reset in the chunk", SSD_CHUNKED_PACKED)
def _leak_through_state(*args):
    return chunkwise(*args, seen=np.ones_like)


@planted("leak_through_sums", "inside a chunk the segment sums know no resets", SSD_CHUNKED_PACKED)
def _leak_through_sums(*args):
    def inside(x, log_a, B, C, S0, resets):
        return right(x, log_a, B, C, S0, np.zeros_like(resets))

    return chunkwise(*args, inside=inside)


@planted("leak_to_the_end", "inputs before a reset are in the chunk's last state",
         SSD_CHUNKED_PACKED)  # fmt: skip
def _leak_to_the_end(*args):
    def inside(x, log_a, B, C, S0, resets):
        y, _ = right(x, log_a, B, C, S0, resets)
        return y, right(x, log_a, B, C, S0, np.zeros_like(resets))[1]

    return chunkwise(*args, inside=inside)


@planted("parity", "sequences told apart by the parity of their number", PACKED)
def _parity(x, log_a, B, C, S0, resets, chunk):
    number = np.cumsum(resets, axis=-1) % 2
    y, S = 0, 0
    for of in (0, 1):
        mine = number == of
        x_mine = np.where(mine[..., None], x, 0)
        out, S = right(x_mine, log_a, B, C, S0 * (of == 0), np.zeros_like(resets))
        y = y + np.where(mine[..., None], out, 0)
    return y, S


@planted("input_reset_too", "the input at a reset is lost with the state", PACKED)
def _input_reset_too(x, log_a, B, C, S0, resets, chunk):
    return right(np.where(resets[..., None], 0, x), log_a, B, C, S0, resets)


@planted("decayed_by_10", "−10 added to log_a at a reset for −∞", PACKED)
def _decayed_by_10(x, log_a, B, C, S0, resets, chunk):
    apart = np.where(resets, log_a.dtype.type(-10), 0)
    return right(x, log_a + apart, B, C, S0, np.zeros_like(resets))


@planted("nan_leaks", "the state times 0 at a reset: NaN comes through", PACKED, "nan")
def _nan_leaks(x, log_a, B, C, S0, resets, chunk):
    a = np.exp(log_a) * ~resets
    return recurrence(x, a, B, C, S0, np.zeros_like(resets))
