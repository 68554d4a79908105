"""Planted bugs in chunks of state-space duality: attention inside, ends, carries, sizes.

Bugs in the attention are planted in the quadratic form, which is one chunk, and also in chunks if
the chunk is long enough to show them.
"""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_any_form
from refssm.conformance.planted.ssd import programs
from refssm.conformance.planted.ssd.forms import CHUNKED
from refssm.conformance.planted.ssd.operators import (
    ATTENTION,
    CHUNK,
    CHUNK_PACKED,
    CHUNK_STATEFUL,
    CHUNKED_FORMS,
    QUAD,
)
from refssm.conformance.planted.ssd.programs import by_chunks, chunkwise, earlier, turned, zero
from refssm.conformance.planted.ssd.right import segment_sums


def _lower(T, above):
    """T with `above` in place of the entries above the diagonal."""
    return np.where(np.tri(T.shape[-1], dtype=bool), T, above)


def _right_weights(log_a):
    return np.exp(_lower(segment_sums(log_a), -np.inf))


def _weights(weights, scores=lambda C, B: C @ turned(B), masked=True, **places):
    """Chunks with y = (L ∘ C Bᵀ) x and `weights(log_a)` for L.

    With `masked`, entries above the diagonal are left out, so that NaN does not spread; otherwise
    they are multiplied as zeros.
    """

    def inside(g):
        L = weights(g.log_a)
        M, ended = L * scores(g.C, g.B), turned(L[..., -1, :, None] * g.x) @ g.B
        if not masked:
            return M @ g.x, ended
        past = (slice(i + 1) for i in range(g.x.shape[-2]))
        rows = [M[..., w.stop - 1, None, w] @ g.x[..., w, :] for w in past]
        return np.concatenate(rows, axis=-2), ended

    return by_chunks(inside=inside, **places)


def _scores(scores):
    return _weights(_right_weights, scores)


def _sums(change):
    """Weights from wrong segment sums: change(T, log_a)."""
    return _weights(lambda log_a: np.exp(_lower(change(segment_sums(log_a), log_a), -np.inf)))


def _exponentiated_then_masked(log_a):
    """Exponentials above the diagonal overflow before they are masked: ∞·0."""
    c = np.cumsum(log_a, axis=-1)
    T = _lower(segment_sums(log_a), c[..., :, None] - c[..., None, :])
    return np.exp(T) * np.tri(c.shape[-1], dtype=bool)


def _ratio_of_products(log_a):
    """e^{T_ij} as a ratio of two cumulative products: 0/0."""
    c = np.cumprod(np.exp(log_a), axis=-1)
    return _lower(c[..., :, None] / c[..., None, :], 0)


def _divided_by_products(right, g):
    product = np.exp(np.cumsum(g.log_a, axis=-1))[..., None]
    driven = (g.x / product)[..., :, None] * g.B[..., :, None, :]
    S = product[..., None] * np.cumsum(driven, axis=-3)
    return np.einsum("...pn,...n->...p", S, g.C), S[..., -1, :, :]


def _guarded(T, *_):
    """Sums of logarithms, with e^T = 0 where T > 0: a guard against overflow."""
    return np.where(T.real > 0, -np.inf, T)


def _at_most_0(T, *_):
    """Sums of logarithms cut off at 0."""
    return np.where(T.real > 0, T - T.real, T)


CHUNKS = InEach(in_any_form(programs.in_form))
CHUNKS.plant(
    ("guarded", "a guard takes e^x as 0 where x > 0, as if a sum of log_a could not be positive",
     _weights(lambda s: np.exp(_lower(_guarded(segment_sums(s)), -np.inf)), read=_guarded,
              end=_guarded)),
    of=QUAD + CHUNKED_FORMS, by="value[complex64]",
)  # fmt: skip
CHUNKS.plant(
    ("cut_off_at_0", "sums of log_a kept at or below 0, as if they could not be positive",
     _weights(lambda s: np.exp(_lower(_at_most_0(segment_sums(s)), -np.inf)), read=_at_most_0,
              end=_at_most_0)),
    of=QUAD + CHUNK,
)  # fmt: skip
CHUNKS.plant(
    # what is above the diagonal counts in those that are not masked
    (ATTENTION + CHUNK_STATEFUL + CHUNK_PACKED, "exponentiated_then_masked",
     "the exponentials masked, not the exponents",
     _weights(_exponentiated_then_masked, masked=False)),
)  # fmt: skip
CHUNKS.plant(
    ("ratio_of_products", "weights as ratios of cumulative products", _weights(_ratio_of_products)),
    ("divided_by_products", "inputs divided by the product of decays", _divided_by_products),
    ("sums_from_j", "T_ij = log_a_j + … + log_a_i", _sums(lambda T, s: T + s[..., None, :])),
    ("sums_before_i", "T_ij = log_a_j + … + log_a_{i-1}",
     _sums(lambda T, s: T + s[..., None, :] - s[..., :, None])),
    ("sums_in_bfloat16", "segment sums rounded to bfloat16", _sums(lambda T, s: bfloat16(T))),
    ("weights_in_float16", "weights rounded to float16",
     _weights(lambda s: float16(_right_weights(s)))),
    ("future_seen", "the mask one place too far to the right", _weights(
     lambda s: _right_weights(s) + np.eye(s.shape[-1], k=1, dtype=s.dtype), masked=False)),
    ("diagonal_missed", "the decayed state read, before the input is added: j < i for j ≤ i",
     _weights(lambda s: _right_weights(s) * (1 - np.eye(s.shape[-1], dtype=s.dtype)))),
    ("undecayed", "the causal mask in place of the decays", _sums(lambda T, s: 0 * T)),
    ("clipped_sums", "segment sums clipped to −10", _sums(lambda T, s: np.maximum(T, -10))),
    ("scores_in_float16", "C·B in float16",
     _scores(lambda C, B: float16(float16(C) @ turned(float16(B))))),
    ("scores_in_tf32", "C·B in TF32", _scores(lambda C, B: tf32(C) @ turned(tf32(B)))),
    ("scores_scaled", "C·B divided by √n, as attention does",
     _scores(lambda C, B: C @ turned(B) / np.sqrt(B.dtype.type(B.shape[-1])))),
    ("scores_turned", "B·C, the matrix of scores transposed", _scores(lambda C, B: B @ turned(C))),
    of=ATTENTION,
)  # fmt: skip


def _states_masked_by_zero(y, g):
    for start in range(g.chunk, g.x.shape[-2], g.chunk):
        later = (g.x[..., start:, :, None] * g.B[..., start:, None, :]).sum(-3)
        y[..., :start, :] += (0 * later).sum(-1)[..., None, :]
    return y


def _short_refused(right, g):
    if g.x.shape[-2] % g.chunk:
        raise ValueError("seqlen must be divisible by chunk_size")
    return right(g)


def _where(fails, wrong):
    """Wrong for sizes with fails(l, chunk), right for others."""
    return lambda right, g: wrong(right, g) if fails(g.x.shape[-2], g.chunk) else right(g)


def _decays_late(place, what, fails):
    return (f"{place}_wrong", f"log_a_{{t-1}} for log_a_t in {what}",
            _where(fails, lambda right, g: right(g.but(log_a=earlier(g.log_a)))))  # fmt: skip


WITHOUT_LAST = ("end_without_last", "the last log_a left out of the chunk's decay",
                by_chunks(end=lambda T, s: T - s))  # fmt: skip
CHUNKS.plant(
    (CHUNKED, "carry_lost", "the carry lost between chunks", by_chunks(keep=zero)),
    (CHUNKED[:2], "inputs_early_to_end", "x_j decays to the chunk's end by log_a_j too",
     programs.ended_as(lambda g: g.but(x=g.x * np.exp(g.log_a)[..., None]))),
    (CHUNKED, "partial_chunk_dropped", "steps beyond the last whole chunk not written",
     programs.output(lambda y, g: np.where(
         np.arange(y.shape[-2])[:, None] < y.shape[-2] // g.chunk * g.chunk, y, 0))),
    (CHUNKED, "partial_chunk_from_rest", "the last partial chunk begins at rest", lambda right, g:
     chunkwise(g, carry=lambda S, k, before: S * ((k + 1) * g.chunk <= g.x.shape[-2]))),
)  # fmt: skip
CHUNKS.plant(
    WITHOUT_LAST,
    ("carry_lost_from_third", "the carry lost at the third chunk",
     by_chunks(carry=lambda S, k, before: 0 * S if k == 2 else S)),
    ("carry_late", "the state before the last chunk carried",
     by_chunks(carry=lambda S, k, before: before + 0 * S)),
    ("carry_in_bfloat16", "states between chunks kept in bfloat16", by_chunks(keep=bfloat16)),
    ("carry_in_float16", "states between chunks kept in float16", by_chunks(keep=float16)),
    ("carry_transposed", "the carry read as (n, p) where p = n",
     by_chunks(keep=programs.turned_if_square)),
    ("carry_undecayed", "the carry read without its decay", by_chunks(read=lambda T, s: 0 * T)),
    ("carry_read_early", "the carry read with the decay of a step before",
     by_chunks(read=lambda T, s: T - s)),
    ("carry_read_from_first", "log_a_0 of the chunk left out of the carry's decay",
     by_chunks(read=lambda T, s: T - s[..., :1])),
    ("carry_kept", "the state at a chunk's end without the chunk's decay",
     by_chunks(end=lambda T, s: 0 * T)),
    ("end_without_first", "log_a_0 of the chunk left out of the chunk's decay",
     by_chunks(end=lambda T, s: T - s[..., :1])),
    ("inputs_late_to_end", "x_j decays to one step before the chunk's end",
     programs.ended_as(lambda g: g.but(log_a=earlier(g.log_a)))),
    _decays_late("chunk_of_64", "a chunk of 64", lambda l, chunk: chunk == 64),
    _decays_late("chunk_of_256", "a chunk of 256", lambda l, chunk: chunk == 256),
    _decays_late("short_sequence", "a sequence shorter than the chunk", lambda l, chunk: l < chunk),
    _decays_late("several_chunks", "more than one chunk", lambda l, chunk: l > chunk),
    _decays_late("ragged", "a length that the chunk does not divide",
                 lambda l, chunk: l % chunk and l > chunk),
    _decays_late("whole_chunks", "a length that the chunk divides",
                 lambda l, chunk: l % chunk == 0),
    ("chunk_of_256_tiled", "a chunk over 128 done as two, the second from rest",
     _where(lambda l, chunk: chunk > 128, lambda right, g: chunkwise(g.but(chunk=128), keep=zero))),
    ("short_refused", "lengths that the chunk does not divide raise", _short_refused),
    of=CHUNK,
)  # fmt: skip
# chunks and lengths that the cases of one type may miss name a type whose cases meet them
CHUNKS.plant(
    _decays_late("chunk_of_one", "a chunk of 1", lambda l, chunk: chunk == 1),
    _decays_late("odd_chunk", "an odd chunk", lambda l, chunk: chunk % 2 == 1),
    _decays_late("many_chunks", "more than 32 chunks", lambda l, chunk: l > 32 * chunk),
    of=CHUNK, by="value[complex128]",
)  # fmt: skip
CHUNKS.plant(
    ("long_chunk_tiled", "a chunk over 256 done in pieces of 256, each from rest",
     _where(lambda l, chunk: chunk > 256, lambda right, g: chunkwise(g.but(chunk=256), keep=zero))),
    of=CHUNK,
)  # fmt: skip
CHUNKS.plant(
    ("chunk_of_64_from_rest", "the carry lost between chunks of 64",
     _where(lambda l, chunk: chunk == 64, by_chunks(keep=zero))),
    ("read_clipped", "the decay of the carry clipped to e^{-10}",
     by_chunks(read=lambda T, s: np.maximum(T, -10))),
    of=CHUNK, by="value[float64]",
)  # fmt: skip
CHUNKS.plant(WITHOUT_LAST, of=CHUNK_STATEFUL, by="state")
CHUNKS.plant(
    (CHUNKED, "states_masked_by_zero", "a later chunk's state times 0: its NaN reaches the past",
     programs.output(_states_masked_by_zero)),
    by="nan",
)  # fmt: skip
