from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cotangents, examples, laws, several

from refssm.catalog import OPERATORS
from refssm.conformance.cases.windows import at_length, cut, in_window, windowed
from refssm.conformance.checks.checks import types_of
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.expected import expect, judged_type
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import worst_of
from refssm.conformance.standard import C

DOUBLE = ("float64", "complex128")
# tests/conformance/planted/test_planted.py draws the judge's own cases of every operator and role;
# this file draws the broadcasting
WITH_ARGUMENTS = [op for op in OPERATORS if op.inputs]
few = settings(laws, max_examples=5)


def judged(keep=lambda op, dtype: True):
    """Parametrization over operators, types and the roles that exist."""
    cases = [
        pytest.param(op, dtype, role, id=f"{op}-{dtype}-{role}")
        for op in WITH_ARGUMENTS
        for dtype in types_of(op)
        for role in ("reference", "jit")
        if role not in op.lacks and keep(op, dtype)
    ]
    return pytest.mark.parametrize(("op", "dtype", "role"), cases)


# a step of 1e-30 times a subnormal argument would vanish in the 100 digits of the result
NORMAL = ("each", "constant", "channel", "impulse", "late", "gaps", "beside")

each_type = judged()
each_precise_type = judged(lambda op, dtype: dtype in DOUBLE)
each_kind = judged(lambda op, dtype: dtype in (types_of(op)[0], "complex128"))
each_gradient = judged(
    lambda op, dtype: dtype not in DOUBLE or op.contract.judges_gradients_in_double
)


@pytest.mark.long
@each_type
@given(data=st.data())
@few
def test_values_are_right_over_arbitrary_broadcasting(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    verdict = judge(op, op.implementation(role), *example.arrays, **example.statics)
    assert verdict.ok, verdict


@pytest.mark.long
@each_gradient
@given(data=st.data())
@few
def test_gradients_are_right_and_have_shape_and_kind_of_their_arguments(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    arrays, statics = example.arrays, example.statics
    backwards = cotangents(example, several(op.reference(*arrays, **statics)))
    gauges = expect(op, [*backwards, *arrays], statics, op.bare_vjp)
    gradients = op.vjp(role)(*backwards, *arrays, **statics)
    assert isinstance(gradients, tuple)
    precision = judged_type([*backwards, *arrays])
    assert [g is None for g in gradients] == [name in op.discrete for name in op.inputs]
    pairs = [(g, a) for g, a in zip(gradients, arrays, strict=True) if g is not None]
    for (g, a), gauge in zip(pairs, gauges, strict=True):
        kind = precision if np.iscomplexobj(a) else np.finfo(precision).dtype
        verdict = compare(g, gauge, np.dtype(kind))
        assert verdict.ok, verdict
        assert g.shape == a.shape
        assert g.dtype == kind


@pytest.mark.long
@each_precise_type
@given(data=st.data())
@few
def test_the_vjp_is_the_adjoint_of_the_oracles_derivative(op, dtype, role, data):
    example = data.draw(examples(op, dtype, textures=NORMAL))
    assert adjoint_slip(op, op.vjp(role), example) <= C


@pytest.mark.long
@each_kind
@given(data=st.data())
@few
def test_linear_arguments_may_be_added_before_or_after(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    first, other = example.arrays, example.redrawn().arrays
    f, statics = op.implementation(role), example.statics
    for group, outputs in op.linear_in:
        linear = [name in group for name in op.inputs]
        second = [y if l else x for x, y, l in zip(first, other, linear, strict=True)]
        both = [x + y if l else x for x, y, l in zip(first, other, linear, strict=True)]
        parts = [several(f(*arrays, **statics)) for arrays in (first, second, both)]
        bounds = [expect(op, arrays, statics) for arrays in (first, second, both)]
        for j in outputs:
            (x, y, total), gauges = ([p[j] for p in each] for each in (parts, bounds))
            k = np.sum(
                [g.k1 for g in gauges], axis=0
            )  # K1: the sums of the arguments are also rounded
            wanted = Gauge(x + y, k, k, max(g.peak for g in gauges))
            verdict = compare(total, wanted, op.output_types(*first)[j])
            assert verdict.ok, verdict


@pytest.mark.long
@each_kind
@given(data=st.data())
@few
def test_each_member_of_a_batch_is_what_it_is_alone(op, dtype, role, data):
    example = data.draw(examples(op, dtype, max_dims=2))
    outputs = several(op.implementation(role)(*example.arrays, **example.statics))
    verdicts = []
    for index, arrays in example.slices():
        member = [np.asarray(y[index]) for y in outputs]
        result = tuple(member) if len(member) > 1 else member[0]
        verdicts.append(judge(op, lambda *_, y=result, **__: y, *arrays, **example.statics))
    assert worst_of(verdicts).ok, worst_of(verdicts)


@pytest.mark.long
@judged(lambda op, dtype: "causal" in op.traits and dtype in ("float32", "complex128"))
@given(data=st.data())
@few
def test_the_outputs_of_a_shorter_input_are_the_first_outputs(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    y, *_ = several(op.implementation(role)(*example.arrays, **example.statics))
    whole, *_ = expect(op, example.arrays, example.statics)
    for k in range(1, y.shape[-len(op.output_dims[0])]):
        past, shorter = slice(0, k), at_length(op, example.statics, k)
        short, *_ = expect(op, cut(op, example.arrays, past), shorter)
        wanted = replace(windowed(op, whole, past), value=short.value)
        verdict = compare(in_window(op, y, past), wanted, y.dtype)
        assert verdict.ok, verdict


@pytest.mark.long
@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_the_examples_reach_every_map_unequal_ranks_and_stretched_axes(op):
    maps, ranks, stretched = set(), set(), set()

    @given(example=examples(op, "complex128"))
    @laws
    def collect(example):
        maps.update((name, knob.map) for name, knob in example.knobs.items())
        ranks.add(len({len(shape) - len(dims) for shape, dims in _pairs(example)}) > 1)
        batch = op.batch_shape(*example.arrays)
        stretched.add(
            any(shape[: len(shape) - len(dims)] != batch for shape, dims in _pairs(example))
        )

    collect()
    both = {True, False} if len(op.inputs) > 1 else {False}  # a single argument is never broadcast
    assert ranks == stretched == both
    assert len(maps) >= 2 * len(op.inputs)


def _pairs(example):
    return list(zip(example.shapes, example.op.input_dims, strict=True))
