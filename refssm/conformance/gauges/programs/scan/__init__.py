"""Programs of scans: with a matrix (`dense`), and with one decay per step (`ways`).

Those with decays are the definition, and the formulas of `gauges/cumulated/` in three ways. Short
cases are left to the derived bound, which adds the errors of few steps; so are cases whose states
would take much memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import named
from refssm.conformance.gauges.cumulated import FORMS, forms_of
from refssm.conformance.gauges.programs.scan import dense
from refssm.conformance.gauges.programs.scan.ways import BY_STEPS, DOUBLED, IN_BLOCKS, ROUNDED

SHORT = 64  # steps
MOST = 2**25  # states at all times, on all copies
WAYS = {"by_steps": BY_STEPS, "doubled": DOUBLED, "in_blocks": IN_BLOCKS}
QUADRATIC = ("ssd_quadratic",)  # whose definition takes as long as all else of a case
GIVEN = ("linear_scan", "diagonal_ssm_varying")  # operators whose decays need no exponential


def _operator(name: str) -> Operator:
    op = named(name)
    assert op is not None
    return op


def _fitting(op: Operator, program: Callable, cotangents: int = 0) -> Callable:
    """The program, which declines cases that are short or large."""

    def taken(*arrays, **sizes):
        core = op.sizes(*arrays[cotangents:], **sizes)
        batch = arrays[-1].ndim - len(op.input_dims[-1])
        states = np.prod([*arrays[-1].shape[:batch], core["l"], core.get("n", 1), core.get("p", 1)])
        if core["l"] <= SHORT or states > MOST:
            return None
        return program(*arrays, **sizes)

    return taken


def _of(ways: dict, gradient: bool) -> dict[str, dict[str, Callable]]:
    """By operator and way, its programs or those of its VJP."""
    found: dict[str, dict[str, Callable]] = {name: {} for name in FORMS}
    for way, scans in ways.items():
        for name, form in forms_of(scans).items():
            op = _operator(name)
            program, given = (form.vjp, len(op.outputs)) if gradient else (form.forward, 0)
            found[name][way] = _fitting(op, program, given)
    return found


def _defined(gradient: bool) -> dict[str, dict[str, Callable]]:
    """The definition and the ways of each operator."""
    found = _of(WAYS, gradient)
    for name in found.keys() - {*QUADRATIC}:
        op = _operator(name)
        program, given = (op.bare_vjp, len(op.outputs)) if gradient else (op.reference, 0)
        found[name]["defined"] = _fitting(op, program, given)
    return found


def _of_logarithms(programs: dict) -> dict:
    """Those whose decays are exponentials."""
    return {name: made for name, made in programs.items() if not name.startswith(GIVEN)}


OUTPUTS = {**dense.OUTPUTS, **_defined(gradient=False)}
GRADIENTS = {**dense.GRADIENTS, **_defined(gradient=True)}
AGAIN_OUTPUTS = _of_logarithms(_of({"rounded": ROUNDED}, gradient=False))
AGAIN_GRADIENTS = _of_logarithms(_of({"rounded": ROUNDED}, gradient=True))
