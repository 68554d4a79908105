"""Compare two results: within their tolerances, or bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.gauges.gauge import Gauge, Second
from refssm.conformance.judging.expected import judged_type
from refssm.conformance.judging.grading import compare
from refssm.conformance.judging.verdict import Verdict, told_apart, types_in, wrong
from refssm.conformance.judging.wrong_entries import BETWEEN, BITS, RATIO, Damage, describe
from refssm.conformance.standard import Standard


def same(op: Operator, arrays, y, other, *bounds, output=0, held: Standard | None = None):
    """The verdict on two results of one implementation: they may differ by the sum of bounds."""
    of = held or Standard.of(judged_type(arrays))
    returned = of.u_out(y.dtype) / (of.room * of.u)  # the rounding of the output, in u·K

    def summed(errors):
        rounded = (returned * np.maximum(np.abs(b.value), of.type.tiny) for b in bounds)
        both = (
            np.broadcast_to(e + r, np.shape(other)) for e, r in zip(errors, rounded, strict=True)
        )
        return np.sum([*both], axis=0)

    k, seconds = summed([b.k1 for b in bounds]), [b.second for b in bounds if b.second is not None]
    gauge = Gauge(np.asarray(other), k, k, max(b.peak for b in bounds))
    if len(seconds) == len(bounds):
        gauge = replace(
            gauge,
            second=Second(
                lambda: k + summed([s.whole() for s in seconds]),
                lambda: k + summed([s.of_terms() for s in seconds]),
            ),
        )
    if any(b.again for b in bounds):
        more = [b.again or (lambda b=b: b.k1) for b in bounds]
        gauge = replace(gauge, again=lambda: np.maximum(k, summed([k0() for k0 in more])))
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
        kind = f"shape or type of `{op.outputs[output]}`"
        return wrong(f"{what}shape {y.shape}, want {wanted.shape}", kind=kind)
    bad = ~((y == wanted) | ((y != y) & (wanted != wanted)))
    i = tuple(int(j) for j in np.argwhere(bad)[0])
    place = f"{op.outputs[output]}{list(i)}"
    dims = (*op.batch_names, *op.output_dims[output])
    got, want = told_apart(y[i], wanted[i])
    message = f"{what}{place}: got {got}, want exactly {want}; {describe(bad, dims)}"
    name = op.outputs[output]
    return wrong(message, Damage.where(name, bad, dims, BITS), f"bits of `{name}`")
