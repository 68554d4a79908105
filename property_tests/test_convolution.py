import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cotangents, examples, laws

from refssm.conformance.judging.expected import expect, judged_type
from refssm.conformance.judging.grading import compare, judge
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT

TYPES = ("float32", "complex128")  # both precisions, real and complex
EXACT = {"maps": ("one", "integer"), "textures": ("each", "constant", "impulse", "late", "gaps")}
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each_op = pytest.mark.parametrize("op", [CAUSAL_CONVOLUTION_DIRECT, CAUSAL_CONVOLUTION], ids=str)


def verdict_on(op, value, u, k):
    """The judge's verdict on `value` as the convolution of these."""
    return judge(op, lambda *_: value, u, k)


def lengthened(x, more):
    """`x` with `more` zeros at the end."""
    return np.concatenate([x, np.zeros((*x.shape[:-1], more), x.dtype)], -1)


def delayed(x, lag):
    """`x` delayed by `lag` steps; the end is cut off."""
    return np.concatenate([np.zeros_like(x[..., :lag]), x[..., : x.shape[-1] - lag]], -1)


@each_role
@each_type
@each_op
@given(data=st.data())
@laws
def test_signal_and_kernel_may_be_exchanged(op, dtype, role, data):
    u, k = data.draw(examples(op, dtype)).arrays
    verdict = verdict_on(op, op.implementation(role)(k, u), u, k)
    assert verdict.ok, verdict


@each_role
@each_type
@each_op
@given(data=st.data(), lag=st.integers(0, 4))
@laws
def test_a_delay_may_come_before_or_after(op, dtype, role, data, lag):
    # the product with an impulse is associative; the zeros prevent that the delay cuts off numbers
    u, k = (lengthened(x, 4) for x in data.draw(examples(op, dtype)).arrays)
    conv, impulse = op.implementation(role), (np.arange(u.shape[-1]) == lag).astype(u.real.dtype)
    after, before = conv(conv(u, k), impulse), conv(u, conv(k, impulse))
    for value in (after, before, delayed(conv(u, k), lag)):
        verdict = verdict_on(op, value, u, delayed(k, lag))
        assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_three_factors_may_be_grouped_either_way_exactly_on_integers(dtype, role, data):
    op = CAUSAL_CONVOLUTION_DIRECT
    example = data.draw(examples(op, dtype, **EXACT))
    (u, k), (w, _) = example.arrays, example.redrawn().arrays
    conv = op.implementation(role)
    assert np.array_equal(conv(conv(u, k), w), conv(u, conv(k, w)))


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_gradients_are_adjoint_exactly_on_integers(dtype, role, data):
    op = CAUSAL_CONVOLUTION_DIRECT
    example = data.draw(examples(op, dtype, **EXACT))
    u, k = example.arrays
    y = op.implementation(role)(u, k)
    (dy,) = (np.round(4 * c) for c in cotangents(example, (y,)))
    du, dk = op.vjp(role)(dy, u, k)
    inner = [np.vdot(dx, x).real for dx, x in ((dy, y), (du, u), (dk, k))]
    assert inner[0] == inner[1] == inner[2]


@each_role
@each_type
@each_op
@given(data=st.data())
@laws
def test_the_gradient_is_a_convolution_backwards_in_time(op, dtype, role, data):
    example = data.draw(examples(op, dtype, mixed=False, max_dims=0))
    (u, k), conv = example.arrays, op.implementation(role)
    (dy,) = cotangents(example, (conv(u, k),))
    gauges = expect(op, [dy, u, k], {}, op.bare_vjp)
    backwards = [conv(dy[::-1], other.conj())[::-1] for other in (k, u)]
    for gradients in (backwards, op.vjp(role)(dy, u, k)):
        for gradient, gauge in zip(gradients, gauges, strict=True):
            verdict = compare(gradient, gauge, judged_type([dy, u, k]))
            assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_sum_and_the_transform_agree_within_the_tolerance_of_the_transform(dtype, role, data):
    u, k = data.draw(examples(CAUSAL_CONVOLUTION, dtype)).arrays
    for op in (CAUSAL_CONVOLUTION_DIRECT, CAUSAL_CONVOLUTION):
        verdict = verdict_on(CAUSAL_CONVOLUTION, op.implementation(role)(u, k), u, k)
        assert verdict.ok, verdict


@each_role
@each_type
@each_op
@given(data=st.data(), more=st.integers(1, 9))
@laws
def test_zeros_at_the_end_change_nothing_before(op, dtype, role, data, more):
    u, k = data.draw(examples(op, dtype)).arrays
    l, conv = u.shape[-1], op.implementation(role)
    y = conv(lengthened(u, more), lengthened(k, more))[..., :l]
    verdict = verdict_on(op, y, u, k)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_future_of_signal_and_kernel_changes_nothing_before_in_the_sum(dtype, role, data):
    op = CAUSAL_CONVOLUTION_DIRECT
    u, k = data.draw(examples(op, dtype)).arrays
    conv, l = op.implementation(role), u.shape[-1]
    for cut in range(1, l):
        future = [np.where(np.arange(l) < cut, x, np.nan).astype(x.dtype) for x in (u, k)]
        y = conv(*future)
        assert np.array_equal(y[..., :cut], conv(u[..., :cut], k[..., :cut]))
        assert np.isnan(y[..., cut:]).all()


@each_role
@each_type
@each_op
@given(data=st.data(), k=st.integers(-16, 16))
@laws
def test_a_power_of_two_in_the_signal_comes_out_exactly(op, dtype, role, data, k):
    u, response = data.draw(examples(op, dtype, textures=("each", "constant", "gaps"))).arrays
    conv, scale = op.implementation(role), np.finfo(dtype).dtype.type(2.0**k)
    assert np.array_equal(conv(u * scale, response), conv(u, response) * scale)
