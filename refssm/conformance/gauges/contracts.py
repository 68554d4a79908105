"""The bound of each contract: how large rounding errors may be, and how they are seen.

`BOUNDS`, at the end, has one for the outputs of an operator and one for its gradients. TRACED: the
tracked reference, entry by entry; so are all gradients but those of a transform. NORM: the same in
the norm of each state, over which a recurrence spreads its errors. FFT: the norms of the arguments,
for an entry of a transform much smaller than they are has no digits. SPECTRUM: the tracked errors
of a spectrum, in norm. SOLVE: the residual of the linear system or equation. EXPM: the condition
number of the exponential. INVARIANTS: none, for entries say nothing; what no choice of basis
changes is graded in `refssm/conformance/judging/invariants.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from refssm._arguments import several
from refssm._contract import (
    EXPM,
    FFT,
    GRAMIANS,
    INVARIANTS,
    NORM,
    SINGULAR,
    SOLVE,
    SPECTRUM,
    TRACED,
    Contract,
    Equation,
)
from refssm._operator import Operator
from refssm.conformance.gauges.gauge import Call, Gauge, Gauges, Measure, wide
from refssm.conformance.gauges.linalg import CHARGE, exponential_bound, frobenius, two_norm
from refssm.conformance.gauges.transforms import (
    of_spectrum,
    of_spectrum_gradients,
    of_transform,
    of_transform_gradients,
)


def bounds(
    op: Operator, arrays, statics: Mapping, vjp: Callable | None, *, unit: float, floor: float
) -> Gauges:
    """One gauge per output of `op`, or per gradient of its `vjp`: the reference's own values."""
    call, bound = Call(op, arrays, statics, unit, floor), BOUNDS[op.contract]
    return bound.outputs(call) if vjp is None else bound.gradients(call, vjp)


def _traced(call: Call) -> Gauges:
    return call.tracked(call.op.reference)


def _traced_by_definition(call: Call) -> Gauges:
    """The errors of the form whose roundings count, where that is not the reference."""
    return call.tracked(call.op.definition or call.op.reference)


def _traced_gradients(call: Call, vjp: Callable) -> Gauges:
    return call.tracked(vjp, partial=True)


def _without_bound(call: Call) -> Gauges:
    """The values alone."""
    return tuple(replace(g, k0=g.k0 + np.inf, k1=g.k1 + np.inf) for g in _traced(call))


def _in_norm_of_states(call: Call) -> Gauges:
    return tuple(map(_of_states, _traced(call)))


def _of_states(gauge: Gauge) -> Gauge:
    """The same bound for every entry of a state: the norm of all of them, along the last axis."""
    k0, k1 = (np.broadcast_to(two_norm(k), k.shape) for k in (gauge.k0, gauge.k1))
    return replace(gauge, k0=k0, k1=k1)


def _residuals(call: Call) -> Gauges:
    """‖M Y − N‖_F against n (‖M‖_F ‖Y‖_F + ‖N‖_F), and the roundings of M and N themselves."""
    op, arrays, floor, gauged = call.op, call.arrays, call.floor, _traced(call)
    assert op.definition is not None
    precise = np.longdouble if np.result_type(*arrays).itemsize >= _double(arrays) else np.float64
    with np.errstate(all="ignore"):
        M, *sides = op.definition(*wide(arrays, precise), **call.statics)
    if isinstance(M, Equation):
        solved = zip((M, *sides), gauged, strict=True)
        return tuple(replace(g, measure=_misfit(e, g.value, floor)) for e, g in solved)
    M_made, *sides_made = replace(call, floor=0.0).tracked(op.definition)
    return tuple(
        replace(gauge, measure=_residual(M, N, gauge.value, M_made.k0, N_made.k0, floor))
        for N, N_made, gauge in zip(sides, sides_made, gauged, strict=True)
    )


def _double(arrays):
    """Bytes of a number of double precision of the kind of `arrays`."""
    return 16 if any(map(np.iscomplexobj, arrays)) else 8


def _residual(M, N, Y, M_errors, N_errors, floor) -> Measure:
    solved = M.shape[-1] * (frobenius(M) * frobenius(Y) + frobenius(N))
    made = frobenius(M_errors) * frobenius(Y) + frobenius(N_errors)  # I + ½dt A cancels at −2
    underflows = floor * np.sqrt(N.shape[-1] * N.shape[-2]) * (1 + frobenius(M))
    bound = solved + made + underflows
    return Measure(
        "residual",
        lambda y: frobenius(M @ y - N)[..., None, None].astype(float),
        bound[..., None, None].astype(float),
    )


def _misfit(equation: Equation, Y, floor) -> Measure:
    """‖Σ L Y R − N‖_F against n (Σ ‖L‖_F ‖Y‖_F ‖R‖_F + ‖N‖_F): N is made in one rounding."""
    size, N = sum(_norm(left) * _norm(right) for left, right in equation.terms), equation.side
    n = N.shape[-1]
    bound = n * (size * frobenius(Y) + frobenius(N)) + floor * n * (1 + size)

    def residual(y):
        products = (_between(left, y, right) for left, right in equation.terms)
        return frobenius(sum(products) - N)[..., None, None].astype(float)

    return Measure("residual", residual, bound[..., None, None].astype(float))


def _norm(M):
    """‖M‖_F; that of the identity counts as 1."""
    return 1.0 if M is None else frobenius(M)


def _between(left, Y, right):
    """left Y right; None is the identity."""
    Y = Y if left is None else left @ Y
    return Y if right is None else Y @ right


def _exponentials(call: Call) -> Gauges:
    """‖Y − e^G‖_F against 2.5 max(1, κ) ‖e^G‖_F, G what the operator exponentiates.

    What the definition returns beside G are the last outputs: no exponential, measured as TRACED.
    """
    op, arrays, statics = call.op, call.arrays, call.statics
    assert op.definition is not None
    with np.errstate(all="ignore"):
        outputs = op.reference(*wide(arrays), **statics)
        G, *rest = several(op.definition(*wide(arrays), **statics))
    bound = exponential_bound(G)[..., None, None]
    sizes = (np.abs(a) for a in (*arrays, *outputs))
    peak = max(float(s.max(initial=0, where=np.isfinite(s))) for s in sizes)
    fitted = []
    for y in outputs[: len(outputs) - len(rest)]:
        k0 = np.broadcast_to(bound, y.shape)
        # inputs off by one rounding, dt and the matrix: twice κ ‖e^G‖ more
        k1 = k0 * (1 + 2 / CHARGE)
        fitted.append(Gauge(y, k0, k1, peak, Measure("error", distance(y), bound)))
    if rest:
        traced = zip(call.tracked(op.definition)[1:], outputs[-len(rest) :], strict=True)
        fitted += [_along(gauge, y.shape) for gauge, y in traced]
    return tuple(fitted)


def _along(gauge: Gauge, shape) -> Gauge:
    """A gauge over all of the batch, also where its output lacks an axis of it."""
    fields = {f: np.broadcast_to(getattr(gauge, f), shape) for f in ("value", "k0", "k1")}
    return replace(gauge, **fields)


def distance(value):
    """‖y − value‖_F of each member of the batch."""
    return lambda y: frobenius(y - value)[..., None, None].astype(float)


class Bound(NamedTuple):
    """What the outputs of an operator are held to, and what its gradients are."""

    outputs: Callable[[Call], Gauges]
    gradients: Callable[[Call, Callable], Gauges] = _traced_gradients


BOUNDS: dict[Contract, Bound] = {
    TRACED: Bound(_traced_by_definition),
    NORM: Bound(_in_norm_of_states),
    SINGULAR: Bound(_traced),
    GRAMIANS: Bound(_traced),
    FFT: Bound(of_transform, of_transform_gradients),
    SPECTRUM: Bound(of_spectrum, of_spectrum_gradients),
    SOLVE: Bound(_residuals),
    EXPM: Bound(_exponentials),
    INVARIANTS: Bound(_without_bound),
}
