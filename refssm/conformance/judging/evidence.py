"""What a report with pictures shows of a failure, beside its line: the damage and the inputs.

Kept only where it is asked for (`Settings.evidence`), and never written to JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from refssm._operator import Operator
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.judging.wrong_entries import Damage, axis_names

IN_FULL = 64  # entries of an array that are all shown
FEW = 6  # entries that are told one by one where all others are the same number
EDGE = 3  # entries shown at either end of every axis of a larger one


@dataclass(frozen=True)
class Given:
    """One argument of the failing call, in words."""

    name: str
    shape: str
    dtype: str
    values: str  # all of them, or the first and the last
    range: str = ""  # of those that are not all shown


@dataclass(frozen=True, eq=False)
class Evidence:
    """The damage of the case that is told of, of one as it was drawn, and the arguments."""

    damage: Damage | None
    given: tuple[Given, ...]
    found: Damage | None = None  # before anything was made smaller
    without: str = ""  # why there is no damage to show


def gathered(
    op: Operator, verdict: Verdict, arrays, statics: Mapping, first: Verdict | None = None
) -> Evidence:
    """The evidence of one failure; `first` is the verdict on a case that nothing made smaller."""
    axes = [(*batch, *dims) for batch, dims in zip(op.batch_axes, op.input_dims, strict=True)]
    told = zip(op.inputs, arrays, axes, strict=True)
    given = [_array(name, a, dims) for name, a, dims in told]
    given += [Given(name, "", type(n).__name__, repr(n)) for name, n in statics.items()]
    found = first.damage if first is not None else None
    if found is verdict.damage:
        found = None
    return Evidence(verdict.damage, tuple(given), found, _without(op, verdict))


def _without(op: Operator, verdict: Verdict) -> str:
    """Why a failure has no damage, in a few words."""
    if verdict.damage is not None:
        return ""
    if verdict.error:
        return "the call gave no result"
    if np.isfinite(verdict.ratio) and op.contract.instead_of_entries:
        return f"the check judges {op.contract.instead_of_entries}, not single entries"
    return "this failure is not about single entries"


def _array(name: str, a: np.ndarray, dims) -> Given:
    """One array: small ones in full, of others the ends of each axis and the range."""
    named = zip(axis_names(a.ndim, dims), a.shape, strict=True)
    axes = ", ".join(f"{axis} = {n}" if axis != "1" else f"{n}" for axis, n in named)
    shape, small = f"shape ({axes})" if axes else "one number", a.size <= IN_FULL
    usual = "" if small else _usual(a)
    if usual:
        return Given(name, shape, str(a.dtype), usual)
    how = {"edgeitems": EDGE, "separator": ", ", "max_line_width": 88, "floatmode": "unique"}
    values = np.array2string(a, threshold=IN_FULL if small else 0, **how)
    return Given(name, shape, str(a.dtype), values, "" if small else _range(a))


def _usual(a: np.ndarray) -> str:
    """The one number that nearly all entries are, and the few others; or ""."""
    numbers, counts = np.unique(a, return_counts=True)
    usual = numbers[np.argmax(counts)]
    others = np.argwhere(~(a == usual))
    if len(others) > FEW:
        return ""
    named = [f"[{', '.join(map(str, i))}] = {a[tuple(i)]}" for i in others]
    return f"{usual} throughout" + (f", but {', '.join(named)}" if named else "")


def _range(a: np.ndarray) -> str:
    """From where to where the entries go, and how many of them are no finite numbers."""
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
