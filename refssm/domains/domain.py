"""Domains: named maps from the unit square, and how draws are arranged along the axes.

A map receives two arrays of numbers in [0, 1] and returns complex numbers. The first map of a
domain is the simplest and sends (0, 0) to a simple value, so failures shrink well. Real arrays use
the same maps: the second coordinate is rounded to 0 or ½, where a phase is 0 or π, and the real
part is used. A texture arranges the draws along the axes (`TEXTURES`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

NOTHING: Mapping = MappingProxyType({})
Map = Callable[[np.ndarray, np.ndarray], np.ndarray]

# How draws are arranged. each: every entry its own draw. constant: one number along the first core
# axis (time). channel: one modulus along it, each entry its own phase. impulse, late: all places of
# that axis are 0 but one, anywhere or near the end. fading: decays exponentially along it. gaps:
# some entries exactly 0. subnormal: entries times 1/16 of the smallest normal number of the judged
# type. beside: close to the poles. diagonal, lower: only that part of the matrix is not 0. cycle:
# one entry in each row and column, so its powers multiply entries and never add.
WAVE_TEXTURES = ("each", "constant", "channel", "impulse", "late", "gaps")
SIGNAL_TEXTURES = (*WAVE_TEXTURES, "subnormal")
TEXTURES = (*SIGNAL_TEXTURES, "fading", "beside", "diagonal", "lower", "cycle")

# Of structured cases, a small share of all. Close to a structure for which programs take shortcuts:
# alike: all entries within 3 % or 1e-5 of one number, so members of a batch too. nearly diagonal,
# nearly symmetric: the rest is 1e-9 or 1e-5 of it, or 1e-5 or 1e-3. zero pivot: I − ½A or I − A has
# one, so that elimination has to exchange rows; dt = 1. And an impulse before one
# strong decay: first: only the first step is not 0. At the second step, decayed: times e^-30 to
# e^-100; lowered: minus 30 to 100; stretched: 3 to 10. ten: all entries about −10.
CLOSE_TEXTURES = ("alike", "nearly diagonal", "nearly symmetric", "zero pivot")
DECAYING_TEXTURES = ("decayed", "lowered", "stretched")
STRUCTURED_TEXTURES = (*CLOSE_TEXTURES, *DECAYING_TEXTURES, "first", "ten")
# Of cases in which a softplus bends. bend: just above places at which programs replace it by its
# argument. near 1: the last 32nd part of a map.
BEND_TEXTURES = ("bend", "near 1")
ALIKE: Mapping = MappingProxyType({"close": ("alike",)})


# Arguments that are no real or complex numbers: they are not rounded and have no gradient.
# Offsets are whole numbers between 0 and the length; a map draws them as parts of the length.
DISCRETE = ("flag", "offsets")


@dataclass(frozen=True, eq=False)
class Domain:
    """A set of numbers, drawn by named maps from the unit square."""

    summary: str
    maps: Mapping[str, Map]
    tame: tuple[str, ...]  # maps that no algorithm under- or overflows on
    textures: tuple[str, ...] = ("each",)
    kind: str = "either"  # like the case; "real", "complex", "flag" (boolean), "offsets" (below)
    fit: Callable[[np.ndarray], np.ndarray] | None = None  # makes a whole array valid
    holds: Callable[[np.ndarray], bool] | None = None  # what `fit` makes true of a whole array
    meets: str = ""  # the argument with this one's poles
    span: bool = False  # entries are multiplied along the first core axis
    exponent: bool = False  # entries are multiplied by the time, which is 0 at the first output
    finite: bool = False  # an infinity gives ∞ − ∞ in some algorithms, not in others
    padded: bool = False  # all entries but the newest may multiply zeros before the start
    newest: int = 0  # the entry of the last axis that multiplies the newest input
    decay: bool = False  # multiplies the state, which is 0 before the first step: a, or its log
    tame_textures: tuple[str, ...] = ("each", "constant")  # textures of a tame case
    follows: str = ""  # the argument whose columns its first row multiplies
    entry_by_entry: bool = False  # what it follows it multiplies entry by entry, by 0 to −1
    # textures of "close" and "strong" cases
    structured: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NOTHING)

    def __post_init__(self):
        assert self.tame, f"{self.summary}: no tame map"
        assert set(self.tame) <= set(self.maps), f"{self.summary}: {self.tame}"
        assert set(self.textures) <= set(TEXTURES), f"{self.summary}: {self.textures}"
        assert set(self.structured) <= {"close", "strong", "bend"}
        assert {t for ts in self.structured.values() for t in ts} <= {
            *STRUCTURED_TEXTURES,
            *BEND_TEXTURES,
        }
        assert set(self.tame_textures) & set(self.textures), f"{self.summary}: no tame texture"

    @property
    def real(self) -> bool:
        """True if its numbers are real even in complex cases."""
        return self.kind in ("real", *DISCRETE)

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """Numbers of this domain from points of the unit square."""
        if not real:
            return self.maps[name](a, b).astype(complex)
        return np.real(self.maps[name](a, np.where(b < 0.5, 0.0, 0.5))).astype(float)


@dataclass(frozen=True)
class Counts:
    """Integers of a keyword argument, the simplest first."""

    summary: str
    values: tuple[int, ...]
    wanted: str = "an integer >= 1"
    multiple: int = 1  # all are multiples of this
    at_most: str = ""  # the other keyword that is an upper limit
    divides: str = ""  # the core dimension that it divides; None is all of it

    def admits(self, value, beside: Mapping = NOTHING) -> bool:
        """True if the argument may be `value` together with the other keywords `beside`."""
        if self.divides and value is None:
            return True
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        fits = whole and value <= beside.get(self.at_most, value)
        return bool(fits and value >= 1 and value % self.multiple == 0)

    def fits(self, value, sizes: Mapping) -> bool:
        """True if `value` divides its core dimension."""
        return not self.divides or value is None or sizes[self.divides] % value == 0

    def fitted(self, value, sizes: Mapping):
        """`value`, or all of the core dimension that it does not divide."""
        return value if self.fits(value, sizes) else sizes[self.divides]


@dataclass(frozen=True)
class Numbers:
    """Real numbers of a keyword argument between bounds, the simplest first.

    Drawn values have few binary digits, so no type rounds them.
    """

    summary: str
    values: tuple[float, ...]
    wanted: str
    least: float = -np.inf
    largest: float = np.inf
    close: tuple[float, ...] = ()  # beside values for which programs take shortcuts
    at_most: str = ""  # the other keyword that is an upper limit

    def admits(self, value, beside: Mapping = NOTHING) -> bool:
        """True if the argument may be `value` together with the other keywords `beside`."""
        limit = beside.get(self.at_most, self.largest)
        beyond = _real(value) and _real(limit) and value > limit
        return _real(value) and bool(self.least <= value <= self.largest) and not beyond

    def fits(self, value, sizes: Mapping) -> bool:
        """True: no core dimension limits a real number."""
        del value, sizes
        return True

    def fitted(self, value, sizes: Mapping):
        """`value` itself."""
        del sizes
        return value


def _real(value) -> bool:
    """True for Python's and NumPy's real numbers."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool)


Static = Counts | Numbers
