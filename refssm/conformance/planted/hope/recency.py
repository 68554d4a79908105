"""Planted bugs in recency biases: the first index, signs, what is normalised, the other form."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.hope import HOPE_RECENCY_EXPONENTIAL, HOPE_RECENCY_POWER

POWER = Planting(HOPE_RECENCY_POWER, "float32")
EXPONENTIAL = Planting(HOPE_RECENCY_EXPONENTIAL, "float32")
power, exponential = POWER.right, EXPONENTIAL.right


def _indices(h):
    return np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype)


def _in_type(function):
    """In the type of h."""
    return lambda h, rate: function(h, rate).astype(np.result_type(h, rate))


def _unit_sum(h, weights):
    """The weights divided by their mean."""
    return h * weights / weights.mean(-1, keepdims=True)


def _weights(biased):
    return lambda h, rate: biased(np.ones_like(h.real), rate)


OF_POWER = {
    "from_two": ("(j + 2)^γ", lambda h, g: h * (_indices(h) + 2) ** g[..., None]),
    "from_zero": ("max(j, 1)^γ", lambda h, g: h * np.maximum(_indices(h), 1) ** g[..., None]),
    "sign": ("(j + 1)^−γ", lambda h, g: power(h, -g)),
    "natural": ("e^{γj}", lambda h, g: exponential(h, -g)),
    "linear": ("1 + γ log(j + 1)",
        lambda h, g: h * (1 + g[..., None] * np.log(_indices(h) + 1))),
    "log10": ("log₁₀ for log", lambda h, g: power(h, g / np.log(10))),
    "whole_power": ("γ rounded", lambda h, g: power(h, np.round(g))),
    "square": ("γ² for γ", lambda h, g: power(h, g * np.abs(g))),
    "positive_only": ("γ below 0 taken as 0", lambda h, g: power(h, np.maximum(g, 0))),
}  # fmt: skip
OF_EXPONENTIAL = {
    "from_one": ("e^{−β(j+1)}",
        lambda h, b: exponential(h * np.exp(-b[..., None]), b)),
    "sign": ("e^{βj}", lambda h, b: exponential(h, -b)),
    "polynomial": ("(j + 1)^−β", lambda h, b: power(h, -b)),
    "base_two": ("2^{−βj}", lambda h, b: exponential(h, b * np.log(2))),
    "first_order": ("(1 − β)^j", lambda h, b: h * (1 - b[..., None]) ** _indices(h)),
    "square": ("e^{−βj²}",
        lambda h, b: h * np.exp(-b[..., None] * _indices(h) ** 2)),
    "mean_index": ("β/n for β", lambda h, b: exponential(h, b / max(1, h.shape[-1]))),
    "growth_clipped": ("β below 0 taken as 0", lambda h, b: exponential(h, np.maximum(b, 0))),
    "rate_clipped": ("β beyond 1 taken as 1", lambda h, b: exponential(h, np.minimum(b, 1))),
}  # fmt: skip
OF_BOTH = {
    "reversed": ("the oldest weighted as the newest",
        lambda biased: lambda h, r: biased(h[..., ::-1], r)[..., ::-1]),
    "unit_mean": ("weights of mean 1",
        lambda biased: lambda h, r: _unit_sum(h, _weights(biased)(h, r))),
    "first_lost": ("h_0 dropped", lambda biased: lambda h, r: biased(h, r) * (_indices(h) > 0)),
    "twice": ("applied twice", lambda biased: lambda h, r: biased(biased(h, r), r)),
    "forgotten": ("not applied", lambda biased: lambda h, r: biased(h, 0 * r)),
    "of_squares": ("the weights of |h|²", lambda biased: lambda h, r: biased(h, r / 2)),
}  # fmt: skip
OF_BOTH_COMPLEX = {
    "conjugated": ("h*", lambda biased: lambda h, r: biased(h.conj(), r)),
    "real_part": ("Re h", lambda biased: lambda h, r: biased(h.real, r)),
}

GRADIENTS = {
    "parameters_unweighted": ("dh = dy", lambda p: _gradients(p, lambda dy, *g: (dy, g[1]))),
    "rate_missing": ("no gradient of the rate",
        lambda p: _gradients(p, lambda dy, *g: (g[0], 0 * g[1]))),
    "rate_sign": ("the rate's with the other sign",
        lambda p: _gradients(p, lambda dy, *g: (g[0], -g[1]))),
    "parameters_reversed": ("dh backwards",
        lambda p: _gradients(p, lambda dy, *g: (g[0][..., ::-1], g[1]))),
    "rate_of_logarithm": ("the rate's gradient halved",
        lambda p: _gradients(p, lambda dy, *g: (g[0], g[1] / 2))),
}  # fmt: skip


def _gradients(p, change):
    """The right gradients changed."""
    return lambda dy, h, r: tuple(
        g.astype(a.dtype) for g, a in zip(change(dy, *p.right_vjp(dy, h, r)), (h, r), strict=True)
    )


def _as_jax(p):
    """What the conjugate convention gives."""

    def vjp(dy, h, r):
        dh, dr = p.right_vjp(dy, h, r)
        return dh.conj(), dr

    return vjp


DEVIATIONS = []
for _p, _own in ((POWER, OF_POWER), (EXPONENTIAL, OF_EXPONENTIAL)):
    _p.usual()
    for _name, (_what, _wrong) in _own.items():
        _p.forward(_name, _what)(_in_type(_wrong))
    for _name, (_what, _make) in OF_BOTH.items():
        _p.forward(_name, _what)(_in_type(_make(_p.right)))
    for _name, (_what, _make) in OF_BOTH_COMPLEX.items():
        _p.forward(_name, _what, dtype="complex64")(_in_type(_make(_p.right)))
    for _name, (_what, _make) in GRADIENTS.items():
        _p.gradient(_name, _what)(_make(_p))
    _p.gradient("as_jax", "the conjugate convention", "complex64")(_as_jax(_p))
    DEVIATIONS += _p.bugs
