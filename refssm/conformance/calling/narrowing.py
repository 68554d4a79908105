"""`only` of an implementation: it changes a case to one that is supported, or declines it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import sentence
from refssm.conformance.calling.one_call import Outcome

UNSTEADY = "unsteady"  # the status of an `only` that cannot be relied on

Kept = tuple[list[np.ndarray], dict] | None  # arrays and keyword arguments; None if declined


def narrowed(only: Callable, op: Operator, arrays, statics) -> Kept | Outcome:
    """A case as `only` returns it, None if it declines, or an Outcome if it cannot be used.

    `only` is asked three times: the same case must give the same answer, and a case that it
    returned must come back unchanged. Else the cases of a report would not be those of the calls.
    The sizes of what it returns must agree.
    """
    names = list(op.inputs)
    try:
        kept, again = (_asked(only, names, arrays, statics) for _ in range(2))
        differ = _difference(names, kept, again)
        if differ:
            told = f"`only` must give the same answer whenever it is asked; {differ} differs"
            return Outcome(UNSTEADY, message=told)
        if kept is None:
            return None
        if disagree := _disagreement(op, *kept):
            told = f"`only` must return the arguments of one call: {disagree}"
            return Outcome(UNSTEADY, message=told)
        ordinary = all(a.dtype.kind == "b" or np.isfinite(a).all() for a in kept[0])
        # what clips or symmetrizes a NaN need not do it twice alike
        differ = _difference(names, kept, _asked(only, names, *kept)) if ordinary else ""
    except Exception as error:
        return Outcome("raised", message=f"raised {sentence(error)}")
    if differ:
        told = "`only` must not change a case that it has returned, nor decline it; asked with its"
        return Outcome(UNSTEADY, message=f"{told} own result, {differ} differs")
    return kept


def _asked(only: Callable, names: list[str], arrays, statics: dict) -> Kept:
    """One answer; `only` may write into its copies."""
    given = dict(zip(names, (np.array(a) for a in arrays), strict=True)) | statics
    kept = only(given)
    if kept is None:
        return None
    told = {name: _alike(kept.get(name, n), n) for name, n in statics.items()}
    return [np.asarray(kept[name]) for name in names], told


def _alike(number, given):
    """`number` as an int if `given` is an int and the value is whole, else as a float."""
    whole = isinstance(given, int | np.integer) and number == int(number)
    return int(number) if whole else float(number)


def _disagreement(op: Operator, arrays, statics: dict) -> str:
    """Why these cannot be the arguments of one call, or ""."""
    try:
        op.sizes(*arrays, **statics)
    except ValueError as error:
        return str(error).removeprefix(f"{op}: ")
    return ""


def _difference(names: list[str], one: Kept, other: Kept) -> str:
    """The first argument that differs, as text, or ""; "whether it declines" if one is None."""
    if one is None or other is None:
        return "" if one is other else "whether it declines"
    for name, a, b in zip(names, one[0], other[0], strict=True):
        inexact = a.dtype.kind in "fc" and b.dtype.kind in "fc"
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=inexact):
            return f"`{name}`"
    return next((f"`{name}`" for name in one[1] if one[1][name] != other[1][name]), "")
