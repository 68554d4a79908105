"""Parametrisations of one argument, and the domains of their parameters; see `refssm.adapters`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from refssm.activations import sigmoid, softplus
from refssm.domains import Domain

SMALLEST = 1e-8  # rates and steps below, and those of the other sign, are drawn as this one
TEXTURES = ("each", "constant", "channel", "gaps")  # those that mean the same of a parameter


def with_imaginary_part(theta, real):
    """The number with this real part and the imaginary part of θ."""
    return real + 1j * theta.imag if np.iscomplexobj(theta) else real


class Map(NamedTuple):
    """A parametrisation of one argument A: A(θ), dRe A/dRe θ from θ and A, and θ(A)."""

    forward: Callable
    slope: Callable
    inverse: Callable


def _of_rates(forward, slope, inverse) -> Map:
    """Of Re A = −forward(Re θ) with the imaginary part of θ; `inverse` of positive rates."""
    return Map(
        lambda theta: with_imaginary_part(theta, -forward(theta.real)),
        lambda theta, A: -slope(theta.real),
        lambda A: with_imaginary_part(A, inverse(np.maximum(np.abs(A.real), SMALLEST))),
    )


MAPS = {
    "log_dt": Map(np.exp, lambda theta, dt: dt, lambda dt: np.log(np.maximum(dt.real, SMALLEST))),
    "neg_exp": _of_rates(np.exp, np.exp, np.log),
    "neg_softplus": _of_rates(softplus, sigmoid, lambda rate: rate + np.log(-np.expm1(-rate))),
}


@dataclass(frozen=True, eq=False)
class _Parameters(Domain):
    """The numbers θ of an argument's domain, also of one that `--where` has narrowed."""

    argument: Domain | None = None
    parameter: str = ""

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """θ for the argument's own draws."""
        assert self.argument is not None
        key = name.removeprefix(f"{self.parameter} of ")
        return MAPS[self.parameter].inverse(self.argument.draw(key, a, b, real))


def parameter_of(domain: Domain, name: str) -> Domain:
    """The domain of θ: the maps of the argument, each by the inverse."""
    parameter = MAPS[name]

    def fitted(theta):
        assert domain.fit is not None
        return parameter.inverse(domain.fit(parameter.forward(theta)))

    fields = {key: getattr(domain, key) for key in Domain.__dataclass_fields__}
    fields |= {
        "summary": f"{name} of {domain.summary}",
        "maps": {f"{name} of {key}": draw for key, draw in domain.maps.items()},  # see `draw`
        "tame": tuple(f"{name} of {key}" for key in domain.tame),
        "textures": tuple(t for t in domain.textures if t in TEXTURES),
        "fit": domain.fit and fitted,
        "structured": {},
        "span": False,
    }
    return _Parameters(**fields, argument=domain, parameter=name)
