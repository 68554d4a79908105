import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.convolution import CAUSAL_CONV1D, CAUSAL_CONV1D_STATEFUL, CAUSAL_CONV1D_STEP

each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each_type = pytest.mark.parametrize("dtype", ["float32", "float64"])


def broadcast(example):
    """The arguments with all batch axes, so that they can be cut and joined."""
    batch = example.op.batch_shape(*example.arrays)
    return [
        np.broadcast_to(a, batch + a.shape[a.ndim - len(dims) :])
        for a, dims in zip(example.arrays, example.op.input_dims, strict=True)
    ]


def right(op, y, *arrays, **statics):
    """Assert that the judge accepts `y` as the output of `op`; the verdict shows the reason."""
    verdict = judge(op, lambda *_, **__: y, *arrays, **statics)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_stream_in_any_pieces_and_step_by_step_is_the_whole(dtype, role, data):
    u, k, bias, s0 = broadcast(data.draw(examples(CAUSAL_CONV1D_STATEFUL, dtype)))
    l, run = u.shape[-1], CAUSAL_CONV1D_STATEFUL.implementation(role)
    step, cut = CAUSAL_CONV1D_STEP.implementation(role), data.draw(st.integers(0, u.shape[-1]))
    head, state = run(u[..., :cut], k, bias, s0)
    outputs = [head]
    for i in range(cut, l):
        y, state = step(u[..., i], k, bias, state)
        outputs.append(y[..., None])
    whole = np.concatenate(outputs, axis=-1), state
    right(CAUSAL_CONV1D_STATEFUL, whole, u, k, bias, s0)


@each_role
@each_type
@given(data=st.data())
@laws
def test_zeros_before_the_signal_are_rest(dtype, role, data):
    u, k, bias = broadcast(data.draw(examples(CAUSAL_CONV1D, dtype)))
    none = np.zeros_like(u, shape=(*u.shape[:-1], data.draw(st.integers(0, 5))))
    late = np.concatenate([none, u], axis=-1)
    y = CAUSAL_CONV1D.implementation(role)(late, k, bias)[..., none.shape[-1] :]
    right(CAUSAL_CONV1D, y.copy(), u, k, bias)
