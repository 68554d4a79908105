"""Planted bugs of softmax attention: other scores, masks, normalisers, and cache places."""

import numpy as np

from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers._parts.heads import headed, merged
from refssm.layers.attention.attention import SoftmaxAttention


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

OF_SOFTMAX = [*ATTENTION.bugs, *CACHE.bugs]
