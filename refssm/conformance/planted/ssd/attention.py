"""Planted bugs of the attention form: segment sums, what is masked, and when.

They stand in the quadratic form and, where the chunk is long enough to show them, in chunks.
"""

import numpy as np

from refssm.conformance.honest.ssd.attention import segment_sums
from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32
from refssm.conformance.planted.ssd.base import chunkwise, planting
from refssm.ssd import SSD_CHUNKED, SSD_CHUNKED_PACKED, SSD_CHUNKED_STATEFUL, SSD_QUADRATIC

DEVIATIONS, planted = planting()
BOTH = (SSD_QUADRATIC, SSD_CHUNKED)


def _turned(a):
    return np.swapaxes(a, -1, -2)


def _by_weights(weights, scores=None, masked=True):
    """Chunks whose y = (L ∘ C Bᵀ) x, with `weights(log_a)` for L; `masked` keeps NaN in place."""

    def inside(x, log_a, B, C, S0, resets):
        L = weights(log_a)
        M = L * (C @ _turned(B) if scores is None else scores(C, B))
        return _weighed(M, x, masked), _turned(L[..., -1, :, None] * x) @ B

    return lambda *args: chunkwise(*args, inside=inside)


def _weighed(M, x, masked):
    """M x, with the entries above the diagonal left out, or multiplied as the zeros they are."""
    if not masked:
        return M @ x
    rows = [M[..., i, None, : i + 1] @ x[..., : i + 1, :] for i in range(x.shape[-2])]
    return np.concatenate(rows, axis=-2)


def _whole(program):
    """The same in one chunk, as the quadratic form has it."""
    return lambda x, *args: program(x, *args[:-1], max(x.shape[-2], 1))


def _in_both(name, what, program, **how):
    """In one chunk of everything for the quadratic form, as chunks for the chunked one."""
    planted(name, what, SSD_QUADRATIC, **how)(_whole(program))
    planted(name, what, SSD_CHUNKED, **how)(program)


def _lower(l):
    i = np.arange(l)
    return i[:, None] >= i


def _masked(T):
    return np.where(_lower(T.shape[-1]), T, -np.inf)


def _exponentiated_then_masked(log_a):
    """The exponentials above the diagonal overflow: ∞·0."""
    c = np.cumsum(log_a, axis=-1)
    T = np.where(_lower(log_a.shape[-1]), segment_sums(log_a), c[..., :, None] - c[..., None, :])
    return np.exp(T) * _lower(log_a.shape[-1])


def _cumulative(log_a):
    """T_ij as the difference of two cumulative sums."""
    c = np.cumsum(log_a, axis=-1)
    return np.exp(_masked(c[..., :, None] - c[..., None, :]))


def _ratio_of_products(log_a):
    """e^{T_ij} as the ratio of two cumulative products: 0/0."""
    c = np.cumprod(np.exp(log_a), axis=-1)
    return np.where(_lower(log_a.shape[-1]), c[..., :, None] / c[..., None, :], 0)


def _of_sums(change):
    """Weights from segment sums with something wrong in them: change(T, log_a)."""
    return lambda log_a: np.exp(_masked(change(segment_sums(log_a), log_a)))


WEIGHTS = [
    ("exponentiated_then_masked", "the exponentials masked, not the exponents",
     _exponentiated_then_masked),
    ("differences_of_sums", "segment sums as differences of one cumulative sum", _cumulative),
    ("ratio_of_products", "weights as ratios of cumulative products", _ratio_of_products),
    ("sums_from_j", "T_ij = log_a_j + … + log_a_i", _of_sums(lambda T, s: T + s[..., None, :])),
    ("sums_before_i", "T_ij = log_a_j + … + log_a_{i-1}",
     _of_sums(lambda T, s: T + s[..., None, :] - s[..., :, None])),
    ("sums_in_bfloat16", "segment sums rounded to bfloat16", _of_sums(lambda T, s: bfloat16(T))),
    ("weights_in_float16", "weights rounded to float16",
     lambda s: float16(np.exp(_masked(segment_sums(s))))),
    ("future_seen", "the mask one place too far to the right",
     lambda s: np.exp(_masked(segment_sums(s))) + np.eye(s.shape[-1], k=1, dtype=s.dtype)),
    ("diagonal_missed", "j < i for j ≤ i",
     lambda s: np.exp(_masked(segment_sums(s))) * (1 - np.eye(s.shape[-1], dtype=s.dtype))),
    ("undecayed", "the causal mask in place of the decays",
     lambda s: np.exp(_masked(0 * segment_sums(s)))),
    ("clipped_sums", "segment sums clipped to −10",
     _of_sums(lambda T, s: np.maximum(T, -10))),
]  # fmt: skip
UNMASKED = ("exponentiated_then_masked", "future_seen")  # what is above the diagonal counts
for _name, _what, _weights in WEIGHTS:
    _program = _by_weights(_weights, masked=_name not in UNMASKED)
    if _name == "differences_of_sums":  # in one chunk of 300 steps few cases show it
        planted(_name, _what, SSD_CHUNKED)(_program)
    else:
        _in_both(_name, _what, _program)
for _name, _what, _scores in [
    ("scores_in_float16", "C·B in float16", lambda C, B: float16(float16(C) @ _turned(float16(B)))),
    ("scores_in_tf32", "C·B in TF32", lambda C, B: tf32(C) @ _turned(tf32(B))),
    ("scores_scaled", "C·B divided by √n, as attention does",
     lambda C, B: C @ _turned(B) / np.sqrt(B.dtype.type(B.shape[-1]))),
    ("scores_turned", "B·C, the matrix of scores transposed", lambda C, B: B @ _turned(C)),
]:  # fmt: skip
    _in_both(_name, _what, _by_weights(_of_sums(lambda T, s: T), _scores))
for _operators in (SSD_CHUNKED_STATEFUL, SSD_CHUNKED_PACKED):
    planted("exponentiated_then_masked", WEIGHTS[0][1], _operators)(
        _by_weights(_exponentiated_then_masked, masked=False)
    )
_in_both(
    "masked_by_zero",
    "weights 0 above the diagonal: 0 · NaN reaches the past",
    _by_weights(_of_sums(lambda T, s: T), masked=False),
    caught_by="nan",
)


@planted("sums_of_everything", "differences of one cumulative sum over all chunks", SSD_CHUNKED)
def _sums_of_everything(x, log_a, B, C, S0, resets, chunk):
    c = np.cumsum(log_a, axis=-1)
    log_a = np.concatenate([c[..., :1], c[..., 1:] - c[..., :-1]], axis=-1)
    return chunkwise(x, log_a, B, C, S0, resets, chunk)


@planted("divided_by_products", "inputs divided by the product of decays", BOTH)
def _divided_by_products(x, log_a, B, C, S0, resets, chunk):
    product = np.exp(np.cumsum(log_a, axis=-1))[..., None]
    driven = (x / product)[..., :, None] * B[..., :, None, :]
    S = product[..., None] * np.cumsum(driven, axis=-3)
    return np.einsum("...pn,...n->...p", S, C), S[..., -1, :, :]
