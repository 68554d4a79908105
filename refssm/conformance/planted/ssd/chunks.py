"""Planted bugs in chunks of state-space duality: their ends, what they carry, sizes that fail."""

import numpy as np

from refssm.conformance.honest.ssd.forms import CHUNKED
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.ssd.base import chunkwise, earlier, planting, right
from refssm.ssd import SSD_CHUNKED, SSD_CHUNKED_STATEFUL

DEVIATIONS, planted = planting()


def _chunks(**places):
    return lambda *args: chunkwise(*args, **places)


def _where(fails, program):
    """`program` for the lengths and chunks for which it fails, the right one for the others."""

    def whole(*args):
        return (program if fails(args[0].shape[-2], args[-1]) else right)(*args)

    return whole


def _lost(k, S, before):
    return 0 * S


CARRIES = [
    ("carry_lost", "the carry lost between chunks", _lost),
    ("carry_lost_from_third", "the carry lost at the third chunk",
     lambda k, S, before: 0 * S if k == 2 else S),
    ("carry_late", "the state before the last chunk carried", lambda k, S, before: before + 0 * S),
    ("carry_in_bfloat16", "states between chunks kept in bfloat16",
     lambda k, S, before: bfloat16(S)),
    ("carry_in_float16", "states between chunks kept in float16", lambda k, S, before: float16(S)),
    ("carry_transposed", "the carry read as (n, p) where p = n",
     lambda k, S, before: np.swapaxes(S, -1, -2) if S.shape[-1] == S.shape[-2] else S),
]  # fmt: skip
for _name, _what, _carry in CARRIES:
    planted(_name, _what, CHUNKED if _name == "carry_lost" else SSD_CHUNKED)(_chunks(carry=_carry))

SUMS = [
    ("carry_undecayed", "the carry read without its decay", {"read": lambda T, s: 0 * T}),
    ("carry_read_early", "the carry read with the decay of a step before",
     {"read": lambda T, s: T - s}),
    ("carry_read_from_first", "log_a_0 of the chunk left out of the carry's decay",
     {"read": lambda T, s: T - s[..., :1]}),
    ("carry_kept", "the state at a chunk's end without the chunk's decay",
     {"end": lambda T, s: 0 * T}),
    ("end_without_first", "log_a_0 of the chunk left out of the chunk's decay",
     {"end": lambda T, s: T - s[..., :1]}),
    ("end_without_last", "the last log_a left out of the chunk's decay",
     {"end": lambda T, s: T - s}),
    ("read_clipped", "the decay of the carry clipped to e^{-10}",
     {"read": lambda T, s: np.maximum(T, -10)}),
]  # fmt: skip
for _name, _what, _places in SUMS:
    planted(_name, _what, SSD_CHUNKED, dtype="float64" if _name == "read_clipped" else "float32")(
        _chunks(**_places)
    )
planted("end_without_last", "the last log_a left out of the chunk's decay", SSD_CHUNKED_STATEFUL,
        "state")(_chunks(end=lambda T, s: T - s))  # fmt: skip


def _ended(change):
    """The state at a chunk's end from changed inputs or decays: change(x, log_a)."""

    def inside(x, log_a, B, C, S0, resets):
        y, _ = right(x, log_a, B, C, S0, resets)
        x, log_a = change(x, log_a)
        return y, right(x, log_a, B, C, S0, resets)[1]

    return _chunks(inside=inside)


planted("inputs_early_to_end", "x_j decays to the chunk's end by log_a_j too", CHUNKED[:2])(
    _ended(lambda x, s: (x * np.exp(s)[..., None], s))
)
planted("inputs_late_to_end", "x_j decays to one step before the chunk's end", SSD_CHUNKED)(
    _ended(lambda x, s: (x, earlier(s, -1)))
)


@planted("partial_chunk_dropped", "steps beyond the last whole chunk not written", CHUNKED)
def _partial_chunk_dropped(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    y[..., x.shape[-2] // chunk * chunk :, :] = 0
    return y, S


@planted("partial_chunk_from_rest", "the last partial chunk begins at rest", CHUNKED)
def _partial_chunk_from_rest(x, log_a, B, C, S0, resets, chunk):
    last = x.shape[-2] // chunk if x.shape[-2] % chunk else -1
    return chunkwise(x, log_a, B, C, S0, resets, chunk,
                     carry=lambda k, S, before: 0 * S if k == last else S)  # fmt: skip


def _decays_late(x, log_a, B, C, S0, resets, chunk):
    return right(x, earlier(log_a, -1), B, C, S0, resets)


SIZES = [
    ("chunk_of_one", "a chunk of 1", lambda l, chunk: chunk == 1),
    ("chunk_of_64", "a chunk of 64", lambda l, chunk: chunk == 64),
    ("chunk_of_256", "a chunk of 256", lambda l, chunk: chunk == 256),
    ("odd_chunk", "an odd chunk", lambda l, chunk: chunk % 2 == 1),
    ("short_sequence", "a sequence shorter than the chunk", lambda l, chunk: l < chunk),
    ("several_chunks", "more than one chunk", lambda l, chunk: l > chunk),
    ("ragged", "a length that the chunk does not divide", lambda l, chunk: l % chunk and l > chunk),
    ("whole_chunks", "a length that the chunk divides", lambda l, chunk: l % chunk == 0),
    ("many_chunks", "more than 32 chunks", lambda l, chunk: l > 32 * chunk),
]
# chunks and lengths that the cases of one type may miss name a type whose cases meet them
MET_IN = {"chunk_of_one": "complex128", "odd_chunk": "complex128", "many_chunks": "complex128"}
for _name, _what, _fails in SIZES:
    _type = MET_IN.get(_name, "float32")
    planted(f"{_name}_wrong", f"log_a_{{t-1}} for log_a_t in {_what}", SSD_CHUNKED, dtype=_type)(
        _where(_fails, _decays_late)
    )
planted(
    "chunk_of_64_from_rest", "the carry lost between chunks of 64", SSD_CHUNKED, dtype="float64"
)(_where(lambda l, chunk: chunk == 64, _chunks(carry=_lost)))
planted("chunk_of_256_tiled", "a chunk over 128 done as two, the second from rest", SSD_CHUNKED)(
    _where(lambda l, chunk: chunk > 128, lambda *args: chunkwise(*args[:-1], 128, carry=_lost))
)


@planted("short_refused", "lengths that the chunk does not divide raise", SSD_CHUNKED)
def _short_refused(x, log_a, B, C, S0, resets, chunk):
    if x.shape[-2] % chunk:
        raise ValueError("seqlen must be divisible by chunk_size")
    return right(x, log_a, B, C, S0, resets)


@planted("states_masked_by_zero", "a later chunk's state times 0: its NaN reaches the past",
         CHUNKED, "nan")  # fmt: skip
def _states_masked_by_zero(x, log_a, B, C, S0, resets, chunk):
    y, S = right(x, log_a, B, C, S0, resets)
    for start in range(chunk, x.shape[-2], chunk):
        later = (x[..., start:, :, None] * B[..., start:, None, :]).sum(-3)
        y[..., :start, :] += (0 * later).sum(-1)[..., None, :]
    return y, S
