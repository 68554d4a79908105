"""Planted bugs in recency biases: the first index, signs, the normalization, the other form."""

from math import log

import numpy as np

from refssm.conformance.planted.planting import Planting, of_result
from refssm.hope import HOPE_RECENCY_EXPONENTIAL, HOPE_RECENCY_POWER

POWER = Planting(HOPE_RECENCY_POWER, "float32")
EXPONENTIAL = Planting(HOPE_RECENCY_EXPONENTIAL, "float32")


def _j(h):
    return np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype)


for _p in (POWER, EXPONENTIAL):
    _p.usual()
    _p.plant(
        ("reversed", "the oldest weighted as the newest",
         lambda right, h, rate: right(h[..., ::-1], rate)[..., ::-1]),
        ("unit_mean", "weights of mean 1", lambda right, h, rate:
         right(h, rate) / right(np.ones_like(h.real), rate).mean(-1, keepdims=True)),
        ("first_lost", "h_0 dropped", lambda right, h, rate: right(h, rate) * (_j(h) > 0)),
        ("twice", "applied twice", lambda right, h, rate: right(right(h, rate), rate)),
        ("forgotten", "not applied", lambda right, h, rate: right(h, 0 * rate)),
        ("of_squares", "the weights of |h|²", lambda right, h, rate: right(h, rate / 2)),
    )  # fmt: skip
    _p.plant(
        ("conjugated", "h*", {"h": np.conj}),
        ("real_part", "Re h", {"h": lambda h: h.real.astype(h.dtype)}),
        by="value[complex64]",
    )
    _p.plant(
        ("parameters_unweighted", "dh = dy",
         lambda right, dy, h, rate: (dy.astype(h.dtype), right(dy, h, rate)[1])),
        ("rate_missing", "no gradient of the rate", of_result(lambda dh, dr: (dh, 0 * dr))),
        ("rate_sign", "the rate's with the other sign", of_result(lambda dh, dr: (dh, -dr))),
        ("parameters_reversed", "dh backwards", {"h": lambda g: g[..., ::-1]}),
        ("rate_of_logarithm", "the rate's gradient halved", of_result(lambda dh, dr: (dh, dr / 2))),
        by="gradient",
    )  # fmt: skip
    _p.plant(("as_jax", "the conjugate convention", {"h": np.conj}), by="gradient[complex64]")
POWER.plant(
    ("from_two", "(j + 2)^γ", lambda right, h, g: h * (_j(h) + 2) ** g[..., None]),
    ("from_zero", "max(j, 1)^γ", lambda right, h, g: h * np.maximum(_j(h), 1) ** g[..., None]),
    ("sign", "(j + 1)^−γ", {"gamma": np.negative}),
    ("natural", "e^{γj}", lambda right, h, g: HOPE_RECENCY_EXPONENTIAL.reference(h, -g)),
    ("linear", "1 + γ log(j + 1)", lambda right, h, g: h * (1 + g[..., None] * np.log(_j(h) + 1))),
    ("log10", "log₁₀ for log", {"gamma": lambda g: g / log(10)}),
    ("whole_power", "γ rounded", {"gamma": np.round}),
    ("square", "γ² for γ", {"gamma": lambda g: g * np.abs(g)}),
    ("positive_only", "γ below 0 taken as 0", {"gamma": lambda g: np.maximum(g, 0)}),
)  # fmt: skip
EXPONENTIAL.plant(
    ("from_one", "e^{−β(j+1)}", lambda right, h, b: right(h * np.exp(-b[..., None]), b)),
    ("sign", "e^{βj}", {"beta": np.negative}),
    ("polynomial", "(j + 1)^−β", lambda right, h, b: HOPE_RECENCY_POWER.reference(h, -b)),
    ("base_two", "2^{−βj}", {"beta": lambda b: b * log(2)}),
    ("first_order", "(1 − β)^j", lambda right, h, b: h * (1 - b[..., None]) ** _j(h)),
    ("square", "e^{−βj²}", lambda right, h, b: h * np.exp(-b[..., None] * _j(h) ** 2)),
    ("mean_index", "β/n for β", lambda right, h, b: right(h, b / max(1, h.shape[-1]))),
    ("growth_clipped", "β below 0 taken as 0", {"beta": lambda b: np.maximum(b, 0)}),
    ("rate_clipped", "β beyond 1 taken as 1", {"beta": lambda b: np.minimum(b, 1)}),
)
