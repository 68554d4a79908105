from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM

TYPES = ("float32", "complex128")  # both precisions, real and complex
EXACT: dict[str, Any] = {
    "maps": ("one", "compass", "integer"),
    "textures": ("each", "constant", "gaps"),
}
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])


def broadcast(example):
    """The arguments, broadcast to the common batch shape, so that they can be cut and joined."""
    op, arrays = example.op, example.arrays
    batch = op.batch_shape(*arrays)
    return [
        np.broadcast_to(a, batch + a.shape[a.ndim - len(dims) :])
        for a, dims in zip(arrays, op.input_dims, strict=True)
    ]


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_scan_may_be_cut_anywhere_and_resumed_from_its_state(dtype, role, data):
    example = data.draw(examples(LINEAR_SCAN, dtype))
    scan, resume = (op.implementation(role) for op in (LINEAR_SCAN, LINEAR_SCAN_FROM))
    a, b = broadcast(example)
    for k in range(1, a.shape[-2]):
        first = scan(a[..., :k, :], b[..., :k, :])
        second = resume(a[..., k:, :], b[..., k:, :], first[..., -1, :])
        joined = np.concatenate([first, second], axis=-2)
        verdict = judge(LINEAR_SCAN, lambda *_, x=joined: x, a, b)
        assert verdict.ok, (k, verdict)


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_resumed_scan_may_be_cut_anywhere_too(dtype, role, data):
    a, b, x0 = broadcast(data.draw(examples(LINEAR_SCAN_FROM, dtype)))
    resume = LINEAR_SCAN_FROM.implementation(role)
    for k in range(1, a.shape[-2]):
        first = resume(a[..., :k, :], b[..., :k, :], x0)
        second = resume(a[..., k:, :], b[..., k:, :], first[..., -1, :])
        joined = np.concatenate([first, second], axis=-2)
        verdict = judge(LINEAR_SCAN_FROM, lambda *_, x=joined: x, a, b, x0)
        assert verdict.ok, (k, verdict)


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_decay_of_zero_resets_the_state_wherever_it_stands(dtype, role, data):
    a, b = broadcast(data.draw(examples(LINEAR_SCAN, dtype)))
    scan = LINEAR_SCAN.implementation(role)
    for k in range(a.shape[-2]):
        reset = a.copy()
        reset[..., k, :] = 0
        tail = scan(reset, b)[..., k:, :]
        assert np.array_equal(tail[..., 0, :], b[..., k, :])
        verdict = judge(LINEAR_SCAN, lambda *_, x=tail: x, reset[..., k:, :], b[..., k:, :])
        assert verdict.ok, (k, verdict)


@each_role
@each_type
@given(data=st.data())
@laws
def test_two_steps_compose_into_one_exactly_on_integers(dtype, role, data):
    # (a₂, b₂) after (a₁, b₁) is (a₂ a₁, a₂ b₁ + b₂): the associative form [blelloch1990prefix]
    example = data.draw(examples(LINEAR_SCAN, dtype, **EXACT, mixed=False))
    a, b = broadcast(example)
    even = a.shape[-2] // 2 * 2
    a, b = a[..., :even, :], b[..., :even, :]
    first, second = (slice(0, None, 2), slice(None)), (slice(1, None, 2), slice(None))
    a_pairs = a[..., *second] * a[..., *first]
    b_pairs = a[..., *second] * b[..., *first] + b[..., *second]
    scan = LINEAR_SCAN.implementation(role)
    assert np.array_equal(scan(a, b)[..., *second], scan(a_pairs, b_pairs))


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_scan_from_a_state_is_the_scan_of_a_first_input_and_the_free_response(dtype, role, data):
    a, b, x0 = broadcast(data.draw(examples(LINEAR_SCAN_FROM, dtype, **EXACT, mixed=False)))
    scan, resume = (op.implementation(role) for op in (LINEAR_SCAN, LINEAR_SCAN_FROM))
    free = np.cumprod(a, axis=-2) * x0[..., None, :]
    assert np.array_equal(resume(a, b, x0), scan(a, b) + free)
    earlier = np.concatenate([x0[..., None, :], b], axis=-2)
    decays = np.concatenate([np.ones_like(a[..., :1, :]), a], axis=-2)
    assert np.array_equal(resume(a, b, x0), scan(decays, earlier)[..., 1:, :])
