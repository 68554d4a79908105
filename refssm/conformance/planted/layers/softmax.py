"""Planted bugs of softmax attention: other scores, masks, normalisers, and cache places."""

import numpy as np

from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers._parts.heads import headed, merged
from refssm.layers.attention.attention import SoftmaxAttention
from refssm.layers.attention.bigbird import SparseAttention


def _transposed(x):
    return np.swapaxes(x, -1, -2)


def _window(away, t):
    """The last t steps."""
    return (away >= 0) & (away < t)


def _root(n):
    """1/√n."""
    return 1 / np.sqrt(max(1, n))


def _outside(s, there):
    """−∞ where there is no pair."""
    return np.where(there, s, s.dtype.type(-np.inf))


def _softmax(s, axis=-1):
    e = np.exp(s - s.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def _of_bias(bias, away):
    """The bias of each pair's distance."""
    return bias[:, np.clip(away, 0, bias.shape[-1] - 1)]


def _plus(s, bias, scale):
    """The scores: products, scaled, and the bias."""
    return s * s.dtype.type(scale) + bias


def _attending(scale=_root, mask=_window, masked=_outside, normal=_softmax, biased=_of_bias,
               scores=_plus, keys=lambda k: k):  # fmt: skip
    """Softmax attention with another scale, mask, way to apply it, normaliser, bias or keys."""

    def program(u, *parameters):
        p = SoftmaxAttention(*parameters)
        q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
        away = np.subtract.outer(np.arange(u.shape[-2]), np.arange(u.shape[-2]))
        s = scores(q @ _transposed(keys(k)), biased(p.bias, away), scale(q.shape[-1]))
        w = normal(masked(s, mask(away, p.bias.shape[-1])))
        return merged(w @ v, p.W_out)

    return instead(program)


def _unnormalised(s):
    return np.exp(s - s.max(-1, keepdims=True, initial=-np.inf))


def _all_in_cache(right, *args):
    """Places of the cache that hold nothing count, too, with a key of 0."""
    return right(*args[:-1], np.ones_like(args[-1]))


def _older_first(a):
    """The cache as a ring whose oldest place is the last one."""
    return a[..., ::-1, :].copy()


ATTENTION = planting("attention_layer")
ATTENTION.plant(
    ("scale", "1/√n is forgotten", _attending(scale=lambda n: 1.0)),
    ("scale_twice", "1/n for 1/√n", _attending(scale=lambda n: 1 / max(1, n))),
    ("scale_bias", "the bias is scaled, too",
     _attending(scores=lambda s, bias, scale: (s + bias) * s.dtype.type(scale))),
    ("bias_sign", "the bias is subtracted", _attending(biased=lambda b, d: -_of_bias(b, d))),
    ("bias_late", "the bias of the distance before",
     _attending(biased=lambda b, d: _of_bias(b, d - 1))),
    ("bias_from_end", "the bias of the largest distance first",
     _attending(biased=lambda b, d: _of_bias(b[:, ::-1], d))),
    ("bias_heads", "the first head's bias for all",
     _attending(biased=lambda b, d: _of_bias(np.repeat(b[:1], len(b), 0), d))),
    ("future", "the causal mask is forgotten", _attending(mask=lambda d, t: d < t)),
    ("strict", "a step reads itself only if it is the first",
     _attending(mask=lambda d, t: _window(d, t + 1) & ((d > 0) | (np.arange(len(d)) == 0)))),
    ("window", "the window is forgotten", _attending(mask=lambda d, t: d >= 0)),
    ("window_long", "a window of one step more", _attending(mask=lambda d, t: _window(d, t + 1))),
    ("window_two_sided", "a window of t/2 steps on both sides",
     _attending(mask=lambda d, t: np.abs(d) <= t // 2)),
    ("mask_zero", "masked scores are 0, not −∞",
     _attending(masked=lambda s, there: np.where(there, s, s.dtype.type(0)))),
    ("normaliser", "the weights are not normalised", _attending(normal=_unnormalised)),
    ("normaliser_axis", "normalised over the queries",
     _attending(normal=lambda s: _softmax(s, axis=-2))),
    ("heads", "the keys of the first head for all",
     _attending(keys=lambda k: np.repeat(k[..., :1, :, :], k.shape[-3], -3))),
)  # fmt: skip

CACHE = planting("attention_layer_stateful")
CACHE.plant(
    ("cache_empty", "empty places of the cache count", _all_in_cache),
    ("cache_reversed", "the cache has its newest step first",
     {"K0": _older_first, "V0": _older_first}),
)  # fmt: skip


def _row(i, t):
    """The last row of the mask for all steps beyond it."""
    return np.minimum(i, t - 1)


def _by_distance(reads, rows, away):
    """Row i, column i − j; the step itself is read."""
    t = len(reads)
    there = (away >= 0) & (away < t)
    chosen = reads[rows[:, None], np.clip(away, 0, t - 1)] != 0
    return there & (chosen | (away == 0))


def _sparse(scale=_root, row=_row, mask=_by_distance, masked=_outside, normal=_softmax):
    """Attention over the steps that a mask chooses, with another row, mask or way to apply it."""

    def program(u, *parameters):
        p, l = SparseAttention(*parameters), u.shape[-2]
        q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
        away = np.subtract.outer(np.arange(l), np.arange(l))
        s = q @ _transposed(k) * q.dtype.type(scale(q.shape[-1]))
        there = mask(p.reads, row(np.arange(l), len(p.reads)), away)
        return merged(normal(masked(s, there)) @ v, p.W_out)

    return instead(program)


def _by_place(reads, rows, away):
    """Column j for column i − j."""
    there = (away >= 0) & (away < len(reads))
    places = np.clip(rows[:, None] - away, 0, len(reads) - 1)
    return there & ((reads[rows[:, None], places] != 0) | (away == 0))


def _not_itself(reads, rows, away):
    """The step itself only where nothing else is read."""
    there = _by_distance(reads, rows, away) & ((away > 0) | (reads[rows, :1] != 0))
    return there | ((away == 0) & ~there.any(-1, keepdims=True))


def _both_ways(reads, rows, away):
    """The mask's transpose, too: what a step reads, reads the step."""
    there = _by_distance(reads, rows, away)
    return there | there.T


def _forgetting_window(reads, rows, away):
    """Distances from t on as the largest one."""
    chosen = reads[rows[:, None], np.clip(away, 0, len(reads) - 1)] != 0
    return (away >= 0) & (chosen | (away == 0))


BIGBIRD = planting("bigbird_layer")
BIGBIRD.plant(
    ("scale", "1/√n is forgotten", _sparse(scale=lambda n: 1.0)),
    ("row_periodic", "the mask begins anew after its last row", _sparse(row=lambda i, t: i % t)),
    ("row_late", "the row of the step before",
     _sparse(row=lambda i, t: _row(np.maximum(i - 1, 0), t))),
    ("row_first", "the first row for all steps", _sparse(row=lambda i, t: 0 * i)),
    ("by_place", "columns are steps, not distances", _sparse(mask=_by_place)),
    ("itself", "the step itself only where the mask says so", _sparse(mask=_not_itself)),
    ("both_ways", "the mask and its transpose: the future is read", _sparse(mask=_both_ways)),
    ("full", "the mask is forgotten",
     _sparse(mask=lambda reads, rows, away: _by_distance(np.ones_like(reads), rows, away))),
    ("none", "only the step itself is read", _sparse(mask=lambda reads, rows, away: away == 0)),
    ("window", "distances beyond the mask as its largest one", _sparse(mask=_forgetting_window)),
    ("mask_zero", "masked scores are 0, not −∞",
     _sparse(masked=lambda s, there: np.where(there, s, s.dtype.type(0)))),
    ("normaliser", "the weights are not normalised", _sparse(normal=_unnormalised)),
)  # fmt: skip

BIGBIRD_CACHE = planting("bigbird_layer_stateful")
BIGBIRD_CACHE.plant(
    ("cache_empty", "empty places of the cache count", _all_in_cache),
    ("cache_reversed", "the cache has its newest step first",
     {"K0": _older_first, "V0": _older_first}),
)  # fmt: skip

OF_SOFTMAX = [*ATTENTION.bugs, *CACHE.bugs, *BIGBIRD.bugs, *BIGBIRD_CACHE.bugs]
