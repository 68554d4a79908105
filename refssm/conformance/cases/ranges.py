"""The option `--where dt=1e-3..1e-1`: ranges to which arguments and sizes are restricted.

`re(w)=-1..0`, `im(w)=…` and `abs(w)=…` restrict a part of complex numbers. A real number is its own
real part; its modulus is that of a complex one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from refssm._declaration.operator import Operator
from refssm.conformance.cases.limits import Limit, admitted
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.usage_error import UsageError
from refssm.domains import state_matrices

Range = tuple[float, float]
SHIFTING = (state_matrices.fit,)
TEXT = re.compile(r"\s*(?:(re|im|abs)\s*\(\s*)?(\w+)\s*(\))?\s*=\s*([^.]\S*?|\.\d\S*?)\.\.(\S+)\s*")


@dataclass(frozen=True)
class Where:
    """Limits of arguments, by name, and ranges of core dimensions, by letter."""

    values: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)
    sizes: Mapping[str, Range] = field(default_factory=dict)

    def __str__(self):
        limits = [limit.of(name) for name, limits in self.values.items() for limit in limits]
        sizes = [f"{name}={low:g}..{high:g}" for name, (low, high) in self.sizes.items()]
        return ", ".join([*limits, *sizes])

    def __bool__(self):
        return bool(self.values or self.sizes)


def parse(texts: Iterable[str], ops: Iterable[Operator]) -> Where:
    """Parse ranges; UsageError for wrong syntax, an unknown name, or a range outside a domain."""
    ops, values, sizes = list(ops), {}, {}
    arguments = dict.fromkeys(name for op in ops for name in op.inputs)
    dims = dict.fromkeys(dim for op in ops for dim in core_dims(op))
    for text in texts:
        part, name, low, high = _parted(text)
        if part and name in dims:
            raise UsageError(f"--where {text}: `{name}` is a size: write {name}={low:g}..{high:g}")
        if name in dims:
            if low < 1 or low != int(low) or high != int(high):
                raise UsageError(f"--where {text}: a size is a whole number of 1 or more")
            sizes[name] = (low, high)
        elif name in arguments:
            fitted = [op for op in ops if name in op.inputs and op.inputs[name].fit in SHIFTING]
            if any(name in op.discrete for op in ops):
                raise UsageError(
                    f"--where {text}: `{name}` is no real or complex number: it has no range"
                )
            if fitted:
                raise UsageError(f"--where {text}: `{name}` of {fitted[0]} cannot be limited")
            if part == "abs" and high < 0:
                raise UsageError(f"--where {text}: no modulus is negative")
            same = [limit for limit in values.get(name, ()) if limit.part != part]
            values[name] = (*same, Limit(part, low, high))
        else:
            known = ", ".join([*arguments, *dims])
            raise UsageError(f"--where {text}: unknown name {name!r}; wanted one of {known}")
    where = Where(values, sizes)
    for op in ops:
        narrowed(op, where)
    return where


def split(text: str) -> tuple[str, float, float]:
    """The name and the two ends of a range; UsageError if `text` is not NAME=LOW..HIGH."""
    return _parted(text)[1:]


def _parted(text: str) -> tuple[str, str, float, float]:
    """The part (re, im, abs or ""), the name and the two ends of a range."""
    match = TEXT.fullmatch(text)
    if match and bool(match[1]) != bool(match[3]):  # one bracket of two
        match = None
    try:
        part, name, _, low, high = match.groups() if match else ("", "", "", "", "")
        ends = float(low), float(high)
    except ValueError:
        asked = "" if re.match(r"\s*\w+\s*(=|$)", text) else ", nor re(NAME), im(NAME) or abs(NAME)"
        raise UsageError(f"--where {text!r} is not NAME=LOW..HIGH{asked}") from None
    if not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] <= ends[1]):
        raise UsageError(f"--where {text!r} is not a range: LOW must not exceed HIGH")
    return part or "", name, *ends


def narrowed(op: Operator, where: Where) -> Operator:
    """The operator with narrowed domains for the arguments in `where`.

    Raises UsageError where no number of the domain is in the range.
    """
    inputs = {
        name: admitted(f"`{name}` of {op}", domain, name, where.values[name])
        if name in where.values
        else domain
        for name, domain in op.inputs.items()
    }
    return replace(op, inputs=inputs) if any(n in where.values for n in op.inputs) else op
