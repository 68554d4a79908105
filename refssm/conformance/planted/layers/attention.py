"""Planted bugs of layers of heads with queries, keys and values.

Linear attention is written as weights over pairs of steps, so that a bug is another weight, another
normaliser or another feature.
"""

from types import SimpleNamespace

import numpy as np

from refssm.activations import sigmoid, silu, softplus
from refssm.conformance.planted.layers.gates import with_operators
from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers._namespaces import bare
from refssm.layers._parts.filters import convolved
from refssm.layers._parts.heads import beside, headed, merged
from refssm.layers.attention import linear_attention, mamba2, retnet
from refssm.norms import rms_norm


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


def _same(x):
    return x


def _normal(y):
    """The norm of each head."""
    return bare().layer_norm(y, np.ones(y.shape[-1], y.dtype), np.zeros(y.shape[-1], y.dtype))


def _retained(decays=_same, angles=_same, keys=_same, norm=_normal, gate=silu, before=None):
    """RetNet with other log decays, angles, keys, norm or gate; `before` gates before the norm."""

    def program(u, *parameters):
        p = retnet.RetNet(*parameters)
        q, k, v, log_a, theta = retnet._given(p, u)
        y = retnet.retained(bare(), q, keys(k), v, decays(log_a), angles(theta))[0]
        z = headed(u, p.W_gate)
        return merged(norm(y * before(z)) if before else norm(y) * gate(z), p.W_out)

    return instead(program)


def _of_all_heads(y):
    """One norm over the values of all heads."""
    rows = np.moveaxis(y, -3, -2)
    return np.moveaxis(_normal(rows.reshape(*rows.shape[:-2], -1)).reshape(rows.shape), -2, -3)


RETNET = planting("retnet_layer")
RETNET.plant(
    ("turn", "the keys are not turned", _retained(angles=np.zeros_like)),
    ("turn_sign", "the keys are turned the other way", _retained(angles=np.negative)),
    ("turn_rotary", "angles 10000^{−j/n}",
     _retained(angles=lambda a: 10000.0 ** (-np.arange(len(a)) / len(a)))),
    ("conjugate", "k for k*", _retained(keys=np.conj)),
    ("decay", "no head forgets", _retained(decays=np.zeros_like)),
    ("decay_equal", "the first head's decay for all", _retained(decays=lambda a: 0 * a + a[:1])),
    ("decay_heads", "the heads' decays in the other order", _retained(decays=lambda a: a[::-1])),
    ("decay_complement", "2^{−5−i} for 1 − 2^{−5−i}",
     _retained(decays=lambda a: np.log(-np.expm1(a)))),
    ("norm", "the norm is forgotten", _retained(norm=_same)),
    ("norm_heads", "one norm for all heads together", _retained(norm=_of_all_heads)),
    ("norm_rms", "the norm does not subtract the mean",
     _retained(norm=lambda y: rms_norm(y, np.ones(y.shape[-1], y.dtype)))),
    ("gate_sigmoid", "σ(z) for z σ(z)", _retained(gate=sigmoid)),
    ("gate_before", "the gate before the norm", _retained(before=silu)),
)  # fmt: skip


def _of_scan(change):
    """Mamba-2 with another scan, from the right one and its arguments by name."""
    names = ("x", "dt", "A", "B", "C", "D", "z", "dt_bias")

    def scan(right, *args):
        return change(right, SimpleNamespace(**dict(zip(names, args, strict=True))))

    return with_operators(mamba2.MAMBA2_LAYER, mamba2_scan=scan)


def _rescan(right, a, **others):
    return right(*vars(SimpleNamespace(**vars(a) | others)).values())


def _softplus_none(right, a):
    """dt + bias itself as the step, where it is positive."""
    steps = np.maximum(a.dt + a.dt_bias[..., None], 0)
    y = bare().ssd_recurrent(steps[..., None] * a.x, steps * a.A[..., None], a.B, a.C)
    return (y + a.D[..., None, None] * a.x) * silu(a.z)


def _input_unscaled(right, a):
    """B x for Δ B x."""
    steps = softplus(a.dt + a.dt_bias[..., None])
    y = bare().ssd_recurrent(a.x, steps * a.A[..., None], a.B, a.C)
    return (y + a.D[..., None, None] * a.x) * silu(a.z)


def _gate_after_norm(u, *parameters):
    """The norm before the gate."""
    p, ops = mamba2.Mamba2(*parameters), bare()
    x, B, C = (convolved(ops, u, *stream)[0] for stream in mamba2._streams(p))
    A, z = -np.exp(p.log_rate), headed(u, p.W_z)
    one = np.ones_like(z)
    y = ops.mamba2_scan(x, mamba2._steps(p, u), A, B, C, p.D, one, p.dt_bias) / silu(one)
    scale, W = mamba2._last_map(p)
    return (rms_norm(beside(y), scale) * silu(beside(z))) @ W


MAMBA2 = planting("mamba2_layer")
MAMBA2.plant(
    ("softplus", "softplus is forgotten", _of_scan(_softplus_none)),
    ("input_unscaled", "the input without its step", _of_scan(_input_unscaled)),
    ("rate_heads", "the heads' rates in the other order",
     _of_scan(lambda right, a: _rescan(right, a, A=a.A[::-1].copy()))),
    ("gate_sigmoid", "σ(z) for z σ(z)",
     _of_scan(lambda right, a: _rescan(right, a, z=np.ones_like(a.z)) / silu(np.ones_like(a.z))
              * sigmoid(a.z))),
    ("gate_after", "the norm before the gate", instead(_gate_after_norm)),
    ("norm", "the norm is forgotten",
     with_operators(mamba2.MAMBA2_LAYER, rms_norm=lambda right, x, scale: scale * x)),
    ("norm_layer", "a norm that subtracts the mean",
     with_operators(mamba2.MAMBA2_LAYER,
                    rms_norm=lambda right, x, scale: bare().layer_norm(x, scale, 0 * scale))),
    ("filter_linear", "SiLU after the filters is forgotten",
     with_operators(mamba2.MAMBA2_LAYER, causal_conv1d=lambda right, u, k, bias:
                    bare().short_convolution(u, k) + bias[..., None])),
)  # fmt: skip

OF_ATTENTION = [*LINEAR_ATTENTION.bugs, *RETNET.bugs, *MAMBA2.bugs]
