"""Planted bugs of layers of heads with queries, keys and values.

Linear attention is written as weights over pairs of steps, so that a bug is another weight, another
normaliser or another feature.
"""

import numpy as np

from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers._parts.heads import headed, merged
from refssm.layers.attention import linear_attention


def _transposed(x):
    return np.swapaxes(x, -1, -2)


def _past(l: int, dtype):
    """1 where the second step is not later than the first."""
    return np.tril(np.ones((l, l), dtype))


def _weighted(weights=lambda q, k: q @ _transposed(k), features=linear_attention.features,
              total=lambda W, all_: W.sum(-1, keepdims=True), mask=_past):  # fmt: skip
    """Linear attention with other `weights` of features, `features`, sums or `mask`."""

    def program(u, *parameters):
        p = linear_attention.LinearAttention(*parameters)
        q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
        all_ = weights(features(q), features(k))
        W = all_ * mask(u.shape[-2], u.dtype)
        return merged(W @ v / total(W, all_), p.W_out)

    return instead(program)


def _of_one_head(q, k):
    """The keys of the first head for all."""
    return q @ _transposed(np.repeat(k[..., :1, :, :], k.shape[-3], -3))


def _of_scaled(x):
    """φ(x/⁴√n)."""
    return linear_attention.features(x / x.dtype.type(x.shape[-1] ** 0.25))


LINEAR_ATTENTION = planting("linear_attention_layer")
LINEAR_ATTENTION.plant(
    ("normaliser", "the weights are not normalised",
     _weighted(total=lambda W, all_: np.ones_like(W[..., :1]))),
    ("normaliser_future", "normalised by the weights of all steps",
     _weighted(total=lambda W, all_: all_.sum(-1, keepdims=True))),
    ("normaliser_mean", "divided by the number of steps",
     _weighted(total=lambda W, all_: np.arange(1, W.shape[-1] + 1, dtype=W.dtype)[:, None])),
    ("future", "the mask is forgotten",
     _weighted(mask=lambda l, dtype: np.ones((l, l), dtype))),
    ("mask_transposed", "the mask is transposed",
     _weighted(mask=lambda l, dtype: _past(l, dtype).T)),
    ("elu", "elu without the 1",
     _weighted(features=lambda x: linear_attention.features(x) - 1)),
    ("relu", "the positive part for elu + 1",
     _weighted(features=lambda x: np.maximum(x, 0) + x.dtype.type(1e-3))),
    ("exponential", "e^x for elu(x) + 1", _weighted(features=np.exp)),
    ("scaled", "queries and keys divided by ⁴√n, as under a softmax",
     _weighted(features=_of_scaled)),
    ("exchanged", "queries and keys are exchanged", _weighted(lambda q, k: k @ _transposed(q))),
    ("heads", "the keys of the first head for all", _weighted(_of_one_head)),
)  # fmt: skip

OF_ATTENTION = [*LINEAR_ATTENTION.bugs]
