"""The option `--where dt=1e-3..1e-1`: ranges to which arguments and sizes are restricted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from refssm._operator import Operator
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.usage_error import UsageError
from refssm.domains import Domain, state_matrices

Range = tuple[float, float]
WITHIN = ("each", "constant", "channel")  # textures that do not scale the values
SHIFTING = (state_matrices.fit,)
WITH_ZERO = ("impulse", "late", "gaps", "fading", "diagonal", "lower")


@dataclass(frozen=True)
class Where:
    """Ranges of arguments, by name, and of core dimensions, by letter."""

    values: Mapping[str, Range] = field(default_factory=dict)
    sizes: Mapping[str, Range] = field(default_factory=dict)

    def __str__(self):
        named = {**self.values, **self.sizes}
        return ", ".join(f"{name}={low:g}..{high:g}" for name, (low, high) in named.items())

    def __bool__(self):
        return bool(self.values or self.sizes)


def parse(texts: Iterable[str], ops: Iterable[Operator]) -> Where:
    """Parse ranges; UsageError for wrong syntax or a name that no operator of `ops` has."""
    ops, values, sizes = list(ops), {}, {}
    arguments = dict.fromkeys(name for op in ops for name in op.inputs)
    dims = dict.fromkeys(dim for op in ops for dim in core_dims(op))
    for text in texts:
        name, low, high = split(text)
        if name in dims:
            if low < 1 or low != int(low) or high != int(high):
                raise UsageError(f"--where {text}: a size is a whole number of 1 or more")
            sizes[name] = (low, high)
        elif name in arguments:
            fitted = [op for op in ops if name in op.inputs and op.inputs[name].fit in SHIFTING]
            if any(name in op.flags for op in ops):
                raise UsageError(f"--where {text}: `{name}` is true or false, it has no range")
            if fitted:
                raise UsageError(f"--where {text}: `{name}` of {fitted[0]} cannot be limited")
            values[name] = (low, high)
        else:
            known = ", ".join([*arguments, *dims])
            raise UsageError(f"--where {text}: unknown name {name!r}; wanted one of {known}")
    return Where(values, sizes)


def split(text: str) -> tuple[str, float, float]:
    """The name and the two ends of a range; UsageError if `text` is not NAME=LOW..HIGH."""
    match = re.fullmatch(r"\s*(\w+)\s*=\s*([^.]\S*?|\.\d\S*?)\.\.(\S+)\s*", text)
    try:
        name, low, high = match.groups() if match else ("", "", "")
        ends = float(low), float(high)
    except ValueError:
        raise UsageError(f"--where {text!r} is not NAME=LOW..HIGH") from None
    if not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] <= ends[1]):
        raise UsageError(f"--where {text!r} is not a range: LOW must not exceed HIGH")
    return name, *ends


def narrowed(op: Operator, where: Where) -> Operator:
    """The operator with narrowed domains for the arguments in `where`."""
    inputs = {
        name: _narrowed(domain, where.values[name]) if name in where.values else domain
        for name, domain in op.inputs.items()
    }
    return replace(op, inputs=inputs) if any(n in where.values for n in op.inputs) else op


@dataclass(frozen=True, eq=False)
class Narrowed(Domain):
    """A domain that replaces draws outside [low, high]; for complex values, of the modulus."""

    low: float = 0.0
    high: float = 0.0

    def draw(self, name: str, a: np.ndarray, b: np.ndarray, real: bool) -> np.ndarray:
        """Values of the domain that lie in the range."""
        x = super().draw(name, a, b, real)
        low, high = (self.low, self.high) if real else (max(self.low, 0.0), self.high)
        size = x if real else np.abs(x)
        again = low * (high / low) ** a if low > 0 else low + (high - low) * a
        again = np.clip(again, low, high)  # the power may round to a value outside
        if not real:
            again = again * np.where(size > 0, x / np.where(size > 0, size, 1.0), 1.0)
        return np.where((low <= size) & (size <= high), x, again)


def _narrowed(domain: Domain, ends: Range) -> Domain:
    low, high = ends
    if domain.kind == "complex" and high < 0:
        raise UsageError("--where bounds the modulus of a complex argument: HIGH is negative")
    kept = (*WITHIN, *(WITH_ZERO if low <= 0 <= high else ()))
    textures = tuple(t for t in domain.textures if t in kept) or ("each",)
    return Narrowed(
        f"{domain.summary}; limited to {low:g}..{high:g}",
        domain.maps,
        tuple(domain.maps),
        textures,
        domain.kind,
        None,
        domain.meets,
        domain.span,
        domain.exponent,
        low=low,
        high=high,
    )
