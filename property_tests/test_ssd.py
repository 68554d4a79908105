from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.cases.windows import cut
from refssm.conformance.judging.grading import judge
from refssm.ssd import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
    SSD_STEP,
)

TYPES = ("float32", "complex128")  # both precisions, real and complex
ROLES = ("reference", "jit")
WHOLE, TAME = ("zero", "one", "integer"), ("each", "constant", "gaps")
each_type = pytest.mark.parametrize("dtype", TYPES)
CHUNKS = st.integers(1, 9)


def each_of(*operators):
    """Parametrize over operators and the roles that they have."""
    cases = [(op, role) for op in operators for role in ROLES if role not in op.lacks]
    return pytest.mark.parametrize(("op", "role"), cases, ids=[f"{op}-{r}" for op, r in cases])


def statics(op, chunk):
    """The keyword `chunk` for the forms that need it."""
    return {"chunk": chunk} if op.static else {}


def broadcast(example):
    """The arguments, broadcast to the common batch shape, so that they can be cut and joined."""
    op, arrays = example.op, example.arrays
    batch = op.batch_shape(*arrays)
    return [
        np.broadcast_to(a, batch + a.shape[a.ndim - len(dims) :])
        for a, dims in zip(arrays, op.input_dims, strict=True)
    ]


@pytest.mark.long
@each_of(SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED)
@each_type
@given(data=st.data(), chunk=CHUNKS)
@laws
def test_the_three_forms_are_one_function(op, role, dtype, data, chunk):
    arrays = data.draw(examples(SSD_RECURRENT, dtype)).arrays
    y = op.implementation(role)(*arrays, **statics(op, chunk))
    for other in (SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED):
        verdict = judge(other, lambda *_, **__: y, *arrays, **statics(other, chunk))
        assert verdict.ok, (other, verdict)


@pytest.mark.long
@each_of(SSD_CHUNKED)
@each_type
@given(data=st.data())
@laws
def test_the_size_of_a_chunk_never_matters(op, role, dtype, data):
    arrays = data.draw(examples(SSD_RECURRENT, dtype)).arrays
    for chunk in range(1, arrays[0].shape[-2] + 2):
        y = op.implementation(role)(*arrays, chunk=chunk)
        verdict = judge(SSD_RECURRENT, lambda *_, y=y: y, *arrays)
        assert verdict.ok, (chunk, verdict)


@each_of(SSD_CHUNKED)
@each_type
@given(data=st.data())
@laws
def test_the_size_of_a_chunk_changes_no_integer(op, role, dtype, data):
    arrays = data.draw(examples(SSD_RECURRENT, dtype, maps=WHOLE, textures=TAME)).arrays
    y = SSD_QUADRATIC.reference(*arrays[:1], 0 * arrays[1], *arrays[2:])
    for chunk in range(1, arrays[0].shape[-2] + 2):
        chunked = op.implementation(role)(*arrays[:1], 0 * arrays[1], *arrays[2:], chunk=chunk)
        assert np.array_equal(chunked, y)


@pytest.mark.long
@each_of(SSD_RECURRENT_STATEFUL, SSD_CHUNKED_STATEFUL)
@each_type
@given(data=st.data(), chunk=CHUNKS)
@laws
def test_the_layer_may_be_cut_anywhere_and_resumed_from_its_state(op, role, dtype, data, chunk):
    *arrays, S0 = broadcast(data.draw(examples(op, dtype)))
    run, more = op.implementation(role), statics(op, chunk)
    for k in range(arrays[0].shape[-2] + 1):
        first, state = run(*cut(op, (*arrays, S0), slice(0, k)), **more)
        second, last = run(*cut(op, (*arrays, state), slice(k, None)), **more)
        joined = np.concatenate([first, second], axis=-2), last
        verdict = judge(op, lambda *_, y=joined, **__: y, *arrays, S0, **more)
        assert verdict.ok, (k, verdict)


@pytest.mark.long
@each_of(SSD_STEP)
@each_type
@given(data=st.data())
@laws
def test_steps_one_after_another_are_the_recurrence(op, role, dtype, data):
    x, log_a, B, C, S = arrays = broadcast(data.draw(examples(SSD_RECURRENT_STATEFUL, dtype)))
    S = S.astype(np.result_type(*arrays))  # the type of the last state; C does not count
    step, y = op.implementation(role), []
    for t in range(x.shape[-2]):
        y_t, S = step(x[..., t, :], log_a[..., t], B[..., t, :], C[..., t, :], S)
        y.append(y_t)
    verdict = judge(SSD_RECURRENT_STATEFUL, lambda *_: (np.stack(y, axis=-2), S), *arrays)
    assert verdict.ok, verdict


@each_of(SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED)
@each_type
@given(data=st.data(), chunk=CHUNKS)
@laws
def test_packed_sequences_are_what_they_are_alone(op, role, dtype, data, chunk):
    example = data.draw(examples(op, dtype, max_dims=1))
    y = op.implementation(role)(*example.arrays, **statics(op, chunk))
    for index, (*arrays, resets) in example.slices():
        starts = [0, *np.flatnonzero(resets[1:]) + 1, len(resets)]
        for start, end in pairwise(starts):
            w = slice(start, end)
            piece = cut(SSD_RECURRENT, arrays, w)
            verdict = judge(SSD_RECURRENT, lambda *_, p=y[index][w]: p, *piece)
            assert verdict.ok, (w, verdict)


@each_of(SSD_RECURRENT, SSD_CHUNKED)
@each_type
@given(data=st.data(), chunk=CHUNKS)
@laws
def test_a_step_without_input_and_decay_changes_nothing_after_it(op, role, dtype, data, chunk):
    # correct padding inside a batch: log_a = 0 and x = 0
    arrays = broadcast(data.draw(examples(SSD_RECURRENT, dtype)))
    place = data.draw(st.integers(0, arrays[0].shape[-2]))
    longer = []
    for name, a, dims in zip(op.inputs, arrays, op.input_dims, strict=True):
        filled = 1.0 if name in ("B", "C") else 0.0
        longer.append(np.insert(a, place, filled, axis=a.ndim - len(dims)))
    y = op.implementation(role)(*longer, **statics(op, chunk))
    without = np.delete(y, place, axis=-2)
    verdict = judge(SSD_RECURRENT, lambda *_: without, *arrays)
    assert verdict.ok, verdict
