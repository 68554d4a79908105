"""Domains in which values, real parts, imaginary parts or moduli are limited to ranges.

A domain's reach is the smallest and the largest real part, imaginary part and modulus of what it
draws. A limited domain draws within its reach and within all limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from refssm.conformance.usage_error import UsageError
from refssm.domains import DISCRETE, Domain

WITHIN = ("each", "constant", "channel")  # textures that do not scale the values
WITH_ZERO = ("impulse", "late", "gaps", "fading", "diagonal", "lower")
ROUNDING = 2.0**-8  # of bfloat16, the type with the fewest bits
PARTS = {"re": np.real, "im": np.imag, "abs": np.abs}
WORDS = {"re": "a real part", "im": "an imaginary part", "abs": "a modulus"}
GRID = 65  # points of each side of the unit square: multiples of 1/64, where a phase is 0, π/2, π
POOL = 2**12  # numbers of a domain within the limits
ROUNDS, NEAREST = 48, 64  # of the search for such numbers


class Limit(NamedTuple):
    """A range of an argument's value, or of a part of it.

    The value ("") is the number itself if it is real, the modulus if it is complex.
    """

    part: str
    low: float
    high: float

    def of(self, name: str) -> str:
        """The limit as typed, for one argument."""
        name = f"{self.part}({name})" if self.part else name
        return f"{name}={self.low:g}..{self.high:g}"

    def as_part(self, real: bool) -> tuple[str, float, float]:
        """The part that is limited and its range, of real or of complex numbers."""
        return self.part or ("re" if real else "abs"), self.low, self.high


@cache
def reach(domain: Domain, real: bool) -> Mapping[str, tuple[float, float]]:
    """The smallest and the largest real part, imaginary part and modulus of a domain."""
    a, b = (x.ravel() for x in np.meshgrid(*[np.linspace(0, 1, GRID)] * 2))
    x = np.concatenate([domain.draw(name, a, b, real) for name in domain.maps])
    return {part: (float(of(x).min()), float(of(x).max())) for part, of in PARTS.items()}


def holds_zero(domain: Domain, real: bool) -> bool:
    """True if zeros are drawn, by a map or by a texture."""
    return not {*WITH_ZERO}.isdisjoint(domain.textures) or reach(domain, real)["abs"][0] == 0


def bounds_within(domain: Domain, limits, real: bool) -> dict[str, tuple[float, float]]:
    """The ranges of all parts: the reach of the domain, cut by the limits; may be empty."""
    ends = dict(reach(domain, real))
    for part, low, high in (limit.as_part(real) for limit in limits):
        ends[part] = max(ends[part][0], low), min(ends[part][1], high)
    return ends


def outside(x: np.ndarray, ends) -> np.ndarray:
    """How far numbers are outside of the ranges of their parts, 0 inside."""
    far = np.zeros(x.shape)
    for part, (low, high) in ends.items():
        size = PARTS[part](x)
        far = far + np.maximum(low - size, 0) + np.maximum(size - high, 0)
    return far


@cache
def numbers_within(domain: Domain, limits: tuple[Limit, ...], real: bool) -> np.ndarray:
    """Numbers of a domain within the limits, each as drawn by a map; empty if none is found.

    Points of the unit square are tried at random, then more of them around the nearest ones.
    """
    ends, rng = bounds_within(domain, limits, real), np.random.default_rng(0)
    if any(low > high for low, high in ends.values()):
        return np.zeros(0)
    found = []
    for name in domain.maps:
        points = rng.random((2, POOL))
        width, inside = 1.0, np.zeros(0)
        for _ in range(ROUNDS):
            x = domain.draw(name, points[0], points[1], real)
            far = outside(x, ends)
            inside = np.concatenate([inside, x[far == 0]])
            if inside.size >= POOL // 8:
                break
            near, width = points[:, np.argsort(far, kind="stable")[:NEAREST]], width / 2
            steps = width * (rng.random((2, POOL)) - 0.5)
            points = np.clip(np.repeat(near, POOL // NEAREST, axis=1) + steps, 0, 1)
        found.append(inside)
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Narrowed(Domain):
    """A domain that replaces draws outside of its limits; `whole` is the domain without them."""

    whole: Domain | None = None
    limits: tuple[Limit, ...] = field(default=())

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """Values of the domain that lie in the ranges."""
        assert self.whole is not None
        x = self.whole.draw(name, a, b, real)
        ends = bounds_within(self.whole, self.limits, real)
        again = self._again(x, a, b, real)
        return np.where(outside(x, ends) == 0, x, again)

    def _again(self, x, a, b, real: bool) -> np.ndarray:
        """Values within the limits, log-uniform where one range says all, else drawn before."""
        assert self.whole is not None
        ends = bounds_within(self.whole, self.limits, real)
        parts = {limit.as_part(real)[0] for limit in self.limits}
        alone = parts == {"re" if real else "abs"}
        scaled = _spread(*ends["re" if real else "abs"], a) if alone else x
        if alone and not real:
            size = np.abs(x)
            scaled = scaled * np.where(size > 0, x / np.where(size > 0, size, 1.0), 1.0)
        wrong = outside(scaled, ends) > (0 if real else 2.0**-50 * np.abs(scaled))
        if not wrong.any():
            return scaled
        pool = numbers_within(self.whole, self.limits, real)
        if pool.size == 0:  # of a single number, which no map draws
            return scaled
        which = (a * 2**26).astype(np.int64) * 7919 + (b * 2**26).astype(np.int64)
        return np.where(wrong, pool[which % pool.size], scaled)


def _spread(low: float, high: float, a) -> np.ndarray:
    """Numbers in a range, uniform in the logarithm if all are positive."""
    spread = low * (high / low) ** a if low > 0 else low + (high - low) * a
    return np.clip(spread, low, high)  # the power may round to a value outside


def may_hold(domain: Domain, x: np.ndarray, drawn: np.ndarray) -> bool:
    """True if all numbers but 0 are, up to a rounding, in the ranges of the domain's parts.

    Textures, and a `fit` of whole arrays, reach beyond them: the ranges of `drawn` count, too.
    """
    if domain.kind in DISCRETE:
        return True
    whole, limits = (domain.whole, domain.limits) if isinstance(domain, Narrowed) else (domain, ())
    assert whole is not None
    ends = bounds_within(whole, limits, not np.iscomplexobj(x))
    kept, drawn = (a[a != 0].astype(np.result_type(a, np.float64)) for a in (x, drawn))
    for part, (low, high) in ends.items():
        size = PARTS[part](drawn)
        ends[part] = float(size.min(initial=low)), float(size.max(initial=high))
    return bool((outside(kept, ends) <= ROUNDING * np.abs(kept)).all())


def admitted(called: str, domain: Domain, name: str, limits: tuple[Limit, ...]) -> Narrowed:
    """The domain of the argument `name` within limits; UsageError if no number is left."""
    for limit in limits:
        if domain.kind == "complex" and not limit.part and limit.high < 0:
            asked = f"--where {limit.of(name)}: {called} is complex, so the range is of its modulus"
            raise UsageError(f"{asked}, and no modulus is negative")
    kinds = [real for real in (True, False) if domain.kind != ("complex" if real else "real")]
    left = [real for real in kinds if _some(domain, limits, real)]
    if not left:
        raise UsageError(_none_left(called, domain, name, limits, kinds[-1]))
    zero = all(limit.low <= 0 <= limit.high for limit in limits)
    kept = (*WITHIN, *(WITH_ZERO if zero else ()))
    textures = tuple(t for t in domain.textures if t in kept) or ("each",)
    ranges = ", ".join(limit.of(name).removeprefix(f"{name}=") for limit in limits)
    return Narrowed(
        f"{domain.summary}; limited to {ranges}",
        domain.maps,
        tuple(domain.maps),
        textures,
        domain.kind if left == kinds else "real" if left[0] else "complex",
        meets=domain.meets,
        span=domain.span,
        exponent=domain.exponent,
        whole=domain,
        limits=limits,
    )


def _some(domain: Domain, limits, real: bool) -> bool:
    """True if some number of the domain is within the limits."""
    ends = bounds_within(domain, limits, real)
    if any(low > high for low, high in ends.values()):
        return False
    parts = {limit.as_part(real)[0] for limit in limits}
    return parts == {"re" if real else "abs"} or numbers_within(domain, limits, real).size > 0


def _none_left(called: str, domain: Domain, name: str, limits, real: bool) -> str:
    """The sentence on limits within which there is no number of the domain."""
    usual, ends = reach(domain, real), bounds_within(domain, limits, real)
    asked = ", ".join(limit.of(name) for limit in limits)
    for limit in limits:
        part = limit.as_part(real)[0]
        if ends[part][0] > ends[part][1] and not usual[part][0] <= limit.low <= usual[part][1]:
            low, high = usual[part]
            size = "values" if real and part == "re" else WORDS[part]
            return (
                f"--where {limit.of(name)} is outside of the domain: {called} has {size} "
                f"from {low:.3g} to {high:.3g}"
            )
    return f"--where {asked}: no number in the domain of {called} is in all of these ranges"
