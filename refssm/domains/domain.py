"""What a domain is: named maps from the unit square, and how draws are arranged.

A map takes two arrays of numbers in [0, 1] and returns complex numbers; the first map of a domain
is the simplest and sends (0, 0) to a simple value, so failures shrink. Real arrays come from the
same maps: the second coordinate is snapped to 0 or ½, where a phase is 0 or π, and the real part
is taken. The draws themselves are arranged along the axes by a texture (`TEXTURES`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

NOTHING: Mapping = MappingProxyType({})
Map = Callable[[np.ndarray, np.ndarray], np.ndarray]

# How the draws are arranged. each: every entry its own. constant: one number along the first
# core axis (time). channel: one modulus along it, a phase each. impulse, late: all but one place
# of that axis zero, anywhere or near the end. fading: falling exponentially along it. gaps: some
# entries exactly zero. subnormal: every entry times a 16th of the judged type's smallest normal.
# beside: next to the poles. diagonal, lower: a matrix of which only that part is not zero. cycle:
# a matrix with one entry in each row and column, which its powers multiply and never add up.
WAVE_TEXTURES = ("each", "constant", "channel", "impulse", "late", "gaps")
SIGNAL_TEXTURES = (*WAVE_TEXTURES, "subnormal")
TEXTURES = (*SIGNAL_TEXTURES, "fading", "beside", "diagonal", "lower", "cycle")


@dataclass(frozen=True, eq=False)
class Domain:
    """A set of numbers, drawn by named maps of the unit square."""

    summary: str
    maps: Mapping[str, Map]
    tame: tuple[str, ...]  # maps that neither under- nor overflow on any route
    textures: tuple[str, ...] = ("each",)
    kind: str = "either"  # "real", "complex", "flag" (true or false), or that of the case
    fit: Callable[[np.ndarray], np.ndarray] | None = None  # makes a whole array admissible
    meets: str = ""  # the argument whose values are this one's poles
    span: bool = False  # entries are multiplied along the first core axis
    exponent: bool = False  # entries are multiplied by the time, which is 0 at the first output
    finite: bool = False  # an infinity meets ∞ − ∞ in an order that depends on the method
    padded: bool = False  # all entries but the first may meet zeros before the start
    decay: bool = False  # multiplies the state, which is 0 before the first step: a, or its log
    tame_textures: tuple[str, ...] = ("each", "constant")  # textures of a tame case
    follows: str = ""  # the argument that this one's first row multiplies, column by column

    def __post_init__(self):
        assert self.tame, f"{self.summary}: no tame map"
        assert set(self.tame) <= set(self.maps), f"{self.summary}: {self.tame}"
        assert set(self.textures) <= set(TEXTURES), f"{self.summary}: {self.textures}"
        assert set(self.tame_textures) & set(self.textures), f"{self.summary}: no tame texture"

    @property
    def real(self) -> bool:
        """Whether its numbers are real beside complex ones."""
        return self.kind in ("real", "flag")

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """Numbers of this domain from points of the unit square."""
        if not real:
            return self.maps[name](a, b).astype(complex)
        return np.real(self.maps[name](a, np.where(b < 0.5, 0.0, 0.5))).astype(float)


@dataclass(frozen=True)
class Counts:
    """Whole numbers of a keyword argument, the simplest first."""

    summary: str
    values: tuple[int, ...]
    wanted: str = "an integer >= 1"
    multiple: int = 1  # of which they are
    at_most: str = ""  # the other keyword that they never exceed

    def admits(self, value, beside: Mapping = NOTHING) -> bool:
        """Whether the argument may be `value` where the others are as `beside`."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        fits = whole and value <= beside.get(self.at_most, value)
        return bool(fits and value >= 1 and value % self.multiple == 0)


@dataclass(frozen=True)
class Numbers:
    """Real numbers of a keyword argument between bounds, the simplest first.

    Those that are drawn have few binary digits, so that no type rounds them.
    """

    summary: str
    values: tuple[float, ...]
    wanted: str
    least: float = -np.inf
    largest: float = np.inf

    def admits(self, value, beside: Mapping = NOTHING) -> bool:
        """Whether the argument may be `value`, whatever the others are."""
        del beside
        real = isinstance(value, int | float | np.integer | np.floating)
        return bool(real and not isinstance(value, bool) and self.least <= value <= self.largest)


Static = Counts | Numbers
