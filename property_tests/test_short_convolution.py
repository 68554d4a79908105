import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.convolution import (
    CAUSAL_CONVOLUTION_DIRECT,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)

ROLES = ("reference", "jit")
TYPES = ("float32", "complex128")  # both precisions, real and complex
EXACT = {"maps": ("one", "integer"), "textures": ("each", "constant", "gaps"), "mixed": False}
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ROLES)


def broadcast(example):
    """The arguments, broadcast to the common batch shape, so that they can be cut and joined."""
    batch = example.op.batch_shape(*example.arrays)
    return [
        np.broadcast_to(a, batch + a.shape[a.ndim - len(dims) :])
        for a, dims in zip(example.arrays, example.op.input_dims, strict=True)
    ]


def right(op, y, *arrays):
    """Assert that the judge accepts `y` as the output of `op`; the verdict shows the reason."""
    verdict = judge(op, lambda *_: y, *arrays)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_stream_in_any_pieces_is_the_whole(dtype, role, data):
    u, k, s0 = broadcast(data.draw(examples(SHORT_CONVOLUTION_STATEFUL, dtype)))
    l, run = u.shape[-1], SHORT_CONVOLUTION_STATEFUL.implementation(role)
    cuts = sorted(data.draw(st.lists(st.integers(0, l), max_size=3)))
    outputs, state = [], s0
    for start, end in zip([0, *cuts], [*cuts, l], strict=True):
        y, state = run(u[..., start:end], k, state)
        outputs.append(y)
    right(SHORT_CONVOLUTION_STATEFUL, (np.concatenate(outputs, axis=-1), state), u, k, s0)


@each_role
@each_type
@given(data=st.data())
@laws
def test_step_by_step_is_the_whole(dtype, role, data):
    u, k, s0 = broadcast(data.draw(examples(SHORT_CONVOLUTION_STATEFUL, dtype)))
    step, outputs, state = SHORT_CONVOLUTION_STEP.implementation(role), [], s0
    for i in range(u.shape[-1]):
        y, state = step(u[..., i], k, state)
        outputs.append(y)
    right(SHORT_CONVOLUTION_STATEFUL, (np.stack(outputs, axis=-1), state), u, k, s0)


@pytest.mark.long
@each_role
@each_type
@given(data=st.data())
@laws
def test_a_delayed_input_or_later_taps_delay_the_output(dtype, role, data):
    u, k = broadcast(data.draw(examples(SHORT_CONVOLUTION, dtype)))
    l, call = u.shape[-1], SHORT_CONVOLUTION.implementation(role)
    delay = data.draw(st.integers(0, 5))
    none = [np.zeros_like(x, shape=(*x.shape[:-1], delay)) for x in (u, k)]
    late_u, late_k = (np.concatenate(x, axis=-1) for x in zip(none, (u, k), strict=True))
    y = call(late_u, k)
    assert not y[..., :delay].any()
    right(SHORT_CONVOLUTION, y[..., delay:].copy(), u, k)
    later = call(np.concatenate([u, none[0]], axis=-1), late_k)
    assert not later[..., :delay].any()
    right(SHORT_CONVOLUTION, later[..., delay : delay + l].copy(), u, k)


@each_role
@each_type
@given(data=st.data())
@laws
def test_it_is_the_causal_convolution_with_taps_filled_up(dtype, role, data):
    u, k = broadcast(data.draw(examples(SHORT_CONVOLUTION, dtype)))
    l = u.shape[-1]
    filled = np.concatenate([k, np.zeros_like(u)], axis=-1)[..., :l]
    right(SHORT_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT.implementation(role)(u, filled), u, k)
    right(CAUSAL_CONVOLUTION_DIRECT, SHORT_CONVOLUTION.implementation(role)(u, k), u, filled)


@each_role
@each_type
@given(data=st.data())
@laws
def test_two_in_a_row_are_one_with_convolved_taps(dtype, role, data):
    (u, k), call = (
        broadcast(data.draw(examples(SHORT_CONVOLUTION, dtype, **EXACT))),
        SHORT_CONVOLUTION.implementation(role),
    )
    other = np.asarray([2.0, -1.0, 3.0], dtype)
    padded = np.concatenate([k, np.zeros_like(k, shape=(*k.shape[:-1], 2))], axis=-1)
    assert np.array_equal(call(call(u, k), other), call(u, call(padded, other)))
