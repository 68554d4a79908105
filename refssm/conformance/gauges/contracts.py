"""What each contract measures an operator by: bounds of the rounding errors, and how to see them.

TRACED, and every VJP but that of a transform: the tracked reference, entry by entry. NORM: the
same in the norm of each state, over which a recurrence spreads its errors. FFT: the norms
of the arguments, for an entry of a transform much smaller than they are has no digits. SPECTRUM:
the tracked errors of a spectrum, in norm. SOLVE: the residual of the linear system or equation.
EXPM: the condition number of the exponential. INVARIANTS: what no choice of basis changes
(refssm/conformance/judging/invariants.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refssm._contract import Contract, Equation
from refssm._operator import Operator
from refssm.broadcasting import unbroadcast
from refssm.conformance.gauges.gauge import Gauge, Measure, gauges
from refssm.conformance.gauges.linalg import CHARGE, exponential_bound, frobenius, two_norm
from refssm.conformance.gauges.rules import tree

TRANSFORMS = 3  # two forward, one back


def bounds(
    op: Operator, arrays, statics: Mapping, vjp: Callable | None, *, unit: float, floor: float
) -> tuple[Gauge, ...]:
    """One gauge per output of `op`, or per gradient of its `vjp`: the reference's own values."""
    if op.contract is Contract.FFT:
        return _transform(op, arrays, vjp)
    if op.contract is Contract.SPECTRUM:
        return _spectral(op, arrays, statics, vjp, unit, floor)
    if vjp is None and op.contract is Contract.EXPM:
        return _exponential(op, arrays, statics, unit, floor)
    traced = op.definition if op.contract is Contract.TRACED else None
    program, partial = vjp or traced or op.reference, vjp is not None
    gauged = gauges(program, *arrays, unit=unit, floor=floor, partial=partial, **statics)
    if op.contract is Contract.INVARIANTS:  # entries say nothing: another basis is as good
        return tuple(replace(g, k0=g.k0 + np.inf, k1=g.k1 + np.inf) for g in gauged)
    if vjp is None and op.contract is Contract.NORM:
        return tuple(map(_of_states, gauged))
    if vjp is None and op.contract is Contract.SOLVE:
        return _residuals(op, arrays, statics, gauged, unit, floor)
    return gauged


def _of_states(gauge: Gauge) -> Gauge:
    """The same bound for every entry of a state: the norm of all of them, along the last axis."""
    k0, k1 = (np.broadcast_to(two_norm(k), k.shape) for k in (gauge.k0, gauge.k1))
    return replace(gauge, k0=k0, k1=k1)


def wide(arrays, precision: Any = np.float64) -> list[np.ndarray]:
    """`arrays` in at least `precision`; flags as they are."""
    return [
        a if a.dtype.kind == "b" else a.astype(np.result_type(a, precision), copy=False)
        for a in arrays
    ]


def _transform(op, arrays, vjp) -> tuple[Gauge, ...]:
    """3 √log2(2l) Π‖argument‖₂; of a gradient, the cotangent's norm in place of its argument's.

    Arguments in which the operator is linear together add their norms: one term each.
    """
    program = vjp or op.definition
    assert program is not None
    with np.errstate(all="ignore"):
        y = program(*wide(arrays))
        norms = [np.sqrt((np.abs(a) ** 2).sum(-1, keepdims=True)) for a in wide(arrays)]
    length = max(1, arrays[0].shape[-1])
    charge = TRANSFORMS * np.sqrt(np.log2(2 * length))
    primals = dict(zip(op.inputs, norms[len(norms) - len(op.inputs) :], strict=True))
    groups = [group.arguments for group in op.linear_in]
    if vjp is None:
        product = _product(*(sum(primals[n] for n in group) for group in groups))
        return (_normwise(y, charge * product, product, length),)
    gauged = []
    for name, gradient, primal in zip(op.inputs, y, arrays[1:], strict=True):
        others = [sum(primals[n] for n in group) for group in groups if name not in group]
        product = _product(norms[0], *others, np.ones_like(primals[name]))
        product = np.broadcast_to(product, (*product.shape[:-1], primal.shape[-1]))
        summed = unbroadcast(product, primal.real)
        terms = product.size // max(1, summed.size)
        gauged.append(_normwise(gradient, (charge + tree(terms)) * summed, summed, length))
    return tuple(gauged)


def _spectral(op, arrays, statics, vjp, unit, floor) -> tuple[Gauge, ...]:
    """The tracked error of the spectrum, the same bound for all of a slice, and the transform's.

    Of a kernel, the inverse transform of `definition`: an entry is in error by no more than the
    mean of the errors at the nodes, here their root mean square, and by log2(2l) ‖K‖₂.
    Of a spectrum, the largest error of any node and log2(2l) root mean squares.
    """
    if vjp is not None:
        return _spectral_gradients(op, arrays, statics, vjp, unit, floor)
    length = max(1, statics[op.leading])
    transform = np.log2(2 * length)
    if op.definition is None:
        (gauge,) = gauges(op.reference, *arrays, unit=unit, floor=floor, **statics)
        most = {k: _largest(getattr(gauge, k), 1) for k in ("k0", "k1")}
        more = transform * _mean_square(gauge.value)
    else:
        (made,) = gauges(op.definition, *arrays, unit=unit, floor=floor, **statics)
        with np.errstate(all="ignore"):
            K = op.reference(*wide(arrays), **statics)
        gauge = Gauge(K, K.real, K.real, made.peak, normwise=True)
        most = {k: _mean(getattr(made, k)) for k in ("k0", "k1")}
        more = transform * np.sqrt(length) * _mean_square(K)
    least = np.maximum(np.abs(gauge.value), floor)
    bounds = {k: np.maximum(least, m + more) for k, m in most.items()}
    return (replace(gauge, **bounds),)


def _spectral_gradients(op, arrays, statics, vjp, unit, floor) -> tuple[Gauge, ...]:
    """The tracked error of the VJP, the largest of each argument's slice.

    A transform of the cotangent spreads its norm over all of its entries: none counts for less than
    their root mean square.
    """
    (dk,), primals = arrays[:1], arrays[1:]
    size = np.abs(dk).astype(float)
    raised = np.maximum(size, _mean_square(size))
    unit_of = np.where(size > 0, dk / np.where(size > 0, size, 1), 1)
    made = gauges(vjp, unit_of * raised, *primals, unit=unit, floor=floor, **statics)
    with np.errstate(all="ignore"):
        values = vjp(*wide(arrays), **statics)
    gauged = []
    for value, gauge, dims in zip(values, made, op.input_dims, strict=True):
        fields = {k: _largest(getattr(gauge, k), len(dims)) for k in ("k0", "k1")}
        gauged.append(replace(gauge, value=value, normwise=True, **fields))
    return tuple(gauged)


def _largest(k, rank):
    """The largest over the last `rank` axes, everywhere."""
    axes = tuple(range(-rank, 0))
    return np.broadcast_to(k.max(axes, keepdims=True, initial=0.0), k.shape) if rank else k


def _mean(k):
    """Along the last axis: of as many nodes as the definition has, which may be more than l."""
    return k.sum(-1, keepdims=True) / max(1, k.shape[-1])


def _mean_square(x):
    """√(Σ|x|²/l) along the last axis."""
    count = max(1, x.shape[-1])
    with np.errstate(all="ignore"):
        return np.sqrt((np.abs(x) ** 2).sum(-1, keepdims=True) / count)


def _product(*factors):
    """Of arrays that broadcast."""
    return np.prod(np.broadcast_arrays(*factors), axis=0)


def _normwise(value, k0, product, length) -> Gauge:
    """The same bound for every entry; inputs off by one rounding each cost 2 Π‖argument‖₂."""
    k0, k1 = (np.broadcast_to(k, value.shape) for k in (k0, k0 + 2 * product))
    peak = length * float(np.max(product, initial=0.0, where=np.isfinite(product)))
    return Gauge(value, k0, k1, peak)


def _residuals(op, arrays, statics, gauged, unit, floor) -> tuple[Gauge, ...]:
    """‖M Y − N‖_F against n (‖M‖_F ‖Y‖_F + ‖N‖_F), and the roundings of M and N themselves."""
    assert op.definition is not None
    precise = np.longdouble if np.result_type(*arrays).itemsize >= _double(arrays) else np.float64
    with np.errstate(all="ignore"):
        M, *sides = op.definition(*wide(arrays, precise), **statics)
    if isinstance(M, Equation):
        solved = zip((M, *sides), gauged, strict=True)
        return tuple(replace(g, measure=_misfit(e, g.value, floor)) for e, g in solved)
    M_made, *sides_made = gauges(op.definition, *arrays, unit=unit, **statics)
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


def _exponential(op, arrays, statics, unit, floor) -> tuple[Gauge, ...]:
    """‖Y − e^G‖_F against 2.5 max(1, κ) ‖e^G‖_F, G what the operator exponentiates.

    What the definition returns beside G are the last outputs: no exponential, measured as TRACED.
    """
    assert op.definition is not None
    with np.errstate(all="ignore"):
        outputs = op.reference(*wide(arrays), **statics)
        made = op.definition(*wide(arrays), **statics)
    G, rest = (made[0], made[1:]) if isinstance(made, tuple) else (made, ())
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
        traced = gauges(op.definition, *arrays, unit=unit, floor=floor, **statics)[1:]
        fitted += [
            _along(gauge, y.shape) for gauge, y in zip(traced, outputs[-len(rest) :], strict=True)
        ]
    return tuple(fitted)


def _along(gauge: Gauge, shape) -> Gauge:
    """A gauge over all of the batch, also where its output lacks an axis of it."""
    fields = {f: np.broadcast_to(getattr(gauge, f), shape) for f in ("value", "k0", "k1")}
    return replace(gauge, **fields)


def distance(value):
    """‖y − value‖_F of each member of the batch."""
    return lambda y: frobenius(y - value)[..., None, None].astype(float)
