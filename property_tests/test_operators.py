import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cotangents, examples, laws, several

from refssm.catalog import OPERATORS
from refssm.conformance.certify import adjoint_slip
from refssm.conformance.checks import types_of
from refssm.conformance.expectation import expect, judged_type
from refssm.conformance.gauge import Gauge
from refssm.conformance.judge import C, compare, judge, worst_of
from refssm.conformance.laws import cut, in_window

ROLES = ("reference", "jit")
DOUBLE = ("float64", "complex128")
TYPES = [(op, dtype) for op in OPERATORS for dtype in types_of(op)]
IDS = [f"{op}-{dtype}" for op, dtype in TYPES]
PRECISE = [(op, dtype) for op, dtype in TYPES if dtype in DOUBLE]
PRECISE_IDS = [f"{op}-{dtype}" for op, dtype in PRECISE]

# a step of 1e-30 of a subnormal argument is lost in the 100 digits of the result
NORMAL = ("each", "constant", "channel", "impulse", "late", "gaps", "beside")

each_type = pytest.mark.parametrize(("op", "dtype"), TYPES, ids=IDS)
each_precise_type = pytest.mark.parametrize(("op", "dtype"), PRECISE, ids=PRECISE_IDS)
each_role = pytest.mark.parametrize("role", ROLES)


@each_role
@each_type
@given(data=st.data())
@laws
def test_values_are_right_over_arbitrary_broadcasting(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    verdict = judge(op, op.implementation(role), *example.arrays, **example.statics)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_gradients_are_right_and_have_shape_and_kind_of_their_arguments(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    arrays, statics = example.arrays, example.statics
    backwards = cotangents(example, several(op.reference(*arrays, **statics)))
    gauges = expect(op, [*backwards, *arrays], statics, op.bare_vjp)
    gradients = op.vjp(role)(*backwards, *arrays, **statics)
    assert isinstance(gradients, tuple)
    precision = judged_type([*backwards, *arrays])
    for g, gauge, a in zip(gradients, gauges, arrays, strict=True):
        kind = precision if np.iscomplexobj(a) else np.finfo(precision).dtype
        verdict = compare(g, gauge, np.dtype(kind))
        assert verdict.ok, verdict
        assert g.shape == a.shape
        assert g.dtype == kind


@each_role
@each_precise_type
@given(data=st.data())
@laws
def test_the_vjp_is_the_adjoint_of_the_oracles_derivative(op, dtype, role, data):
    example = data.draw(examples(op, dtype, textures=NORMAL))
    assert adjoint_slip(op, op.vjp(role), example) <= C


@each_role
@each_type
@given(data=st.data())
@laws
def test_linear_arguments_may_be_added_before_or_after(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    first, other = example.arrays, example.redrawn().arrays
    f, statics = op.implementation(role), example.statics
    for group in op.linear_in:
        linear = [name in group for name in op.inputs]
        second = [y if l else x for x, y, l in zip(first, other, linear, strict=True)]
        both = [x + y if l else x for x, y, l in zip(first, other, linear, strict=True)]
        parts = [several(f(*arrays, **statics)) for arrays in (first, second, both)]
        bounds = [expect(op, arrays, statics) for arrays in (first, second, both)]
        for x, y, total, *gauges in zip(*parts, *bounds, strict=True):
            k = sum(g.k1 for g in gauges)  # K1: the sums of the arguments are rounded too
            wanted = Gauge(x + y, k, k, max(g.peak for g in gauges))
            verdict = compare(total, wanted, judged_type(first))
            assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_each_member_of_a_batch_is_what_it_is_alone(op, dtype, role, data):
    example = data.draw(examples(op, dtype, max_dims=2))
    outputs = several(op.implementation(role)(*example.arrays, **example.statics))
    verdicts = []
    for index, arrays in example.slices():
        member = tuple(y[index] for y in outputs)
        result = member if len(member) > 1 else member[0]
        verdicts.append(judge(op, lambda *_, y=result, **__: y, *arrays, **example.statics))
    assert worst_of(verdicts).ok, worst_of(verdicts)


CAUSAL = [(op, dtype) for op, dtype in TYPES if "causal" in op.traits]


@each_role
@pytest.mark.parametrize(("op", "dtype"), CAUSAL, ids=[f"{op}-{dtype}" for op, dtype in CAUSAL])
@given(data=st.data())
@laws
def test_the_outputs_of_a_shorter_input_are_the_first_outputs(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    y = op.implementation(role)(*example.arrays, **example.statics)
    length = y.shape[-len(op.output_dims[0])]
    for k in range(1, length):
        past = slice(0, k)
        start = in_window(op, y, past)
        verdict = judge(op, lambda *_, y=start: y, *cut(op, example.arrays, past))
        assert verdict.ok, verdict


@pytest.mark.parametrize("op", OPERATORS, ids=str)
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
    assert ranks == stretched == {True, False}
    assert len(maps) >= 2 * len(op.inputs)


def _pairs(example):
    return list(zip(example.shapes, example.op.input_dims, strict=True))
