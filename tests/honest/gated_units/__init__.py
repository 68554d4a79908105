"""Honest implementations of the family `gated_units`: gates and scans, each in several ways."""

from honest import Honest
from honest.gated_units import programs
from honest.recurrences import forms_of
from refssm.conformance.planted.gated_units.forms import (
    MINIMAL,
    REAL,
    UNSCALED,
    cotangent,
    gradients,
    sequences,
    shaped,
    starts_back,
)
from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.gated_units.real_gated import REAL_GATED

WAYS = {  # a way to scan, with gates of RG-LRU and of minGRU
    "in_turn": (programs.by_steps, programs.factored, programs.by_exponentials),
    "doubled": (programs.doubled, programs.by_tangent, programs.by_softplus),
    "chunks_of_16": (programs.in_chunks(16), programs.in_base_two, programs.by_tangents),
    "chunks_of_64": (programs.in_chunks(64), programs.factored, programs.by_softplus),
    "matrix": (programs.as_matrix, programs.by_tangent, programs.by_exponentials),
    "double_inside": (
        programs.in_double(programs.by_steps),
        programs.in_base_two,
        programs.by_tangents,
    ),
}


def _forward(op, scan, gates):
    def program(*arguments):
        s = sequences(op, arguments)
        return shaped(op, scan(*gates(s), s), arguments)

    return program


def _back(op, of_family):
    def vjp(dx, *arguments):
        s = sequences(op, arguments)
        found, a, g = of_family(cotangent(op, dx), s)
        return gradients(op, found | {"x0": starts_back(op, a, g, s)}, arguments)

    return vjp


def _made(op, name):
    scan, real, minimal = WAYS[name]
    of_family = programs.real_back if "u" in op.inputs else programs.minimal_back
    vjp = _back(op, of_family) if name == "in_turn" else None
    return Honest(op.name, name, _forward(op, scan, real if "u" in op.inputs else minimal), vjp)


ROWS = [op for op in (*REAL, *UNSCALED, *MINIMAL) if op.form != "step"]
STEPS = [op for op in (*REAL, *MINIMAL) if op.form == "step"]
IMPLEMENTATIONS = [
    *(
        _made(op, name)
        for op in ROWS
        for name in WAYS
        if name != "matrix" or "ends" not in op.inputs
    ),
    *(_made(op, name) for op in STEPS for name in ("in_turn", "doubled", "chunks_of_16")),
    *(honest for r in (REAL_GATED, MINIMAL_GATED) for honest in forms_of(r)),
]
