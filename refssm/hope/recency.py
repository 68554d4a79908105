"""Recency biases: larger weights for parameters of the recent past, when a HOPE layer starts.

power: h_j (j + 1)^γ    as published [yu2024hope]
exponential: h_j e^{−βj}
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import recency_powers, recency_rates, taps


def hope_recency_power(h, gamma):
    """y_j = h_j (j + 1)^γ.

    Signature ``(n),()->(n)``: `h` the Markov parameters, `gamma` the power, real; a negative power
    gives the recent past more weight; leading axes broadcast. Any of float32, float64, longdouble
    and their complex types; the result has ``np.result_type(h, gamma)``. Units: those of `h`. h_0
    stays.

    Raises ValueError if sizes disagree, TypeError for other types and complex `gamma`. Source:
    [yu2024hope].

    >>> import refssm
    >>> refssm.hope_recency_power([4.0, 4.0, 4.0, 4.0], -0.5)
    array([4.        , 2.82842712, 2.30940108, 2.        ])
    """
    return h * np.exp(gamma[..., None] * _logarithms(h))


def _logarithms(h):
    """log(j + 1)."""
    return np.log1p(np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype))


def hope_recency_power_vjp(dy, h, gamma):
    """∂y_j/∂h_j = (j + 1)^γ,  ∂y_j/∂γ = y_j log(j + 1).

    Returns `(dh, dgamma)`, shaped like `h` and `gamma`.
    """
    return _weighted_back(dy, h, gamma[..., None] * _logarithms(h), _logarithms(h), gamma)


def _weighted_back(dy, h, exponent, slope, parameter):
    """Gradients of h e^exponent, with exponent = slope · parameter."""
    weights = np.exp(exponent)
    dh = dy * weights
    d = (dy.conj() * (h * weights) * slope).sum(-1)
    return unbroadcast(dh, h), unbroadcast(d, parameter)


HOPE_RECENCY_POWER = Operator(
    reference=hope_recency_power,
    signature="(n),()->(n)",
    inputs={"h": taps, "gamma": recency_powers},
    batch="d, d",
    traits=frozenset({"causal", "linear:h"}),
    citation="yu2024hope",
    tags=("HOPE recency weights by a power",),
)
hope_recency_power = HOPE_RECENCY_POWER.checked(hope_recency_power)
hope_recency_power_vjp = HOPE_RECENCY_POWER.checked_vjp(hope_recency_power_vjp)


def hope_recency_exponential(h, beta):
    """y_j = h_j e^{−βj}.

    Signature ``(n),()->(n)``: as `hope_recency_power`, with `beta` the rate per parameter, positive
    to give the recent past more weight: each weight is e^{−β} times the one before. Source:
    [yu2024hope].

    >>> import numpy as np
    >>> import refssm
    >>> refssm.hope_recency_exponential([4.0, 4.0, 4.0, 4.0], np.log(2))
    array([4. , 2. , 1. , 0.5])
    """
    return h * np.exp(-beta[..., None] * _indices(h))


def _indices(h):
    """j."""
    return np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype)


def hope_recency_exponential_vjp(dy, h, beta):
    """∂y_j/∂h_j = e^{−βj},  ∂y_j/∂β = −j y_j.

    Returns `(dh, dbeta)`, shaped like `h` and `beta`.
    """
    return _weighted_back(dy, h, -beta[..., None] * _indices(h), -_indices(h), beta)


HOPE_RECENCY_EXPONENTIAL = Operator(
    reference=hope_recency_exponential,
    signature="(n),()->(n)",
    inputs={"h": taps, "beta": recency_rates},
    batch="d, d",
    traits=frozenset({"causal", "linear:h"}),
    citation="yu2024hope",
    tags=("HOPE recency weights by an exponential",),
)
hope_recency_exponential = HOPE_RECENCY_EXPONENTIAL.checked(hope_recency_exponential)
hope_recency_exponential_vjp = HOPE_RECENCY_EXPONENTIAL.checked_vjp(hope_recency_exponential_vjp)
