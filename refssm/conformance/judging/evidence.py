"""The evidence that a report with pictures shows of a failure: wrong entries and inputs.

It is kept only if `Settings.evidence` is set, and never written to JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.judging.wrong_entries import Damage, axis_names

IN_FULL = 64  # arrays up to this size are shown in full
FEW = 6  # exceptions listed one by one if all other entries are equal
EDGE = 3  # entries shown at each end of every axis of a larger array


@dataclass(frozen=True)
class ShownArgument:
    """One argument of the failing call, as text."""

    name: str
    shape: str
    dtype: str
    values: str  # all, or the first and the last
    range: str = ""  # of an array that is not shown in full


@dataclass(frozen=True, eq=False)
class Evidence:
    """The error ratios of the reported case and of the case as drawn, and the arguments."""

    damage: Damage | None
    given: tuple[ShownArgument, ...]
    found: Damage | None = None  # of the case before shrinking
    without: str = ""  # why there are no error ratios


def gathered(
    op: Operator, verdict: Verdict, arrays, statics: Mapping, first: Verdict | None = None
) -> Evidence:
    """The evidence of one failure; `first` is the verdict on the case before shrinking."""
    axes = [(*batch, *dims) for batch, dims in zip(op.batch_axes, op.input_dims, strict=True)]
    told = zip(op.inputs, arrays, axes, strict=True)
    given = [_array(name, a, dims) for name, a, dims in told]
    given += [ShownArgument(name, "", type(n).__name__, repr(n)) for name, n in statics.items()]
    found = first.damage if first is not None else None
    if found is verdict.damage:
        found = None
    return Evidence(verdict.damage, tuple(given), found, _without(op, verdict))


def _without(op: Operator, verdict: Verdict) -> str:
    """Why a failure has no error ratios to show, or ""."""
    if verdict.damage is not None:
        return ""
    if verdict.error:
        return "the call gave no result"
    if np.isfinite(verdict.ratio) and op.contract.instead_of_entries:
        return f"the check judges {op.contract.instead_of_entries}, not single entries"
    return "this failure is not about single entries"


def _array(name: str, a: np.ndarray, dims) -> ShownArgument:
    """One array as text: small ones in full, of others the ends of each axis and the range."""
    named = zip(axis_names(a.ndim, dims), a.shape, strict=True)
    axes = ", ".join(f"{axis} = {n}" if axis != "1" else f"{n}" for axis, n in named)
    shape, small = f"shape ({axes})" if axes else "one number", a.size <= IN_FULL
    usual = "" if small else _usual(a)
    if usual:
        return ShownArgument(name, shape, str(a.dtype), usual)
    how = {"edgeitems": EDGE, "separator": ", ", "max_line_width": 88, "floatmode": "unique"}
    values = np.array2string(a, threshold=IN_FULL if small else 0, **how)
    return ShownArgument(name, shape, str(a.dtype), values, "" if small else _range(a))


def _usual(a: np.ndarray) -> str:
    """If nearly all entries are one number: that number and the exceptions; else ""."""
    numbers, counts = np.unique(a, return_counts=True)
    usual = numbers[np.argmax(counts)]
    others = np.argwhere(~(a == usual))
    if len(others) > FEW:
        return ""
    named = [f"[{', '.join(map(str, i))}] = {a[tuple(i)]}" for i in others]
    return f"{usual} throughout" + (f", but {', '.join(named)}" if named else "")


def _range(a: np.ndarray) -> str:
    """The range of the entries, and how many are not finite."""
    if a.dtype.kind == "b":
        return f"{int(a.sum())} of {a.size} are true"
    finite = a[np.isfinite(a)]
    others = f", {a.size - finite.size} not finite" * (finite.size < a.size)
    if not finite.size:
        return f"{a.size} numbers{others}"
    if a.dtype.kind == "c":
        size = np.abs(finite)
        return f"{a.size} numbers of modulus {size.min():.6g} to {size.max():.6g}{others}"
    return f"{a.size} numbers from {finite.min():.6g} to {finite.max():.6g}{others}"
