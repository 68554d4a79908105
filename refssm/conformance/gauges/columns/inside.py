"""The delta rule inside a layer: a rule for tracked arrays, by the errors of the state's columns.

Moduli of a chain of single operations explode (`steps.py`). K1 has the second gauge, too: a layer
that computes by sums of gates is as right as the operator that does. Importing this module
registers the rules of `gated_delta_rule` as layers call it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from refssm.conformance.gauges.columns import columns_of
from refssm.conformance.gauges.columns.steps import Columns, with_row
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met, trace
from refssm.layers._namespaces import corrected, corrected_from, corrected_vjp
from refssm.linear_attention.gated_delta import GATED_DELTA


def _both(bounds: Callable[[Columns], Sequence[np.ndarray]]) -> list[np.ndarray]:
    """K0 and K1 of each result; in K1 also what programs by sums of gates err by."""
    usual, summed = (
        bounds(replace(columns_of(GATED_DELTA, trace().floor, trace().unit), cumulated=name))
        for name in ("", "whole")
    )
    return [np.stack([k[0], k[1] + s[1]]) for k, s in zip(usual, summed, strict=True)]


def _with(value, bounds) -> Tracked:
    """A value, and K0 and K1 as first axis, at least a rounding of it."""
    met(np.abs(value))
    errors = np.moveaxis(np.maximum(bounds, np.abs(value)), 0, -1)
    return Tracked(value, np.where(np.isnan(errors), np.inf, errors))


@rule(FUNCTIONS, corrected)
def _corrected(*arguments):
    arguments = [lifted(x) for x in arguments]
    (bounds,) = _both(lambda columns: columns.run(arguments, None, None)[:1])
    return _with(corrected(*(x.value for x in arguments)), bounds)


@rule(FUNCTIONS, corrected_from)
def _corrected_from(*given):
    *arguments, S0 = (lifted(x) for x in given)
    errors = np.sqrt((np.moveaxis(S0.errors, -1, 0) ** 2).sum(-2))
    start = with_row(np.broadcast_to(S0.value, (2, *S0.shape)), errors)
    bounds, state = _both(lambda columns: columns.run(arguments, start, None))
    y, S = corrected_from(*[x.value for x in (*arguments, S0)])
    return _with(y, bounds), _with(S, np.broadcast_to(state[..., -1:, :], (2, *S.shape)))


@rule(FUNCTIONS, corrected_vjp)
def _corrected_vjp(dy, *arguments):
    dy, arguments = lifted(dy), [lifted(x) for x in arguments]
    made = corrected_vjp(dy.value, *(x.value for x in arguments))
    bounds = _both(lambda columns: columns.back([dy], arguments, None, None)[: len(made)])
    return tuple(_with(g, b) for g, b in zip(made, bounds, strict=True))
