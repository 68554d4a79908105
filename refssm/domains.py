"""Where inputs live: named maps from the unit square, one for cases, tests and docs.

A map takes two arrays of numbers in [0, 1] and returns complex numbers; the first map of a domain
is the simplest and sends (0, 0) to a simple value, so failures shrink. Real arrays come from the
same maps: the second coordinate is snapped to 0 or ½, where a phase is 0 or π, and the real part
is taken. The draws themselves are arranged along the axes by a texture (`TEXTURES`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Map = Callable[[np.ndarray, np.ndarray], np.ndarray]

# How the draws are arranged. each: every entry its own. constant: one number along the first
# core axis (time). channel: one modulus along it, a phase each. impulse, late: all but one place
# of that axis zero, anywhere or near the end. fading: falling exponentially along it. gaps: some
# entries exactly zero. subnormal: every entry times the judged type's smallest normal. beside: next
# to the poles. diagonal, lower: a matrix of which only that part is not zero.
WAVE_TEXTURES = ("each", "constant", "channel", "impulse", "late", "gaps")
SIGNAL_TEXTURES = (*WAVE_TEXTURES, "subnormal")
TEXTURES = (*SIGNAL_TEXTURES, "fading", "beside", "diagonal", "lower")


@dataclass(frozen=True, eq=False)
class Domain:
    """A set of numbers, drawn by named maps of the unit square."""

    summary: str
    maps: Mapping[str, Map]
    tame: tuple[str, ...]  # maps that neither under- nor overflow on any route
    textures: tuple[str, ...] = ("each",)
    kind: str = "either"  # "real", "complex", or "either": that of the case
    fit: Callable[[np.ndarray], np.ndarray] | None = None  # makes a whole array admissible
    meets: str = ""  # the argument whose values are this one's poles
    span: bool = False  # entries are multiplied along the first core axis
    exponent: bool = False  # entries are multiplied by the time, which is 0 at the first output

    def __post_init__(self):
        assert self.tame, f"{self.summary}: no tame map"
        assert set(self.tame) <= set(self.maps), f"{self.summary}: {self.tame}"
        assert set(self.textures) <= set(TEXTURES), f"{self.summary}: {self.textures}"

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """Numbers of this domain from points of the unit square."""
        if not real:
            return self.maps[name](a, b).astype(complex)
        return np.real(self.maps[name](a, np.where(b < 0.5, 0.0, 0.5))).astype(float)


def _turn(modulus, turns):
    """modulus · e^(2πi turns), exactly real at 0 and ½."""
    turns = turns % 1.0
    sign = np.where(turns == 0.5, -1.0, 1.0)
    exact = np.exp(2j * np.pi * np.where(turns == 0.5, 0.0, turns))
    return modulus * sign * exact


def _logarithmic(low, high, a):
    """From `low` to `high`, uniform in the logarithm."""
    return low * (high / low) ** a


def _compass(a, b):
    """0, ±1 or ±i, exactly; 0, ±1 where b is 0 or ½."""
    quarter = np.array([1, 1j, -1, -1j])[np.minimum((4 * b).astype(int), 3)]
    return np.where(a < 0.8, quarter, 0)


def _products_bounded(a):
    """|Π a| over any span of time at most 2^60, so that float32 neither overflows nor saturates."""
    with np.errstate(divide="ignore"):
        bits = np.maximum(np.log2(np.abs(a)), -1e4)
    total = np.cumsum(bits, axis=-2)
    lowest = np.minimum(np.minimum.accumulate(total, axis=-2), 0)
    growth = np.max(total - lowest, axis=-2, keepdims=True, initial=0)
    excess = bits * (1 - np.minimum(1, 60 / np.maximum(growth, 1)))
    return a * 2.0 ** np.where(a == 0, 0.0, -excess)


def _stable(A):
    """A shifted left until no eigenvalue is right of the imaginary axis, integers by integers.

    Rows off the diagonal are first scaled, by powers of two, to 8 times the diagonal entry plus
    one: a triangle far heavier than its diagonal has no inverse in double precision.
    """
    if A.size == 0:
        return A
    I = np.eye(A.shape[-1])
    off = np.abs(A * (1 - I)).sum(-1, keepdims=True)
    allowed = 8 * (np.abs(A * I).sum(-1, keepdims=True) + 1)
    A = A * np.where(I > 0, 1, 0.5 ** np.ceil(np.log2(np.maximum(off / allowed, 1))))
    abscissa = np.linalg.eigvals(A).real.max(-1)
    shift = np.where(abscissa > 1e-12, np.ceil(abscissa), 0)[..., None, None]
    return A - shift * I


decays = Domain(
    summary="discrete decays: e^(−rate), rates 1e-5 to 1e2, any phase, 0, |a| = 1 and beyond",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "slow": lambda a, b: np.exp(-_logarithmic(1e-4, 0.1, a)) + 0j,
        "turning": lambda a, b: _turn(np.exp(-_logarithmic(1e-4, 0.3, a)), b),
        "moderate": lambda a, b: _turn(np.exp(-_logarithmic(0.05, 0.3, a)), b),
        "wide": lambda a, b: _turn(np.exp(-_logarithmic(1e-5, 1e2, a)), b),
        "steep": lambda a, b: _turn(np.exp(-_logarithmic(5, 1e2, a)), b),
        "unit": lambda a, b: _turn(np.ones_like(a), b),
        "near 0": lambda a, b: _turn(np.exp(-_logarithmic(1e-5, 0.1, a)), 1e-3 * b),
        "near pi": lambda a, b: _turn(np.exp(-_logarithmic(1e-5, 0.1, a)), 0.5 + 1e-3 * b),
        "growing": lambda a, b: _turn(np.exp(_logarithmic(1e-3, 2, a)), b),
        "compass": _compass,
    },
    tame=("one", "slow", "turning", "unit"),
    textures=("each", "constant", "channel", "gaps", "subnormal"),
    fit=_products_bounded,
    span=True,
)

signals = Domain(
    summary="any signal: magnitudes 1e-6 to 1e3 per channel, constant, exact integers, impulses",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: _turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "positive": lambda a, b: 0.5 + a + 0j,
        "integer": lambda a, b: np.round(16 * a - 8) + 1j * np.round(16 * b - 8),
        "magnitudes": lambda a, b: _turn(_logarithmic(1e-6, 1e3, a), b),
    },
    tame=("one", "normal", "positive"),
    textures=SIGNAL_TEXTURES,
)

waveforms = Domain(
    summary="signals as above without subnormals, which a transform turns into rounding errors",
    maps=signals.maps,
    tame=signals.tame,
    textures=WAVE_TEXTURES,
)

impulse_responses = Domain(
    summary="kernels: flat ones, fading ones down to 1e-30 of their start, any signal",
    maps=signals.maps,
    tame=signals.tame,
    textures=("each", "constant", "fading", "channel", "impulse", "late", "gaps"),
)

states = Domain(
    summary="initial states: moduli up to 1e2, exact integers",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: _turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "integer": lambda a, b: np.round(16 * a - 8) + 1j * np.round(16 * b - 8),
        "large": lambda a, b: _turn(100 * a, b),
    },
    tame=("one", "normal"),
    textures=("each", "gaps", "subnormal"),
)

residues = Domain(
    summary="residues C_n B_n: moduli 1e-6 to 1e3, any phase",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: _turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "magnitudes": lambda a, b: _turn(_logarithmic(1e-6, 1e3, a), b),
    },
    tame=("one", "normal"),
    textures=("each", "constant", "gaps", "subnormal"),
)

coefficients = Domain(
    summary="coefficients C_n B̄_n: moduli 1e-6 to 1e3, any phase, none so small that it underflows",
    maps=residues.maps,
    tame=residues.tame,
    textures=("each", "constant", "gaps"),
)

poles = Domain(
    summary="poles in the left half-plane: Re −1e2 to −1e-6, |Im| up to 1e3, some close together",
    maps={
        "near": lambda a, b: -0.5 - a + 10j * b,
        "wide": lambda a, b: -_logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "real": lambda a, b: -_logarithmic(1e-3, 1e2, a) + 0j,
        "ladder": lambda a, b: -0.5 + 1j * np.pi * np.round(32 * b),
        "grazing": lambda a, b: -_logarithmic(1e-6, 1e-2, a) + 0.7j * np.round(10 * b),
    },
    tame=("near", "ladder"),
    textures=("each", "constant"),
    kind="complex",
)

nodes = Domain(
    summary="nodes on and right of the imaginary axis, and beside poles, down to 1e-6 from one",
    maps={
        "near": lambda a, b: 0.5 + a + 10j * b,
        "axis": lambda a, b: 1j * _logarithmic(1e-2, 1e3, a),
        "wide": lambda a, b: _logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "circle": lambda a, b: 1 + 1e-3 * a + _turn(np.ones_like(a), b),
    },
    tame=("near", "circle"),
    textures=("each", "beside"),
    kind="complex",
    meets="w",
)

exponents = Domain(
    summary="logarithms of discrete poles: rates −1e2 to 5e-3 a step, any phase, 1e-8 from 0, 0",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "slow": lambda a, b: -_logarithmic(1e-4, 0.1, a) + 0j,
        "turning": lambda a, b: -_logarithmic(1e-4, 0.3, a) + 2j * np.pi * (b - 0.5),
        "creeping": lambda a, b: -_logarithmic(1e-8, 1e-4, a) + 1e-3j * (b - 0.5),
        "lasting": lambda a, b: -_logarithmic(1e-6, 1e-3, a) + 2e-3j * (b - 0.5),
        "drifting": lambda a, b: -1e-5 * a + 1e-4j * (b - 0.5),
        "wide": lambda a, b: -_logarithmic(1e-5, 1e2, a) + 2j * np.pi * (b - 0.5),
        "unit": lambda a, b: 2j * np.pi * (b - 0.5),
        "growing": lambda a, b: _logarithmic(1e-5, 5e-3, a) + 2j * np.pi * (b - 0.5),
        "alternating": lambda a, b: -_logarithmic(1e-5, 1e-2, a) + 1j * np.pi,
        "fast": lambda a, b: -_logarithmic(1e-3, 1, a) + 60j * (b - 0.5),
    },
    tame=("zero", "slow", "turning", "creeping", "lasting", "unit", "alternating"),
    textures=("each", "constant"),
    exponent=True,
)

steps = Domain(
    summary="steps: 1e-4 to 1, powers of two, real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "halves": lambda a, b: 2.0 ** -np.round(10 * a) + 0j,
        "usual": lambda a, b: _logarithmic(1e-3, 0.1, a) + 0j,
        "wide": lambda a, b: _logarithmic(1e-4, 1, a) + 0j,
    },
    tame=("one", "halves", "usual", "wide"),
    textures=("each", "constant"),
    kind="real",
)

modes = Domain(
    summary="continuous modes: Re −1e2 to 0, |Im| up to 1e3, 1e-9 from 0, 0, powers of 2",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "near": lambda a, b: -0.5 - a + 10j * (b - 0.5),
        "exact": lambda a, b: -(2.0 ** np.round(10 * a)) * np.where(b < 0.9, 1, 0) + 0j,
        "tiny": lambda a, b: _turn(_logarithmic(1e-9, 1e-3, a), 0.25 + 0.5 * b),
        "wide": lambda a, b: -_logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "real": lambda a, b: -_logarithmic(1e-3, 1e2, a) + 0j,
        "imaginary": lambda a, b: 1j * np.pi * np.round(32 * (a - 0.5)),
    },
    tame=("minus one", "near", "exact", "imaginary"),
    textures=("each", "constant", "gaps"),
)

state_matrices = Domain(
    summary="state matrices without eigenvalues right of the imaginary axis: any, triangular, "
    "diagonal, singular, zero; rows off the diagonal up to 8 times the entry on it plus one",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "normal": lambda a, b: _turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "integer": lambda a, b: np.round(8 * a - 6) + 1j * np.round(4 * b - 2),
        "tiny": lambda a, b: _turn(_logarithmic(1e-7, 1e-3, a), b),
        "exact": lambda a, b: -(2.0 ** np.round(8 * a)) + 0j,
        "zero": lambda a, b: np.zeros_like(a) + 0j,
    },
    tame=("minus one", "normal", "integer", "tiny"),
    textures=("each", "diagonal", "lower", "gaps"),
    fit=_stable,
)

input_matrices = Domain(
    summary="input matrices: moduli 1e-2 to 1e2, any phase, exact integers",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: _turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "integer": lambda a, b: np.round(16 * a - 8) + 1j * np.round(16 * b - 8),
        "magnitudes": lambda a, b: _turn(_logarithmic(1e-2, 1e2, a), b),
    },
    tame=("one", "normal"),
    textures=("each", "constant", "gaps"),
)
