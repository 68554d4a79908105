from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.associative import affine, associative_scan, blelloch, chunked, hillis_steele
from refssm.associative import sequential as one_by_one
from refssm.conformance.cases.windows import cut
from refssm.conformance.judging.grading import judge
from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_STATEFUL,
    MAMBA_STEP,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)

TYPES = ("float32", "complex128")  # both precisions, real and complex
ROLES = ("reference", "jit")
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ROLES)
STATEFUL = {SELECTIVE_SCAN_STATEFUL: SELECTIVE_STEP, MAMBA_SCAN_STATEFUL: MAMBA_STEP}
PACKED = {SELECTIVE_SCAN_PACKED: SELECTIVE_SCAN, MAMBA_SCAN_PACKED: MAMBA_SCAN}
each_stateful = pytest.mark.parametrize("op", STATEFUL, ids=str)
each_packed = pytest.mark.parametrize("op", PACKED, ids=str)
SCHEDULES = st.sampled_from([one_by_one, hillis_steele, blelloch]) | st.builds(
    chunked, st.integers(1, 9)
)


def broadcast(example):
    """The arguments, broadcast to the common batch shape, so that they can be cut and joined."""
    op, arrays = example.op, example.arrays
    batch = op.batch_shape(*arrays)
    return [
        np.broadcast_to(a, batch + a.shape[a.ndim - len(dims) :])
        for a, dims in zip(arrays, op.input_dims, strict=True)
    ]


@pytest.mark.long
@each_stateful
@each_role
@each_type
@given(data=st.data())
@laws
def test_a_scan_may_be_cut_anywhere_and_resumed_from_its_state(op, dtype, role, data):
    *arrays, x0 = broadcast(data.draw(examples(op, dtype)))
    scan = op.implementation(role)
    for k in range(arrays[0].shape[-1] + 1):
        first, state = scan(*cut(op, (*arrays, x0), slice(0, k)))
        second, last = scan(*cut(op, (*arrays, state), slice(k, None)))
        joined = np.concatenate([first, second], axis=-1), last
        verdict = judge(op, lambda *_, y=joined: y, *arrays, x0)
        assert verdict.ok, (k, verdict)


@pytest.mark.long
@each_stateful
@each_role
@each_type
@given(data=st.data())
@laws
def test_steps_one_after_another_are_the_scan(op, dtype, role, data):
    *arrays, x = broadcast(data.draw(examples(op, dtype)))
    step, y, x0 = STATEFUL[op].implementation(role), [], x
    for k in range(arrays[0].shape[-1]):
        window = cut(op, (*arrays, x), slice(k, k + 1))
        dims = zip(window, op.input_dims, strict=True)
        now = [np.squeeze(a, -len(d)) if "l" in d else a for a, d in dims]
        y_k, x = step(*now[:-1], x)
        y.append(y_k)
    verdict = judge(op, lambda *_: (np.stack(y, axis=-1), x), *arrays, x0)
    assert verdict.ok, verdict


@pytest.mark.long
@each_packed
@each_role
@each_type
@given(data=st.data())
@laws
def test_packed_sequences_are_what_they_are_alone(op, dtype, role, data):
    example = data.draw(examples(op, dtype, max_dims=1))
    y, plain = op.implementation(role)(*example.arrays), PACKED[op]
    for index, (*arrays, resets) in example.slices():
        starts = [0, *np.flatnonzero(resets[1:]) + 1, len(resets)]
        for start, end in pairwise(starts):
            w = slice(start, end)
            verdict = judge(plain, lambda *_, p=y[index][w]: p, *cut(plain, arrays, w))
            assert verdict.ok, (w, verdict)


@pytest.mark.long
@each_stateful
@each_role
@each_type
@given(data=st.data(), padding=st.integers(1, 3))
@laws
def test_padding_without_time_leaves_the_last_state_bit_for_bit(op, dtype, role, data, padding):
    example = data.draw(examples(op, dtype))
    arrays, longer = example.arrays, []
    nothing = -np.inf if op is MAMBA_SCAN_STATEFUL else 0.0  # pre- and post-softplus
    for name, a, dims in zip(op.inputs, arrays, op.input_dims, strict=True):
        if "l" in dims:
            axis, filled = a.ndim - len(dims), nothing if name == "dt" else 1.0
            a = np.insert(a, [a.shape[axis]] * padding, filled, axis=axis)
        longer.append(a)
    scan, l = op.implementation(role), arrays[0].shape[-1]
    (y, x), (y_long, x_long) = scan(*arrays), scan(*longer)
    assert np.array_equal(x_long, x)
    assert np.array_equal(y_long[..., :l], y)


@each_role
@each_type
@given(data=st.data(), schedule=SCHEDULES)
@laws
def test_every_schedule_of_an_associative_scan_gives_the_selective_scan(
    dtype, role, data, schedule
):
    u, dt, A, B, C = arrays = broadcast(data.draw(examples(SELECTIVE_SCAN, dtype)))
    decay, drive = np.exp(dt[..., None] * A[..., None, :]), (dt * u)[..., None] * B
    elements = np.moveaxis(decay, -2, 0), np.moveaxis(drive, -2, 0)
    x = np.moveaxis(associative_scan(affine, elements, schedule)[1], 0, -2)
    for y in ((C * x).sum(-1), SELECTIVE_SCAN.implementation(role)(*arrays)):
        verdict = judge(SELECTIVE_SCAN, lambda *_, y=y: y, *arrays)
        assert verdict.ok, verdict


@pytest.mark.long
@each_role
@each_type
@given(data=st.data())
@laws
def test_mambas_scan_is_the_selective_scan_behind_a_softplus_and_before_a_gate(dtype, role, data):
    u, dt, A, B, C, D, z, dt_bias = arrays = broadcast(data.draw(examples(MAMBA_SCAN, dtype)))
    dt, z, dt_bias = map(np.real, (dt, z, dt_bias))
    steps = np.logaddexp(0, dt + dt_bias[..., None]).astype(dt.dtype)
    s = SELECTIVE_SCAN.implementation(role)(u, steps, A, B, C) + D[..., None] * u
    with np.errstate(over="ignore"):
        y = s * (z / (1 + np.exp(-z)))
    verdict = judge(MAMBA_SCAN, lambda *_: y, *arrays)
    assert verdict.ok, verdict
