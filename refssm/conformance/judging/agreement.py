"""Compare two results: within their tolerances, or bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from refssm._operator import Operator
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import judged_type
from refssm.conformance.judging.grading import compare
from refssm.conformance.judging.verdict import Verdict, types_in, wrong
from refssm.conformance.judging.wrong_entries import BETWEEN, BITS, RATIO, Damage, describe
from refssm.conformance.standard import Standard


def same(op: Operator, arrays, y, other, *bounds, output=0, held: Standard | None = None):
    """The verdict on two results of one implementation: they may differ by the sum of bounds."""
    of = held or Standard.of(judged_type(arrays))
    returned = of.u_out(y.dtype) / (of.room * of.u)  # the rounding of the output, in u·K
    tolerances = [b.k1 + returned * np.maximum(np.abs(b.value), of.type.tiny) for b in bounds]
    k = np.sum([np.broadcast_to(t, np.shape(other)) for t in tolerances], axis=0)
    gauge = Gauge(np.asarray(other), k, k, max(b.peak for b in bounds))
    types, name = types_in(op, arrays, held), op.outputs[output]
    dims = (*op.batch_names, *op.output_dims[output])
    either = any(t.kind == "c" for t in types)
    verdict = compare(y, gauge, types[output], dims, name, either=either, held=held)
    if verdict.damage is None or verdict.damage.unit != RATIO:
        return verdict
    return replace(verdict, damage=replace(verdict.damage, unit=BETWEEN))


def inexact(op, y, wanted, what, output=0) -> Verdict:
    """The verdict on two results that should be equal bit by bit; names the first difference."""
    if y.shape != wanted.shape:
        return wrong(f"{what}shape {y.shape}, want {wanted.shape}")
    bad = ~((y == wanted) | ((y != y) & (wanted != wanted)))
    i = tuple(int(j) for j in np.argwhere(bad)[0])
    place = f"{op.outputs[output]}{list(i)}"
    dims = (*op.batch_names, *op.output_dims[output])
    message = f"{what}{place}: got {y[i]:.9g}, want exactly {wanted[i]:.9g}; {describe(bad, dims)}"
    return wrong(message, Damage.where(op.outputs[output], bad, dims, BITS))
