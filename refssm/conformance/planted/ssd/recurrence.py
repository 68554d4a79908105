"""Planted bugs in the recurrence of state-space duality: its formula, arithmetic and range."""

import numpy as np

from refssm.conformance.honest.ssd.forms import CHUNKED, SEQUENCES
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.ssd.base import changing, earlier, planting, recurrence, right
from refssm.ssd import (
    SSD_CHUNKED,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
)

DEVIATIONS, planted = planting()
PLAIN = (SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED)

# how the formula is misread
for _name, _what, _ops, _changes in [
    ("sign", "A's minus sign forgotten", PLAIN, {"log_a": np.negative}),
    ("exponential_twice", "e^{a} of what is a already", SSD_RECURRENT, {"log_a": np.exp}),
    ("base_two", "2^{log_a}", SSD_RECURRENT, {"log_a": lambda s: s * s.dtype.type(np.log(2))}),
    ("decay_late", "log_a_{t-1} for log_a_t", SEQUENCES, {"log_a": lambda s: earlier(s, -1)}),
    ("decay_early", "log_a_{t+1} for log_a_t", PLAIN, {"log_a": lambda s: np.roll(s, -1, -1)}),
    ("input_late", "x_{t-1} for x_t", SSD_RECURRENT, {"x": lambda x: earlier(x, -2)}),
    ("output_late", "C_{t-1} for C_t", SSD_RECURRENT, {"C": lambda C: earlier(C, -2)}),
]:
    planted(_name, _what, _ops)(changing(**_changes))


@planted("log_a_read_as_a", "log_a taken for a", SSD_RECURRENT)
def _log_a_read_as_a(x, log_a, B, C, S0, resets, chunk):
    return recurrence(x, log_a, B, C, S0, resets)


@planted("decay_after", "e^{log_a_t} (S_{t-1} + x_t B_tᵀ): the new input decays too", PLAIN)
def _decay_after(x, log_a, B, C, S0, resets, chunk):
    return right(x * np.exp(log_a)[..., None], log_a, B, C, S0, resets)


@planted("first_input_decays", "x_0 decays by log_a_0", (SSD_RECURRENT, SSD_QUADRATIC))
def _first_input_decays(x, log_a, B, C, S0, resets, chunk):
    first = np.arange(x.shape[-2])[:, None] == 0
    return right(np.where(first, x * np.exp(log_a)[..., None], x), log_a, B, C, S0, resets)


@planted("exclusive", "y_t = S_{t-1} C_t", PLAIN)
def _exclusive(x, log_a, B, C, S0, resets, chunk):
    return right(x, log_a, B, C, S0, resets, read=lambda t, S, before: before + 0 * S)


@planted("reverse", "scanned from the end", (SSD_RECURRENT, SSD_QUADRATIC))
def _reverse(x, log_a, B, C, S0, resets, chunk):
    x, B, C = (a[..., ::-1, :] for a in (x, B, C))
    y, S = right(x, log_a[..., ::-1], B, C, S0, resets[..., ::-1])
    return y[..., ::-1, :].copy(), S


@planted("exchanged", "B and C exchanged", (*PLAIN, SSD_RECURRENT_STATEFUL))
def _exchanged(x, log_a, B, C, S0, resets, chunk):
    return right(x, log_a, C, B, S0, resets)


@planted("transposed_where_square", "the state read as (n, p) where p = n", SSD_RECURRENT)
def _transposed_where_square(x, log_a, B, C, S0, resets, chunk):
    square = x.shape[-1] == B.shape[-1] > 1
    turned = (lambda t, S, _: np.swapaxes(S, -1, -2)) if square else None
    return right(x, log_a, B, C, S0, resets, read=turned)


def _last_column_lost(fails):
    """The last state of n is not read where the sizes p, n are such."""

    def whole(x, log_a, B, C, S0, resets, chunk):
        n = B.shape[-1]
        lost = fails(x.shape[-1], n) & (np.arange(n) == n - 1)
        return right(x, log_a, B, np.where(lost, 0, C), S0, resets)

    return whole


planted("wide_heads", "a state lost where p > n", (SSD_RECURRENT, SSD_CHUNKED))(
    _last_column_lost(lambda p, n: p > n)
)
planted("sixteen_states", "a state lost where n = 16", SSD_RECURRENT, dtype="complex64")(
    _last_column_lost(lambda p, n: n == 16)
)
planted("odd_states", "the last of an odd number of states lost", SSD_RECURRENT)(
    _last_column_lost(lambda p, n: n % 2 == 1)
)


@planted("normalised", "divided by the sum of weights, as linear attention is", SSD_QUADRATIC)
@planted("normalised", "divided by the sum of weights, as linear attention is", SSD_RECURRENT)
def _normalised(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    weights, _ = right(np.ones_like(x), log_a, B, C, np.zeros_like(S0), resets)
    return y / weights, S


@planted("padding_skipped", "a step with log_a = 0 taken for padding", SEQUENCES)
def _padding_skipped(x, log_a, B, C, S0, resets, chunk):
    return right(np.where((log_a == 0)[..., None], 0, x), log_a, B, C, S0, resets)


# complex numbers
for _name, _what, _changes in [
    ("decay_conjugated", "the decay conjugated", {"log_a": np.conj}),
    ("output_conjugated", "C* for C, as in Hermitian attention", {"C": np.conj}),
    ("input_conjugated", "B* for B", {"B": np.conj}),
    ("phase_lost", "the imaginary part of log_a dropped", {"log_a": lambda s: s.real}),
]:
    planted(_name, _what, (SSD_RECURRENT, SSD_QUADRATIC), dtype="complex64")(changing(**_changes))


@planted("imaginary_lost", "the result allocated with the type of x", SSD_RECURRENT, "value",
         "complex64")  # fmt: skip
def _imaginary_lost(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    return (y if np.iscomplexobj(x) else y.real), S


# arithmetic in fewer bits, and range
for _name, _cast in {"bfloat16": bfloat16, "float16": float16}.items():
    planted(f"state_in_{_name}", f"the state kept in {_name}", (SSD_RECURRENT, *CHUNKED[:1]))(
        lambda x, log_a, B, C, S0, resets, chunk, cast=_cast: right(
            x, log_a, B, C, S0, resets, carry=lambda t, before, S: cast(before)
        )
    )
for _name, _what, _ops, _changes in [
    ("log_a_in_bfloat16", "log_a rounded to bfloat16", PLAIN, {"log_a": bfloat16}),
    ("growth_clipped", "log_a > 0 clipped to 0", SSD_RECURRENT,
     {"log_a": lambda s: np.minimum(s, 0)}),
    ("decay_clipped", "log_a clipped to −10", (SSD_RECURRENT, SSD_QUADRATIC),
     {"log_a": lambda s: np.maximum(s, -10)}),
    ("slow_decay_lost", "log_a above −1e-3 taken for 0", SSD_RECURRENT,
     {"log_a": lambda s: np.where(np.abs(s) < 1e-3, 0, s).astype(s.dtype)}),
    ("small_flushed", "inputs below the smallest normal flushed", SSD_RECURRENT,
     {"x": lambda x: np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x).astype(x.dtype)}),
]:  # fmt: skip
    planted(_name, _what, _ops)(changing(**_changes))


# length and blocks: the states between them where |a| is near 1
def _carry_lost(size, only=None):
    def whole(x, log_a, B, C, S0, resets, chunk):
        def carry(t, before, S):
            return 0 * before if t % size == 0 and t and only in (None, t // size) else before

        return right(x, log_a, B, C, S0, resets, carry=carry)

    return whole


for _size, _only in [(64, None), (64, 3), (128, None), (256, None)]:
    _of = f"_{_only + 1}" if _only else ""
    _type = "complex64" if _size == 256 else "float32"  # whose draws reach so far
    planted(
        f"carry_lost_{_size}{_of}",
        f"the state lost at blocks of {_size}",
        SSD_RECURRENT,
        dtype=_type,
    )(_carry_lost(_size, _only))


@planted("tail_lost", "steps beyond a multiple of 8 not written", SSD_RECURRENT)
def _tail_lost(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    y[..., y.shape[-2] // 8 * 8 :, :] = 0
    return y, S


# special values
@planted("nan_spread", "masked by multiplication: 0 · NaN reaches the past", SEQUENCES, "nan")
def _nan_spread(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    return y + 0 * x.sum(axis=-2, keepdims=True), S


@planted("offset", "1e-12 added to every input against division by zero", SSD_RECURRENT, "zero")
def _offset(x, log_a, B, C, S0, resets, chunk):
    return right(x + x.dtype.type(1e-12), log_a, B, C, S0, resets)


@planted("later_state_read", "y_t also reads 1e-3 of x_{t+1}", SSD_RECURRENT_PACKED, "causal")
@planted("later_state_read", "y_t also reads 1e-3 of x_{t+1}", SSD_RECURRENT, "prefix")
def _later_state_read(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    return y + x.dtype.type(1e-3) * np.roll(x, -1, axis=-2), S
