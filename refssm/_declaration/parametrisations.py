"""Parametrisations of one argument, and the domains of their parameters; see `refssm.adapters`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from refssm.activations import sigmoid, softplus
from refssm.adapters import Adapter
from refssm.domains import Domain, gate_logits, logits, queries

SMALLEST = 1e-8  # rates and steps below, and those of the other sign, are drawn as this one
GATE = 2.0**-14  # gates below, the least normal number of float16, are drawn as this one
TEXTURES = ("each", "constant", "channel", "gaps")  # those that mean the same of a parameter
NO_GATE = "gaps", "linear_gate"  # a gate of 0 has no logarithm, and the derivative by it is 0/0


def with_imaginary_part(theta, real):
    """The number with this real part and the imaginary part of θ."""
    return real + 1j * theta.imag if np.iscomplexobj(theta) else real


class Map(NamedTuple):
    """A parametrisation of one argument A: A(θ), dRe A/dRe θ from θ and A, and θ(A)."""

    forward: Callable
    slope: Callable
    inverse: Callable

    def back(self, g, theta, A):
        """The gradient by θ from that by A, entry by entry."""
        slope = self.slope(theta, A)
        # the imaginary part is its own parameter
        return with_imaginary_part(g, slope * g.real) if np.iscomplexobj(theta) else slope * g


class MapOfRows(NamedTuple):
    """A map of rows, along the last axis: A(θ), the gradient from g, θ and A, and θ(A)."""

    forward: Callable
    back: Callable
    inverse: Callable


def _of_rates(forward, slope, inverse) -> Map:
    """Of Re A = −forward(Re θ) with the imaginary part of θ; `inverse` of positive rates."""
    return Map(
        lambda theta: with_imaginary_part(theta, -forward(theta.real)),
        lambda theta, A: -slope(theta.real),
        lambda A: with_imaginary_part(A, inverse(np.maximum(np.abs(A.real), SMALLEST))),
    )


def _before_softplus(rate):
    """log(e^rate − 1)."""
    return rate + np.log(-np.expm1(-rate))


def _log_2(theta):
    return np.log(np.full((), 2, np.finfo(theta.dtype).dtype))


def _logit(beta):
    beta = np.clip(beta, SMALLEST, 1 - SMALLEST)
    return np.log(beta) - np.log1p(-beta)


MAPS = {
    "log_dt": Map(np.exp, lambda theta, dt: dt, lambda dt: np.log(np.maximum(dt.real, SMALLEST))),
    "neg_exp": _of_rates(np.exp, np.exp, np.log),
    "neg_softplus": _of_rates(softplus, sigmoid, _before_softplus),
    "linear_gate": Map(
        np.log, lambda theta, log_g: 1 / theta, lambda log_g: np.maximum(np.exp(log_g), GATE)
    ),
    "base_2": Map(
        lambda theta: theta * _log_2(theta),
        lambda theta, log_g: _log_2(theta),
        lambda log_g: log_g / _log_2(log_g),
    ),
    "log_sigmoid": Map(
        lambda theta: -softplus(-theta),
        lambda theta, log_g: sigmoid(-theta),
        lambda log_g: -_before_softplus(np.maximum(-log_g, SMALLEST)),
    ),
    "sigmoid": Map(sigmoid, lambda theta, beta: sigmoid(theta) * sigmoid(-theta), _logit),
}


def _scaled(by) -> MapOfRows:
    """Of a factor; of 1/√n if that is 0."""

    def number(x, value):
        return np.full((), value, np.finfo(x.dtype).dtype)

    if by:
        return MapOfRows(
            lambda x: x * number(x, by),
            lambda g, x, A: g * number(g, by),
            lambda A: A / number(A, by),
        )
    root = lambda x: np.sqrt(number(x, x.shape[-1]))  # noqa: E731
    return MapOfRows(lambda x: x / root(x), lambda g, x, A: g / root(x), lambda A: A * root(A))


def _normalised(eps) -> MapOfRows:
    def size(x):
        small = np.full((), eps, np.finfo(x.dtype).dtype)
        return np.sqrt((x * x).sum(-1, keepdims=True) + small)

    def back(g, x, A):
        return (g - A * (g * A).sum(-1, keepdims=True)) / size(x)

    return MapOfRows(lambda x: x / size(x), back, lambda A: A)


def _oldest_first(eps) -> MapOfRows:
    del eps
    return MapOfRows(lambda k: k[..., ::-1], lambda g, k, A: g[..., ::-1], lambda A: A[..., ::-1])


ROWS = {"scaled": _scaled, "normalised": _normalised, "oldest_first": _oldest_first}


def map_of(adapter: Adapter) -> Map | MapOfRows:
    """The parametrisation that an adapter of one argument names."""
    made = ROWS.get(adapter.name)
    return made(adapter.number) if made else MAPS[adapter.name]


# Parameters that are not drawn by the inverse: it would lose what the map is tested by, numbers
# for which σ is 1, and rows of any norm
OWN = {
    "log_sigmoid": gate_logits,
    "sigmoid": replace(logits, exponent=False),
    "normalised": queries,
}
SAME = ("scaled", "oldest_first")  # numbers of the argument's own domain


@dataclass(frozen=True, eq=False)
class _Parameters(Domain):
    """The numbers θ of an argument's domain, also of one that `--where` has narrowed."""

    argument: Domain | None = None
    parameter: Adapter = Adapter("")  # noqa: RUF009  # frozen

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """θ for the argument's own draws."""
        assert self.argument is not None
        key = name.removeprefix(f"{self.parameter.name} of ")
        return map_of(self.parameter).inverse(self.argument.draw(key, a, b, real))


def parameter_of(domain: Domain, adapter: Adapter) -> Domain:
    """The domain of θ: its own, or the maps of the argument, each by the inverse."""
    name, parameter = adapter.name, map_of(adapter)
    narrowed = type(domain) is not Domain
    if name == "oldest_first":
        domain = replace(domain, newest=-1)
    if name in OWN and not narrowed:
        return OWN[name]
    if name in SAME and not narrowed:
        return domain

    def fitted(theta):
        assert domain.fit is not None
        return parameter.inverse(domain.fit(parameter.forward(theta)))

    def held(theta):
        assert domain.holds is not None
        return domain.holds(parameter.forward(theta))

    fields = {key: getattr(domain, key) for key in Domain.__dataclass_fields__}
    fields |= {
        "summary": f"{name} of {domain.summary}",
        "maps": {f"{name} of {key}": draw for key, draw in domain.maps.items()},  # see `draw`
        "tame": tuple(f"{name} of {key}" for key in domain.tame),
        "textures": tuple(t for t in domain.textures if t in TEXTURES and (t, name) != NO_GATE),
        "fit": domain.fit and fitted,
        "holds": domain.holds and held,
        "structured": {},
        "span": False,
    }
    return _Parameters(**fields, argument=domain, parameter=adapter)
