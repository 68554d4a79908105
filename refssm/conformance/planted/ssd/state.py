"""Planted bugs in what state-space duality is handed and hands on: the first and the last state.

The check `value` looks at the outputs only, `state` at the last state.
"""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.ssd.base import changing, planting, right
from refssm.ssd import SSD_CHUNKED_STATEFUL, SSD_RECURRENT_STATEFUL

DEVIATIONS, planted = planting()
STATEFUL = (SSD_RECURRENT_STATEFUL, SSD_CHUNKED_STATEFUL)


def _ending(end):
    """A right output, and the last state by `end(S, S_{-2}, last terms)`."""

    def whole(x, log_a, B, C, S0, resets, chunk):
        y, S = right(x, log_a, B, C, S0, resets)
        a, added = np.exp(log_a[..., -1, None, None]), x[..., -1, :, None] * B[..., -1, None, :]
        _, before = right(*_but_last(x, log_a, B, C), S0, resets) if x.shape[-2] > 1 else (0, S0)
        return y, end(S, before + 0 * S, a, added)

    return whole


def _but_last(x, log_a, B, C):
    return x[..., :-1, :], log_a[..., :-1], B[..., :-1, :], C[..., :-1, :]


for _name, _what, _end in [
    ("without_last_input", "without x_{l-1} B_{l-1}ᵀ", lambda S, before, a, added: a * before),
    ("one_step_early", "S_{l-2} for S_{l-1}", lambda S, before, a, added: before),
    ("decayed_again", "decayed once more", lambda S, before, a, added: a * S),
    ("undecayed_at_end", "S_{l-2} + x Bᵀ: the last decay left out",
     lambda S, before, a, added: before + added),
    ("transposed", "returned as (n, p) where p = n", lambda S, before, a, added: np.swapaxes(
        S, -1, -2).copy() if S.shape[-1] == S.shape[-2] else S),
    ("input_only", "the last input only", lambda S, before, a, added: added + 0 * S),
    ("in_bfloat16", "rounded to bfloat16", lambda S, before, a, added: bfloat16(S)),
    ("in_float16", "rounded to float16", lambda S, before, a, added: float16(S)),
    ("zero", "zeros", lambda S, before, a, added: 0 * S),
]:  # fmt: skip
    planted(f"last_state_{_name}", f"the last state: {_what}", STATEFUL, "state")(_ending(_end))


@planted("last_state_at_padding", "the last state: where log_a was last not 0", STATEFUL, "state")
def _last_state_at_padding(x, log_a, B, C, S0, resets, chunk):
    y, _ = right(x, log_a, B, C, S0, resets)
    x = np.where((log_a == 0)[..., None], 0, x)
    return y, right(x, log_a, B, C, S0, resets)[1]


@planted("last_state_of_whole_chunks", "the last state: that of the last whole chunk", STATEFUL,
         "state")  # fmt: skip
def _last_state_of_whole_chunks(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    w = slice(0, x.shape[-2] // chunk * chunk)
    if w.stop:
        S = right(x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :], S0, resets)[1]
    return y, S if w.stop else S0 + 0 * S


@planted("last_state_from_rest", "the last state: as if S0 had been 0", STATEFUL, "state")
def _last_state_from_rest(x, log_a, B, C, S0, resets, chunk):
    y, _ = right(x, log_a, B, C, S0, resets)
    return y, right(x, log_a, B, C, 0 * S0, resets)[1]


@planted("last_state_conjugated", "the last state conjugated", STATEFUL, "state", "complex64")
def _last_state_conjugated(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    return y, S.conj()


# the state before
for _name, _what, _change in [
    ("ignored", "taken as zero", lambda S: 0 * S),
    ("ignored_in_batch_of_one", "taken as zero where the batch is 1",
     lambda S: S * (S.ndim < 3 or S.shape[0] != 1)),
    ("in_float16", "rounded to float16", float16),
    ("transposed", "read as (n, p) where p = n",
     lambda S: np.swapaxes(S, -1, -2) if S.shape[-1] == S.shape[-2] else S),
    ("of_first_head", "that of the first head for all",
     lambda S: np.broadcast_to(S[..., :1, :, :], S.shape) if S.ndim > 2 else S),
    ("of_first_in_batch", "that of the first member of the batch for all",
     lambda S: np.broadcast_to(S[:1], S.shape) if S.ndim > 2 else S),
]:  # fmt: skip
    planted(f"start_{_name}", f"S0 {_what}", STATEFUL)(changing(S0=_change))
planted("start_real", "the imaginary part of S0 dropped", STATEFUL, dtype="complex64")(
    changing(S0=lambda S: S.real.astype(S.dtype))
)


@planted("start_undecayed", "S_0 = S0 + x_0 B_0ᵀ", STATEFUL)
def _start_undecayed(x, log_a, B, C, S0, resets, chunk):
    return right(x, np.where(np.arange(x.shape[-2]) == 0, 0, log_a), B, C, S0, resets)


@planted("left_padding_cut", "S0 does not decay before the first x that is not 0", STATEFUL)
def _left_padding_cut(x, log_a, B, C, S0, resets, chunk):
    empty = np.logical_and.accumulate((x == 0).all(axis=-1), axis=-1)
    return right(x, np.where(empty, 0, log_a), B, C, S0, resets)


@planted("start_in_every_chunk", "every chunk begins with S0", STATEFUL)
def _start_in_every_chunk(x, log_a, B, C, S0, resets, chunk):
    def carry(t, before, S):
        return before if t % chunk or not t else np.exp(log_a[..., t, None, None]) * S0

    return right(x, log_a, B, C, S0, resets, carry=carry)


@planted("start_in_heads_order", "S0 laid out (h, g) and read as (g, h)", STATEFUL)
def _start_in_heads_order(x, log_a, B, C, S0, resets, chunk):
    g_h = S0.shape[-4:-2]
    if len(g_h) == 2:
        S0 = np.swapaxes(S0, -4, -3).reshape(S0.shape)
    return right(x, log_a, B, C, S0, resets)
