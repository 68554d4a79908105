"""The record of a failure, saved with its inputs, from which it can be judged again."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from refssm._declaration.adapted import with_steps
from refssm._declaration.implements import FRAMEWORKS, KINDS, TYPES
from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named, short
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.cases.ranges import Where, parse
from refssm.conformance.cases.stacking import free_arguments
from refssm.conformance.checks.checks import NAMES, Check
from refssm.conformance.number_types import number_type
from refssm.conformance.usage_error import UsageError
from refssm.presets.catalog import preset_named

STORY = "__refssm__"  # the record's key in a file whose other keys are argument names
FORMAT = 1
KEYS = {"operator", "check", "dtype", "target", "as", "told", "where", "against", "case"}
KEYS |= {"seed", "profile"}
FRAMED = [("framework", name) for name in FRAMEWORKS]
LARGEST = 2**27  # the largest size of an argument to draw again


def story(check: Check, case: Case, by_arrays: bool, call: Mapping) -> dict:
    """The record: the check, how the function was called, and the case if arrays are not enough."""
    kept = {"format": FORMAT, "operator": check.op.name, "check": check.name, "dtype": check.dtype}
    drawn = {
        "sizes": dict(case.sizes),
        "batch": dict(case.batch),
        "knobs": {name: asdict(knob) for name, knob in case.knobs.items()},
        "seed": case.seed,
        "parameters": dict(case.parameters),
        "preset": case.preset.name if case.preset else "",
    }
    return {**kept, **call, "case": None if by_arrays else drawn}


def told(path: Path, given: Mapping[str, np.ndarray]) -> dict:
    """The record in a file; UsageError if there is none or it is invalid."""
    if STORY not in given:
        raise UsageError(f"{path} has no saved failure: judge its arrays by verify --inputs {path}")
    try:
        kept = json.loads(str(given[STORY][()]))
        if not isinstance(kept, dict) or kept.get("format") != FORMAT:
            raise ValueError("unknown format")
        absent = KEYS - set(kept)
        if absent:
            raise ValueError(f"{min(absent)!r} is missing")
        _doubted(kept)
        return kept
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        why = short(f"{error}")
        raise UsageError(f"{path}: the saved failure cannot be read: {why}") from None


def _doubted(kept: Mapping) -> None:
    """Raise ValueError if a field of the record has a wrong type or value."""
    words = ("operator", "check", "dtype", "target", "as", "against", "profile")
    for key in words:
        if not isinstance(kept[key], str):
            raise ValueError(f"`{key}` is {kept[key]!r}, wanted a string")
    if kept["dtype"] not in TYPES or kept["check"] not in NAMES:
        raise ValueError(f"unknown check {kept['check']!r} in {kept['dtype']!r}")
    if not isinstance(kept["seed"], int):
        raise ValueError(f"`seed` is {kept['seed']!r}, wanted a whole number")
    where, told = kept["where"], kept["told"]
    if not (isinstance(where, list) and isinstance(told, dict)):
        raise ValueError("`told` or `where` has a wrong type")
    usual = told.get("usual", {})
    for key, value in [*told.items(), *(usual.items() if isinstance(usual, dict) else [("", "")])]:
        known = isinstance(value, KINDS.get(key, ())) or (key, value) in FRAMED
        if key != "usual" and not known:
            raise ValueError(f"`told` has an unknown {key}={value!r}")


def where_of(kept: Mapping, path: Path) -> Where:
    """The ranges of `--where` in the record."""
    try:
        if kept["as"]:
            operator_named(kept["as"])
        op = operator_named(str(kept["operator"]))
        # an adapter may have changed the arguments; the record does not have it
        return parse([str(text) for text in kept["where"]], [op, *with_steps(op)])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def case_of(op: Operator, kept: Mapping, path: Path) -> Case:
    """The case of the record, drawn again; UsageError if that is impossible."""
    kind, drawn = number_type(str(kept["dtype"])), kept["case"] or {}
    try:
        sizes, batch = (
            {str(k): int(n) for k, n in drawn[name].items()} for name in ("sizes", "batch")
        )
        preset = preset_named(op, str(drawn.get("preset", "")))
        drawn_by_knobs = free_arguments(op, preset) if preset else op.inputs
        knobs = {name: Knob(**drawn["knobs"][name]) for name in drawn_by_knobs}
        case = Case(
            op,
            kind.carrier,
            sizes,
            batch,
            knobs,
            int(drawn["seed"]),
            kind if kind.half else None,
            dict(drawn["parameters"]),
            preset,
        )
        if math.prod(max(n, 1) for n in (*sizes.values(), *batch.values())) > LARGEST:
            raise ValueError("its sizes are larger than those of any case")
        op.sizes(*case.arrays, **case.statics)
    except (TypeError, LookupError, ValueError, AttributeError, ArithmeticError) as error:
        told = short(f"{type(error).__name__}: {error}")
        raise UsageError(f"{path}: the saved case cannot be generated again: {told}") from None
    return case
