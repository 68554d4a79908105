"""Laws of time: outputs for a shorter, changed, divided or delayed input."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from refssm._declaration.adapted import adapted, adapters_of
from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.catalog import from_state, resumed, states_in
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.cases.scaled import as_expected, comparable
from refssm.conformance.cases.windows import at_length, cut, in_window, time_axes, timed, windowed
from refssm.conformance.checks.law import NOTHING, law
from refssm.conformance.checks.linear_laws import linear_arguments
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.verdict import Verdict, misfit, worst_of, wrong

LEFT_OUT = "pieces that the implementation declines, or that `only` would change, are not compared"


def _run(candidate: Candidate, arrays, statics) -> tuple[np.ndarray, Gauge]:
    """The first output of one call, and its gauge."""
    y, *_ = candidate.results(arrays, statics)
    return y, candidate.grader.expect(arrays, statics)[0]


def _worst(verdicts: list[Verdict], left_out: bool) -> Verdict:
    """The worst verdict, with a note if pieces were left out."""
    worst = worst_of(verdicts)
    return replace(worst, notes=(*worst.notes, LEFT_OUT)) if left_out else worst


def _points(case: Case, length: int) -> list[int]:
    """Where to cut: one random step, and a random multiple of 64 if there is one."""
    rng = case.generator(101)
    points = {int(rng.integers(1, length))} if length > 1 else set()
    blocks = (length - 1) // 64
    return sorted(points | ({64 * int(rng.integers(1, blocks + 1))} if blocks else set()))


@law(owed=lambda op: "causal" in op.traits, cuts=True)
def prefix(candidate: Candidate, case: Case) -> Verdict:
    """The outputs of a shortened input are the first outputs of the whole input."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    y, gauge = _run(candidate, arrays, statics)
    verdicts, left_out = [NOTHING], False
    for k in _points(case, y.shape[-len(op.output_dims[0])]):
        try:
            short = cut(op, arrays, slice(0, k))
            short, fewer = candidate.piece(short, at_length(op, statics, k))
            first, bound = _run(candidate, short, fewer)
        except Declined:
            left_out = True
            continue
        past = slice(0, first.shape[-len(op.output_dims[0])])  # `only` may cut to blocks
        whole, kept = windowed(op, gauge, past), in_window(op, y, past)
        verdicts.append(candidate.grader.agree(arrays, first, kept, bound, whole))
    return _worst(verdicts, left_out)


@law(owed=lambda op: "causal" in op.traits and bool(timed(op)), touches=timed)
def causal(candidate: Candidate, case: Case) -> Verdict:
    """Changing later inputs does not change earlier outputs."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    y, gauge = _run(candidate, arrays, statics)
    verdicts = [NOTHING]
    for k in _points(case, y.shape[-len(op.output_dims[0])]):
        changed = _with_another_future(candidate, arrays, k)
        changed, told = candidate.narrowed(changed, statics)
        if told != statics or not _same_past(op, arrays, changed, k):
            return NOTHING  # the implementation's `only` made the past depend on the future
        other, *_ = candidate.results(changed, statics)
        past = slice(0, k)
        bound = windowed(op, gauge, past)
        verdicts.append(
            candidate.grader.agree(
                arrays, in_window(op, other, past), in_window(op, y, past), bound, bound
            )
        )
    return worst_of(verdicts)


def _with_another_future(candidate: Candidate, arrays, k) -> list[np.ndarray]:
    """The arguments changed from step k on, as far as they stay in the operator's domain.

    One that would leave it in reverse order keeps its order, or is left alone.
    """
    op, changed = candidate.op, list(arrays)
    linear, axes = linear_arguments(op), time_axes(op)
    for i, (name, axis) in enumerate(zip(op.inputs, axes, strict=True)):
        if axis is None:
            continue
        factor = -0.5 if name in linear else 0.5
        for order in (-1, 1):
            one = _future_changed(arrays[i], axis, k, factor, order)
            if candidate.inside([*changed[:i], one, *changed[i + 1 :]]):
                changed[i] = one
                break
    return changed


def _future_changed(a, axis, k, factor, order):
    """From step k on, times `factor`, in this or in reverse order; flags inverted."""
    a = np.moveaxis(a.copy(), axis, 0)
    a[k:] = ~a[k:] if a.dtype.kind == "b" else factor * a[k:][::order]
    return np.ascontiguousarray(np.moveaxis(a, 0, axis))


def _same_past(op, arrays, changed, k):
    pasts = (cut(op, x, slice(0, k)) for x in (arrays, changed))
    return all(np.array_equal(a, b) for a, b in zip(*pasts, strict=True))


def _carried(candidate: Candidate, other: Operator, head, statics, y, k) -> list[np.ndarray]:
    """The states after the first k steps, computed by the implementation."""
    op = candidate.op
    if not other.state_outputs:
        return [np.ascontiguousarray(in_window(op, y, slice(k - 1, k)).squeeze(-2))]
    start = head[-states_in(other) :] if from_state(op) else _at_rest(op, other, head)
    pieces, fewer = candidate.piece([*_driving(op, other, head), *start], statics, other)
    if pieces[0].shape != head[0].shape:
        raise Declined  # `only` shortened the piece
    outputs = candidate.results(pieces, fewer, op=other)
    return [np.ascontiguousarray(outputs[j]) for j in other.state_outputs]


def _driving(op: Operator, other: Operator, arrays) -> list[np.ndarray]:
    """The arguments of `other` without its last ones, the states."""
    named = dict(zip(op.inputs, arrays, strict=True))
    return [named[name] for name in [*other.inputs][: -states_in(other)]]


def _at_rest(op: Operator, other: Operator, arrays) -> list[np.ndarray]:
    """Zero states for `other`, with the types of those that it returns."""
    sizes: dict[str, int] = defaultdict(lambda: 1)
    axes = zip(op.batch_axes, op.input_dims, arrays, strict=True)
    for batch, core, a in axes:
        sizes |= {d: n for d, n in zip((*batch, *core), a.shape, strict=True) if d != "1"}
    driving, count = _driving(op, other, arrays), states_in(other)
    single = np.zeros((), np.finfo(np.result_type(*driving)).dtype)
    types = other.output_types(*driving, *[single] * count)
    axes = zip(other.batch_axes[-count:], other.input_dims[-count:], strict=True)
    shapes = [[length_of(d, sizes) for d in (*batch, *core)] for batch, core in axes]
    pairs = zip(shapes, other.state_outputs or (0,), strict=True)  # or the output is the state
    return [np.zeros(shape, types[j]) for shape, j in pairs]


def _going_on(op: Operator) -> Operator | None:
    """The form that starts from a state, of the same parameters; None if there is none."""
    other = resumed(op)
    return other and adapted(other, adapters_of(op))


def _other(op: Operator) -> str:
    """The name of that form, or ""."""
    other = resumed(op)
    return other.name if other else ""


def _state(op: Operator) -> list[str]:
    """The names of its state arguments; [] if there is no such form."""
    other = _going_on(op)
    return [*other.inputs][-states_in(other) :] if other else []


@law(
    owed=lambda op: "state" in op.traits and resumed(op) is not None,
    touches=_state,
    cuts=True,
    needs=_other,
)
def split(candidate: Candidate, case: Case) -> Verdict:
    """A scan that is cut anywhere and continued from its state by the `_from` or `_stateful` form
    gives the outputs of the whole scan.

    A `_from` form returns the states themselves; a `_stateful` form returns y and the last state.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    ys, gauges = candidate.results(arrays, statics), candidate.grader.expect(arrays, statics)
    ys = as_expected(op, ys, gauges)
    other, verdicts, left_out = _going_on(op), [NOTHING], False
    assert other is not None
    taken = {offer.name: offer.adapters for offer in candidate.worker.found}
    if taken.get(other.name) != candidate.offer.adapters:
        return NOTHING  # the state's form takes other parameters
    for k in _points(case, ys[0].shape[-len(op.output_dims[0])]):
        head = cut(op, arrays, slice(0, k))
        try:
            carried = _carried(candidate, other, head, statics, ys[0], k)
            later = _driving(op, other, cut(op, arrays, slice(k, None)))
            pieces, fewer = candidate.piece([*later, *carried], statics, other)
            tail = candidate.results(pieces, fewer, op=other)
        except Declined:
            left_out = True
            continue
        bounds = candidate.grader.expect(pieces, fewer, other)
        rank = len(op.output_dims[0])
        window = slice(k, k + tail[0].shape[-rank])
        kept, whole = in_window(op, ys[0], window), windowed(op, gauges[0], window)
        verdicts.append(
            candidate.grader.agree(arrays, tail[0], kept, bounds[0], whole, through=True)
        )
        tail = comparable(op, (ys[0], *tail[1:]), ys)  # the states; outputs are of fewer steps
        for j in op.state_outputs if window.stop == ys[0].shape[-rank] else ():
            bound = bounds[j], gauges[j]
            verdicts.append(
                candidate.grader.agree(arrays, tail[j], ys[j], *bound, output=j, through=True)
            )
    return _worst(verdicts, left_out)


@law(
    owed=lambda op: "state" in op.traits and from_state(op),
    touches=lambda op: [*timed(op), *_state(op)],
    cuts=True,
    most=5,
)
def rollback(candidate: Candidate, case: Case) -> Verdict:
    """Steps that are rejected leave no trace: from the state before them the scan goes on with
    other steps, and gives the outputs of those alone.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    verdicts = [NOTHING]
    for k in _points(case, _steps(op, arrays, statics)):
        accepted, told = candidate.narrowed(_with_another_future(candidate, arrays, k), statics)
        if told != statics or not _same_past(op, arrays, accepted, k):
            return NOTHING
        ys, gauges = candidate.results(accepted, told), candidate.grader.expect(accepted, told)
        try:
            carried = _carried(candidate, op, cut(op, arrays, slice(0, k)), statics, ys[0], k)
            for steps in (arrays, accepted):  # the rejected ones first
                pieces, fewer = _later(candidate, steps, statics, k, carried)
                tail = candidate.results(pieces, fewer)
        except Declined:
            return Verdict("-", notes=(LEFT_OUT,))
        bound, past = candidate.grader.expect(pieces, fewer)[0], slice(k, None)
        kept, whole = in_window(op, ys[0], past), windowed(op, gauges[0], past)
        verdicts.append(candidate.grader.agree(accepted, tail[0], kept, bound, whole, through=True))
    return worst_of(verdicts)


@law(
    owed=lambda op: "state" in op.traits and from_state(op),
    touches=_state,
    cuts=True,
    tame=True,
    of_gradient=True,
    halves=("float16", "bfloat16"),  # the state is rounded on its way
    most=3,
)
def joined(candidate: Candidate, case: Case) -> Verdict:
    """Two pieces give the gradients of the whole: the cotangent of the state at the cut goes from
    the later piece to the earlier one.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    cotangents, _ = cotangents_of(case, arrays, statics, ())
    verdicts = [NOTHING]
    for k in _points(case, _steps(op, arrays, statics)):
        try:
            found = _joined(candidate, arrays, statics, cotangents, k)
        except Declined:
            return Verdict("-", notes=(LEFT_OUT,))
        verdicts.append(candidate.grader.gradients(found, cotangents, arrays, statics))
    return worst_of(verdicts)


def _joined(candidate: Candidate, arrays, statics, cotangents, k) -> list[np.ndarray]:
    """The gradients of a call, from those of its first k steps and of the others."""
    op, (dy, *ends), states = candidate.op, cotangents, states_in(candidate.op)
    head, windows = cut(op, arrays, slice(0, k)), (slice(0, k), slice(k, None))
    y = None if op.state_outputs else candidate.results(arrays, statics)[0]
    carried = _carried(candidate, op, head, statics, y, k)
    past, future = (in_window(op, dy, window) for window in windows)
    later = _gradients(candidate, [future, *ends], *_later(candidate, arrays, statics, k, carried))
    back = later[-states:]
    if not op.state_outputs:  # its outputs are the states: the last one has both cotangents
        last = past[..., -1:, :] + back.pop()[..., None, :]
        past = np.concatenate([past[..., :-1, :], last], axis=-2)
    earlier = _gradients(candidate, [past, *back], *candidate.piece(head, statics))
    axes = [axis for n, axis in zip(op.inputs, time_axes(op), strict=True) if n not in op.discrete]
    pairs = zip(axes[:-states], earlier, later, strict=False)
    both = [
        one + other if axis is None else np.concatenate((one, other), axis=axis)
        for axis, one, other in pairs
    ]
    return [*both, *earlier[-states:]]


def _steps(op: Operator, arrays, statics) -> int:
    """The length of the first output."""
    return op.output_shapes(*arrays, **statics)[0][-len(op.output_dims[0])]


def _later(candidate: Candidate, arrays, statics, k: int, carried) -> tuple[list, dict]:
    """The steps from k on, from a state; raises Declined if `only` shortens them."""
    op = candidate.op
    given = [*_driving(op, op, cut(op, arrays, slice(k, None))), *carried]
    pieces, fewer = candidate.piece(given, statics)
    if any(a.shape != b.shape for a, b in zip(pieces, given, strict=True)):
        raise Declined
    return pieces, fewer


def _gradients(candidate: Candidate, cotangents, arrays, statics) -> list[np.ndarray]:
    """The gradients of one call; raises Broken for wrong shapes or types."""
    op = candidate.op
    found = candidate.outputs([*cotangents, *arrays], statics, vjp=True)
    named = [(n, a) for n, a in zip(op.inputs, arrays, strict=True) if n not in op.discrete]
    for g, (name, a) in zip(found, named, strict=True):
        if unfit := misfit(g, a.shape, a.dtype, f"d{name}", either=True):
            raise Broken(wrong(unfit, kind=f"shape or type of `d{name}`"))
    return list(found)


@law(
    owed=lambda op: "time-invariant" in op.traits,
    touches=lambda op: linear_arguments(op) or timed(op),
)
def shift(candidate: Candidate, case: Case) -> Verdict:
    """An input delayed by some steps gives the output delayed by the same number of steps.

    If the operator is linear in the input, the output is 0 until then; otherwise only the output
    from then on is compared.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    y, gauge = _run(candidate, arrays, statics)
    length, verdicts, left_out = y.shape[-len(op.output_dims[0])], [NOTHING], False
    axes = dict(zip(op.inputs, time_axes(op), strict=True))
    groups = [group for group, _ in op.linear_in] or [timed(op)]
    for group in groups:
        if any(axes[name] is None for name in group):
            continue
        for k in _points(case, length):
            late = [
                _delayed(a, axes[n], k) if n in group else a
                for n, a in zip(op.inputs, arrays, strict=True)
            ]
            try:
                other, bound = _run(candidate, candidate.admitted(late, statics), statics)
            except Declined:
                left_out = True
                continue
            axis = -len(op.output_dims[0])
            delayed = gauge.moved(lambda a, k=k, axis=axis: _delayed(a, axis, k))
            wanted = _delayed(y, axis, k)
            if not op.linear_in:
                after = slice(k, None)
                other, wanted = (in_window(op, x, after) for x in (other, wanted))
                bound, delayed = (windowed(op, g, after) for g in (bound, delayed))
            verdicts.append(candidate.grader.agree(late, other, wanted, bound, delayed))
    return _worst(verdicts, left_out)


def _delayed(a, axis, k):
    """k zeros, then `a`, cut to its length."""
    a = np.moveaxis(a, axis, 0)
    late = np.concatenate([np.zeros_like(a[:k]), a[: a.shape[0] - k]])
    return np.ascontiguousarray(np.moveaxis(late, 0, axis))
