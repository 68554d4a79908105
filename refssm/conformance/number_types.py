"""Number types and arithmetics: their bits, their range, and rounding to their values."""

from dataclasses import dataclass

import numpy as np

# true where long double has at least ten bits more than double precision
LONG_DOUBLE_IS_WIDER = bool(np.finfo(np.longdouble).eps < np.finfo(np.float64).eps / 1000)


@dataclass(frozen=True)
class NumberType:
    """A number type by the frameworks' name, and the NumPy type that holds its values."""

    name: str
    carrier: np.dtype
    digits: int  # bits of the significand, including the hidden one
    tiny: float  # the smallest normal number
    max: float

    @property
    def u(self) -> float:
        """Unit roundoff: half the distance from 1 to the next number."""
        return 2.0**-self.digits

    @property
    def half(self) -> bool:
        """True for 16-bit types, whose values float32 arrays hold."""
        return self.name in ("float16", "bfloat16")

    @property
    def double(self) -> bool:
        """True for double precision, whose exact values come from the oracle or long double."""
        return self.digits > 50

    def rounded(self, a: np.ndarray, real: bool) -> np.ndarray:
        """`a`, of double precision, rounded to this type's values."""
        if self.half:
            a = to_digits(a, self)
        if real:
            return a.astype(np.finfo(self.carrier).dtype)
        # a cotangent may be complex where all arguments are real
        return a.astype(
            np.result_type(self.carrier, np.complex64) if np.iscomplexobj(a) else self.carrier
        )


def to_digits(x: np.ndarray, kind: NumberType) -> np.ndarray:
    """Round to `kind.digits` bits, ties to even; fewer bits below the smallest normal number."""
    smallest = np.frexp(kind.tiny)[1]
    exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 0.0))[1], smallest)
    scale = kind.digits - exponent
    y = np.ldexp(np.rint(np.ldexp(x, scale)), -scale)
    return np.where(np.abs(y) > kind.max, np.copysign(np.inf, y), y)


def _of_numpy(name: str) -> NumberType:
    info = np.finfo(name)
    return NumberType(name, np.dtype(name), int(info.nmant) + 1, float(info.tiny), float(info.max))


SINGLE = np.dtype(np.float32)
NUMBER_TYPES = {
    **{name: _of_numpy(name) for name in ("float32", "float64", "complex64", "complex128")},
    "float16": NumberType("float16", SINGLE, 11, 2.0**-14, 65504.0),
    "bfloat16": NumberType("bfloat16", SINGLE, 8, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
}
# an arithmetic of products; no array has this type
TF32 = NumberType("tf32", SINGLE, 11, 2.0**-126, float(np.finfo(np.float32).max))


ARITHMETICS = {**NUMBER_TYPES, "tf32": TF32}


def number_type(name) -> NumberType:
    """The type or arithmetic called `name`, or the type of a NumPy dtype."""
    name = name if isinstance(name, str) else np.dtype(name).name
    return ARITHMETICS[name] if name in ARITHMETICS else _of_numpy(name)


def judged_type(arrays) -> np.dtype:
    """The type in which to compute and answer: the widest of the numbers, flags and offsets apart.

    Double precision if there are none.
    """
    numbers = [a for a in arrays if a.dtype.kind not in "bi"]
    return np.result_type(*numbers) if numbers else np.dtype(np.float64)
