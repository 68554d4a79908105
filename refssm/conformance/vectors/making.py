"""Make a file: cases, correctly rounded outputs, bounds, and the bugs that each case shows."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.usage_error import UsageError
from refssm.conformance.vectors.document import (
    Output,
    Vector,
    Vectors,
    few_bits,
    formats_of,
    renamed,
)
from refssm.conformance.vectors.draw import Drawn, cases_that_show_bugs, planted, shows

LACKS = "enclosure"


def enclosed() -> list[Operator]:
    """The operators that have vectors."""
    return [op for op in OPERATORS if LACKS not in op.lacks]


def refuse_without_flint() -> None:
    """UsageError if python-flint, the library of ball arithmetic, is not installed."""
    if find_spec("flint") is None:
        raise UsageError("vectors need python-flint, the second oracle: pip install python-flint")


def refuse_without_enclosure(op: Operator) -> None:
    """UsageError if the operator has no enclosure of its outputs, entry by entry."""
    if LACKS in op.lacks:
        raise UsageError(f"{op} has no vectors: its outputs have no enclosure (docs/vectors.md)")


def made(op: Operator, seed: int, count: int, longest: int, types=()) -> Vectors:
    """The vectors of one operator; the same arguments give the same vectors.

    In some of its types if these are given: they have the same cases as among all.
    """
    refuse_without_flint()
    refuse_without_enclosure(op)
    drawn = cases_that_show_bugs(op, seed, count, longest, types)
    if not drawn:
        raise UsageError(f"{op}: no case up to length {longest} could be judged entry by entry")
    cases = renamed([certified(case) for case in drawn])
    return Vectors(op, seed, _with_bugs(op, cases))


def certified(case: Drawn) -> Vector:
    """A case with outputs that both oracles certify, and bounds of few bits."""
    from refssm.conformance.vectors.exact import correctly_rounded

    wanted = formats_of(case.dtype)
    found = correctly_rounded(case.op, case.arrays, case.statics, wanted)
    outputs = [
        Output(values, *(few_bits(k, np.abs(values["float64"])) for k in (g.k0, g.k1)))
        for values, g in zip(found, case.gauges, strict=True)
    ]
    return Vector("", case.dtype, case.arrays, case.statics, outputs)


def _with_bugs(op: Operator, cases: list[Vector]) -> list[Vector]:
    """Each case with the planted bugs that it shows and no earlier case does."""
    left, told = planted(op), []
    for case in cases:
        own = [b for b in left if b.caught_by.endswith(f"[{case.dtype}]")]
        seen = [b for b in own if shows(b, case, case.gauges)]
        left = [b for b in left if b not in seen]
        told.append(replace(case, catches={b.name: b.what for b in seen}))
    return told
