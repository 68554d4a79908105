"""The error bounds of each contract, for the outputs of an operator and for its gradients.

For operators with programs in `refssm/conformance/gauges/programs`, bounds are measured by those
(`programs/measured.py`), and the contract's bound only tells an inaccurate result from a wrong one.
`BOUNDS`, at the end of this file, has one entry per contract:

TRACED: one bound per entry, from a run of the reference on tracked arrays. Gradients have this
    bound under all contracts but FFT and SPECTRUM.
CHAIN: as TRACED, through all operators of a layer; those that transform have rules in a norm.
SCALED: as TRACED, of states that are kept as e^{−m} S with an m of the program's own choice.
TURNED: as TRACED, of a state that has angles: whole turns of them are no errors.
NORM: the 2-norm of the traced bounds of a state, for each of its entries, because a recurrence
    mixes the errors of a state's entries.
GAUSSIAN: the norm of the errors of a mean or covariance (`recurrences/kalman.py`), because single
    operations of a filter have bounds that double with each of them.
FFT: products of the arguments' norms, because the error of a small entry of a transform is
    relative to those norms and not to the entry.
COLUMNS: the 2-norm of the errors of each column of a recurrence's state (`columns`).
TRIANGULAR: |X| |L| |X| for the inverse X of I + L (`linalg.py`), because the bound of each single
    operation of a substitution explodes.
SPECTRUM: the tracked errors of a spectrum, as one number for all of it.
SOLVE: the residual of a linear system or matrix equation.
EXPM: the condition number of each block of the matrix exponential.
SINGULAR, GRAMIANS: one bound per entry, from the rules in `hankel.py`.
INVARIANTS: infinite bounds, because entries depend on the choice of basis;
    `refssm/conformance/judging/invariants.py` compares quantities that do not.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from refssm._declaration.adapted import adapters_of, through
from refssm._declaration.arguments import several
from refssm._declaration.contract import (
    CHAIN,
    COLUMNS,
    EXPM,
    FFT,
    GAUSSIAN,
    GRAMIANS,
    INVARIANTS,
    NORM,
    SCALED,
    SINGULAR,
    SOLVE,
    SPECTRUM,
    TRACED,
    TRIANGULAR,
    TURNED,
    Contract,
    Equation,
)
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.adapters import NORM_OF_ROWS
from refssm.conformance.gauges import columns, cumulated
from refssm.conformance.gauges.columns import inside  # noqa: F401  # importing it registers its rules
from refssm.conformance.gauges.gauge import Gauge, Gauges, Measure, TrackedCall, wide
from refssm.conformance.gauges.linalg import (
    CHARGE,
    TRANSFORMS,
    blocks_of_exponential,
    frobenius,
    two_norm,
)
from refssm.conformance.gauges.programs import (
    AGAIN_GRADIENTS,
    AGAIN_OUTPUTS,
    GRADIENTS,
    OUTPUTS,
)
from refssm.conformance.gauges.programs.measured import measured, measured_again
from refssm.conformance.gauges.programs.pieces import of_any
from refssm.conformance.gauges.rules import tree


def of_transform(call: TrackedCall) -> Gauges:
    """The bound 3 √log2(2l) Π‖argument‖₂ for every entry.

    Arguments in which the operator is jointly linear add their norms, as one factor.
    """
    op, norms, length = call.op, _norms_by_name(call), _length(call)
    assert op.definition is not None
    with np.errstate(all="ignore"):
        y = op.definition(*wide(call.arrays), **call.statics)
    product = _product(*(sum(norms[n] for n in group.arguments) for group in op.linear_in))
    return (_normwise(y, _transform_charge(length) * product, product, length),)


def of_transform_gradients(call: TrackedCall, vjp: Callable) -> Gauges:
    """As `of_transform`, with the cotangent's norm in place of the norm of the argument itself."""
    op, norms, length = call.op, _norms_by_name(call), _length(call)
    charge, gauged = _transform_charge(length), []
    with np.errstate(all="ignore"):
        gradients = vjp(*wide(call.arrays), **call.statics)
    for name, gradient, primal in zip(op.inputs, gradients, call.arrays[1:], strict=True):
        groups = [group.arguments for group in op.linear_in if name not in group.arguments]
        others = [sum(norms[n] for n in group) for group in groups]
        product = _product(_norm_along(call.arrays[0]), *others, np.ones_like(norms[name]))
        product = np.broadcast_to(product, (*product.shape[:-1], primal.shape[-1]))
        summed = unbroadcast(product, np.real(primal))
        terms = product.size // max(1, summed.size)
        gauged.append(_normwise(gradient, (charge + tree(terms)) * summed, summed, length))
    return tuple(gauged)


def _norms_by_name(call: TrackedCall) -> dict[str, Any]:
    """The 2-norm of each argument along time; cotangents, the first arrays, are left out."""
    primals = call.arrays[len(call.arrays) - len(call.op.inputs) :]
    return dict(zip(call.op.inputs, map(_norm_along, primals), strict=True))


def _norm_along(array):
    """‖array‖₂ along the last axis, kept with length 1."""
    (array,) = wide([array])
    with np.errstate(all="ignore"):
        return np.sqrt((np.abs(array) ** 2).sum(-1, keepdims=True))


def _length(call: TrackedCall) -> int:
    """The longest signal: a keyword may say how long the output is."""
    length = call.statics.get(call.op.leading, 1)
    return max(1, length, *(array.shape[-1] for array in call.arrays))


def _transform_charge(length):
    return TRANSFORMS * np.sqrt(np.log2(2 * length))


def of_spectrum(call: TrackedCall) -> Gauges:
    """One bound for all of a slice: the tracked error of the spectrum plus that of the transform.

    If the operator has a definition, it returns a kernel, the inverse transform of the definition's
    spectrum: an entry errs by at most the mean of the errors at the nodes, plus log2(2l) ‖K‖₂.
    Otherwise it returns a spectrum: the largest error of any node, plus log2(2l) root mean squares.
    """
    op, statics = call.op, call.statics
    length = max(1, statics[op.leading])
    transform = np.log2(2 * length)
    if op.definition is None:
        (gauge,) = call.tracked(op.reference)
        most = {k: _largest(getattr(gauge, k), 1) for k in ("k0", "k1")}
        more = transform * _mean_square(gauge.value)
    else:
        (made,) = call.tracked(op.definition)
        with np.errstate(all="ignore"):
            K = op.reference(*wide(call.arrays), **statics)
        gauge = Gauge(K, K.real, K.real, made.peak, normwise=True)
        most = {k: _mean(getattr(made, k)) for k in ("k0", "k1")}
        more = transform * np.sqrt(length) * _mean_square(K)
    least = np.maximum(np.abs(gauge.value), call.floor)
    bounds = {k: np.maximum(least, m + more) for k, m in most.items()}
    return (replace(gauge, **bounds),)


def of_spectrum_gradients(call: TrackedCall, vjp: Callable) -> Gauges:
    """The tracked errors of the VJP; every entry of a gradient's slice has the largest of them.

    A transform of the cotangent spreads its norm over all entries, so each cotangent entry counts
    with at least the root mean square of all.
    """
    (dk,), primals = call.arrays[:1], call.arrays[1:]
    size = np.abs(dk).astype(float)
    raised = np.maximum(size, _mean_square(size))
    unit_of = np.where(size > 0, dk / np.where(size > 0, size, 1), 1)
    made = call.tracked(vjp, [unit_of * raised, *primals])
    with np.errstate(all="ignore"):
        values = vjp(*wide(call.arrays), **call.statics)
    gauged = []
    for value, gauge, dims in zip(values, made, call.op.input_dims, strict=True):
        fields = {k: _largest(getattr(gauge, k), len(dims)) for k in ("k0", "k1")}
        gauged.append(replace(gauge, value=value, normwise=True, **fields))
    return tuple(gauged)


def _largest(k, rank):
    """The largest over the last `rank` axes, broadcast back to the shape of k."""
    axes = tuple(range(-rank, 0))
    return np.broadcast_to(k.max(axes, keepdims=True, initial=0.0), k.shape) if rank else k


def _mean(k):
    """The mean along the last axis, over all nodes of the definition, which may be more than l."""
    return k.sum(-1, keepdims=True) / max(1, k.shape[-1])


def _mean_square(x):
    """√(Σ|x|²/l) along the last axis."""
    count = max(1, x.shape[-1])
    with np.errstate(all="ignore"):
        return np.sqrt((np.abs(x) ** 2).sum(-1, keepdims=True) / count)


def _product(*factors):
    """The product of arrays that broadcast."""
    return np.prod(np.broadcast_arrays(*factors), axis=0)


def _normwise(value, k0, product, length) -> Gauge:
    """One bound for every entry; k1 adds 2 Π‖argument‖₂ for inputs off by one rounding each."""
    k0, k1 = (np.broadcast_to(k, value.shape) for k in (k0, k0 + 2 * product))
    peak = length * float(np.max(product, initial=0.0, where=np.isfinite(product)))
    return Gauge(value, k0, k1, peak)


def bounds(
    op: Operator,
    arrays,
    statics: Mapping,
    vjp: Callable | None,
    *,
    unit: float,
    floor: float,
    values=None,
) -> Gauges:
    """One gauge per output of `op`, or per gradient if its `vjp` is given.

    `values`, if known, are the results in double precision: of the VJP without those that are None.
    """
    call, bound = TrackedCall(op, arrays, statics, unit, floor, values), BOUNDS[op.contract]
    if vjp is None:
        programs, derive = output_programs(op), partial(bound.outputs, call)
        exact = exact_program(op)
    else:
        programs, derive = gradient_programs(op), partial(bound.gradients, call, vjp)
        exact = vjp
    if programs:
        entries = _of_entries(call)
        gauges = measured(call, exact, programs, derive, entries=entries, values=values)
    else:
        gauges = derive()
    if op.contract is COLUMNS:
        return columns.beside(call, gauges, vjp, _by_chunks(call, vjp))
    return cumulated.beside(call, gauges, of_vjp=vjp is not None)


def _by_chunks(call: TrackedCall, vjp: Callable | None) -> Callable[[], Gauges] | None:
    """Makes the bounds of a rule by steps as those of the operator by chunks, if it has one."""
    same = columns.in_chunks(call)
    if same is None:
        return None
    how = {"unit": call.unit, "floor": call.floor, "values": call.values}
    pulled = vjp and same.op.bare_vjp
    return cache(lambda: bounds(same.op, same.arrays, same.statics, pulled, **how))


def measurable_again(op: Operator, arrays, statics: Mapping, vjp, gauges: Gauges) -> Gauges:
    """The gauges, where they are measured with a second measure on many more copies."""
    programs = output_programs(op) if vjp is None else gradient_programs(op)
    further = (AGAIN_OUTPUTS if vjp is None else AGAIN_GRADIENTS).get(op.name, {})
    further = {name: through(op, p, vjp is not None) for name, p in further.items()}
    if not programs or not any(g.measured for g in gauges):
        return gauges
    call = TrackedCall(op, arrays, statics, 0.0, 0.0)

    @cache
    def again() -> list[np.ndarray]:
        return measured_again(call, vjp or exact_program(op), {**programs, **further}, gauges)

    return tuple(
        replace(g, more_copies=lambda j=j: again()[j]) if g.measured else g
        for j, g in enumerate(gauges)
    )


def _of_entries(call: TrackedCall) -> bool:
    """Whether the derived bound of each entry holds, too, beside the measured one of its slice."""
    op = call.op
    if op.name in STEPPED:
        length = op.sizes(*call.arrays[-len(op.inputs) :], **call.statics)["l"]
        return int(length) <= LONG
    return op.contract is not SPECTRUM


def output_programs(op: Operator) -> Mapping[str, Callable] | None:
    """The programs by which the bounds of its outputs are measured, if they are."""
    if op.name in OUTPUTS:
        return {name: through(op, program) for name, program in OUTPUTS[op.name].items()}
    groups = [
        tuple(map(list(op.inputs).index, group))
        for group, outputs in op.linear_in
        if len(outputs) == len(op.outputs)
    ]
    return of_any(op.reference, groups[-1], groups[0]) if groups and _summed(op) else None


def _summed(op: Operator) -> bool:
    """Whether a bound by three sums of its formula is measured; another formula may err as much."""
    return op.contract in MEASURED and op.name not in DERIVED


def gradient_programs(op: Operator) -> Mapping[str, Callable] | None:
    """The programs by which the bounds of its gradients are measured, if they are.

    Behind a norm they are not: (g − k (g·k))/‖θ‖ cancels, and in single precision k may be 1.
    """
    if any(adapter.name == NORM_OF_ROWS for adapter in adapters_of(op)):
        return None
    if op.name in GRADIENTS:
        return {name: through(op, program, True) for name, program in GRADIENTS[op.name].items()}
    return of_any(op.bare_vjp, range(len(op.outputs))) if _summed(op) else None


def _traced(call: TrackedCall) -> Gauges:
    return call.tracked(call.op.reference)


def exact_program(op: Operator) -> Callable:
    """The program of the values: for several forms of one function, the one that defines them.

    It may take fewer operations: the attention form of SSD is quadratic in the length.
    """
    followed = op.contract in (TRACED, COLUMNS, SCALED, TURNED)
    return (op.definition if followed else None) or op.reference


def _traced_by_definition(call: TrackedCall) -> Gauges:
    """Tracked bounds of the operator's definition if it has one, else of its reference."""
    return call.tracked(exact_program(call.op))


def _traced_gradients(call: TrackedCall, vjp: Callable) -> Gauges:
    return call.tracked(vjp, partial=True)


def _without_bound(call: TrackedCall) -> Gauges:
    """The values, with infinite bounds."""
    return tuple(replace(g, k0=g.k0 + np.inf, k1=g.k1 + np.inf) for g in _traced(call))


def _in_norm_of_states(call: TrackedCall) -> Gauges:
    return tuple(map(_of_states, _traced(call)))


def _of_states(gauge: Gauge) -> Gauge:
    """Replace each bound by the 2-norm of the bounds along the last axis, which is the state."""
    k0, k1 = (np.broadcast_to(two_norm(k), k.shape) for k in (gauge.k0, gauge.k1))
    return replace(gauge, k0=k0, k1=k1)


def _residuals(call: TrackedCall) -> Gauges:
    """Measure ‖M Y − N‖_F; the bound is n (‖M‖_F ‖Y‖_F + ‖N‖_F), plus the errors of M and N."""
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
    """Bytes of one double precision number: 16 if any array is complex, else 8."""
    return 16 if any(map(np.iscomplexobj, arrays)) else 8


def _residual(M, N, Y, M_errors, N_errors, floor) -> Measure:
    solved = M.shape[-1] * (frobenius(M) * frobenius(Y) + frobenius(N))
    made = frobenius(M_errors) * frobenius(Y) + frobenius(N_errors)  # I + ½dt A: cancellation
    underflows = floor * np.sqrt(N.shape[-1] * N.shape[-2]) * (1 + frobenius(M))
    bound = solved + made + underflows
    return Measure(
        "residual",
        lambda y: frobenius(M @ y - N)[..., None, None].astype(float),
        bound[..., None, None].astype(float),
    )


def _misfit(equation: Equation, Y, floor) -> Measure:
    """Measure ‖Σ L Y R − N‖_F; the bound is n (Σ ‖L‖_F ‖Y‖_F ‖R‖_F + ‖N‖_F)."""
    size, N = sum(_norm(left) * _norm(right) for left, right in equation.terms), equation.side
    n = N.shape[-1]
    bound = n * (size * frobenius(Y) + frobenius(N)) + floor * n * (1 + size)

    def residual(y):
        products = (_between(left, y, right) for left, right in equation.terms)
        return frobenius(sum(products) - N)[..., None, None].astype(float)

    return Measure("residual", residual, bound[..., None, None].astype(float))


def _norm(M):
    """‖M‖_F, or 1 if M is None, which stands for the identity."""
    return 1.0 if M is None else frobenius(M)


def _between(left, Y, right):
    """The product left Y right, where None stands for the identity."""
    Y = Y if left is None else left @ Y
    return Y if right is None else Y @ right


def _exponentials(call: TrackedCall) -> Gauges:
    """Measure ‖Y − e^G‖_F block by block, by `blocks_of_exponential`: Ā, and what is right of it.

    G, the matrix to exponentiate, is the first value that the operator's definition returns.
    Further values of the definition are the last outputs of the operator; they are no exponentials
    and have the bounds of TRACED.
    """
    op, arrays, statics = call.op, call.arrays, call.statics
    assert op.definition is not None
    with np.errstate(all="ignore"):
        outputs = op.reference(*wide(arrays), **statics)
        G, *rest = several(op.definition(*wide(arrays), **statics))
    first, right = blocks_of_exponential(G, outputs[0].shape[-1], call.floor)
    sizes = (np.abs(a) for a in (*arrays, *outputs))
    peak = max(float(s.max(initial=0, where=np.isfinite(s))) for s in sizes)
    fitted = []
    for j, y in enumerate(outputs[: len(outputs) - len(rest)]):
        own, backward = (k[..., None, None] for k in (right if j else first))
        # one rounding of dt and one of the matrix add as much as the program's own
        k0, k1 = (np.broadcast_to(k, y.shape) for k in (own, backward * (1 + 2 / CHARGE)))
        fitted.append(Gauge(y, k0, k1, peak, Measure("error", distance(y), own, backward)))
    if rest:
        traced = zip(call.tracked(op.definition)[1:], outputs[-len(rest) :], strict=True)
        fitted += [_along(gauge, y.shape) for gauge, y in traced]
    return tuple(fitted)


def _along(gauge: Gauge, shape) -> Gauge:
    """The gauge, broadcast to `shape`: its output may lack batch axes."""
    fields = {f: np.broadcast_to(getattr(gauge, f), shape) for f in ("value", "k0", "k1")}
    return replace(gauge, **fields)


def distance(value):
    """A function of y: ‖y − value‖_F for each member of the batch, shape (…, 1, 1)."""
    return lambda y: frobenius(y - value)[..., None, None].astype(float)


class Bound(NamedTuple):
    """The two functions of a contract: bounds of the outputs and bounds of the gradients."""

    outputs: Callable[[TrackedCall], Gauges]
    gradients: Callable[[TrackedCall, Callable], Gauges] = _traced_gradients


# Results under these contracts are long sums, and the derived bound adds the errors of all terms
MEASURED = (TRACED, SPECTRUM, FFT, SINGULAR, GAUSSIAN)
# but of a quotient of sums: three sums of one formula say nothing about another formula for it
# and of what a transform gives, too: its errors are those of its norms, and of angles times n
# nor of a transform of both kernels at once: the rounding of one is in what the other gives
BOTH = frozenset({"bidirectional_convolution", "bidirectional_convolution_shifted"})
# nor of polynomials of x = 1 − 2s: where single precision has x = 1, double precision rounds x
OF_LEGENDRE = frozenset(f"hippo_reconstruct_{measure}" for measure in ("legs", "legt", "lmu"))
# nor of rows divided by their length: a sum of squares has tight bounds, and loops may add in order
NORMS = frozenset({"rms_norm_gated", "gated_rms_norm", "l2_norm"})
DERIVED = BOTH | OF_LEGENDRE | {"dss_softmax_kernel", "hope_transfer", "shift_kernel"} | NORMS
# Their references take one step of Python for each time, and tracked steps take seconds: on longer
# cases the measured bound holds alone
STEPPED, LONG = frozenset({"krylov_kernel", "markov_parameters", "hippo_project"}), 128
BOUNDS: dict[Contract, Bound] = {
    TRACED: Bound(_traced_by_definition),
    SCALED: Bound(_traced_by_definition),
    TURNED: Bound(_traced_by_definition),
    CHAIN: Bound(_traced),
    NORM: Bound(_in_norm_of_states),
    GAUSSIAN: Bound(_traced),
    COLUMNS: Bound(columns.of_columns, columns.of_columns_gradients),
    TRIANGULAR: Bound(_traced),
    SINGULAR: Bound(_traced),
    GRAMIANS: Bound(_traced),
    FFT: Bound(of_transform, of_transform_gradients),
    SPECTRUM: Bound(of_spectrum, of_spectrum_gradients),
    SOLVE: Bound(_residuals),
    EXPM: Bound(_exponentials),
    INVARIANTS: Bound(_without_bound),
}
