"""Laws of scans with matrices, several channels, resets and states."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.associative import (
    affine_dense,
    associative_scan,
    blelloch,
    chunked,
    hillis_steele,
    sequential,
)
from refssm.conformance.judging.grading import judge
from refssm.scan import (
    DENSE_SCAN,
    DENSE_SCAN_FROM,
    DIAGONAL_SSM,
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
    LINEAR_SCAN_PACKED,
    LINEAR_STEP,
)

ROLES = ("reference", "jit")
TYPES = ("float32", "complex128")  # both precisions, real and complex
STATEFUL = [DIAGONAL_SSM_STATEFUL, DIAGONAL_SSM_VARYING_STATEFUL, DIAGONAL_SSM_REAL_STATEFUL]
INVARIANT = [DENSE_SCAN, DIAGONAL_SSM, DIAGONAL_SSM_REAL]
SCHEDULES = [sequential, hillis_steele, blelloch, *map(chunked, (1, 3, 4))]
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ROLES)


def broadcast(example):
    """The arguments, broadcast to the common batch shape, so that they can be cut and joined."""
    batch = example.op.batch_shape(*example.arrays)
    described = zip(example.arrays, example.op.input_dims, example.op.inputs.values(), strict=True)
    return [
        np.broadcast_to(
            a.real if domain.kind == "real" else a, batch + a.shape[a.ndim - len(dims) :]
        )
        for a, dims, domain in described
    ]


def driven(B, u):
    return np.einsum("...nm,...lm->...ln", B, u)


def right(op, y, *arrays):
    """Assert that the judge accepts `y` as the output of `op`; the verdict shows the reason."""
    verdict = judge(op, lambda *_: y, *arrays)
    assert verdict.ok, verdict


@pytest.mark.parametrize("op", STATEFUL, ids=str)
@each_role
@each_type
@given(data=st.data())
@laws
def test_pieces_joined_at_any_place_are_the_whole(dtype, role, op, data):
    a, B, C, D, u, x0 = broadcast(data.draw(examples(op, dtype)))
    call, varies = op.implementation(role), op is DIAGONAL_SSM_VARYING_STATEFUL
    cut = data.draw(st.integers(0, u.shape[-2]))
    first, second = (..., slice(cut), slice(None)), (..., slice(cut, None), slice(None))
    head, between = call(a[first] if varies else a, B, C, D, u[first], x0)
    tail, last = call(a[second] if varies else a, B, C, D, u[second], between)
    right(op, (np.concatenate([head, tail], axis=-2), last), a, B, C, D, u, x0)


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_dense_scan_may_be_cut_anywhere_and_resumed_from_its_state(dtype, role, data):
    A, b, x0 = broadcast(data.draw(examples(DENSE_SCAN_FROM, dtype)))
    scan, resume = (op.implementation(role) for op in (DENSE_SCAN, DENSE_SCAN_FROM))
    for k in range(1, b.shape[-2]):
        head, rest = b[..., :k, :], b[..., k:, :]
        for x, op, start in (
            (scan(A, head), DENSE_SCAN, ()),
            (resume(A, head, x0), DENSE_SCAN_FROM, (x0,)),
        ):
            again = resume(A, rest, x[..., -1, :])
            right(op, np.concatenate([x, again], axis=-2), A, b, *start)


@each_role
@each_type
@given(data=st.data())
@laws
def test_steps_are_the_scan_bit_by_bit(dtype, role, data):
    a, b, x0 = broadcast(data.draw(examples(LINEAR_SCAN_FROM, dtype, mixed=False)))
    step, states = LINEAR_STEP.implementation(role), [x0]
    for k in range(b.shape[-2]):
        states.append(step(a[..., k, :], b[..., k, :], states[-1]))
    x = np.stack(states[1:], axis=-2)
    right(LINEAR_SCAN_FROM, x, a, b, x0)
    assert np.array_equal(x, LINEAR_SCAN_FROM.implementation(role)(a, b, x0))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@each_type
@given(data=st.data())
@laws
def test_every_schedule_composes_matrices_into_the_dense_scan(dtype, schedule, data):
    A, b = broadcast(data.draw(examples(DENSE_SCAN, dtype)))
    l = b.shape[-2]
    steps = np.broadcast_to(A[None], (l, *A.shape)), np.moveaxis(b, -2, 0)
    x = associative_scan(affine_dense, steps, schedule)[1]
    right(DENSE_SCAN, np.moveaxis(x, 0, -2), A, b)


@each_role
@each_type
@given(data=st.data())
@laws
def test_each_packed_sequence_is_what_it_is_alone(dtype, role, data):
    example = data.draw(examples(LINEAR_SCAN_PACKED, dtype))
    packed, alone = LINEAR_SCAN_PACKED.implementation(role), LINEAR_SCAN.implementation(role)
    for _, (a, b, resets) in example.slices():
        x = packed(a, b, resets)
        cuts = [0, *(k for k in np.flatnonzero(resets) if k), len(resets)]
        for start, end in pairwise(cuts):
            right(LINEAR_SCAN, x[start:end], a[start:end], b[start:end])
            assert np.array_equal(x[start:end], alone(a[start:end], b[start:end]))


@pytest.mark.parametrize("op", INVARIANT, ids=str)
@each_role
@each_type
@given(data=st.data())
@laws
def test_a_delayed_input_gives_the_delayed_output(dtype, role, op, data):
    *system, u = broadcast(data.draw(examples(op, dtype)))
    delay = data.draw(st.integers(0, u.shape[-2]))
    late = np.concatenate([np.zeros_like(u[..., :delay, :]), u], axis=-2)
    y = op.implementation(role)(*system, late)
    assert not y[..., :delay, :].any()
    right(op, y[..., delay:, :].copy(), *system, u)


@each_role
@each_type
@given(data=st.data())
@laws
def test_one_of_each_pair_is_both(dtype, role, data):
    a, B, C, D, u = broadcast(data.draw(examples(DIAGONAL_SSM_REAL, dtype, mixed=False)))
    y = DIAGONAL_SSM_REAL.implementation(role)(a, B, C, D, u)
    pairs = [np.concatenate([x, x.conj()], axis=i) for x, i in ((a, -1), (B, -2), (C, -1))]
    right(DIAGONAL_SSM, y.astype(dtype), *pairs, D, u)


@pytest.mark.long
@each_role
@each_type
@given(data=st.data())
@laws
def test_both_directions_are_two_systems_and_turning_time_exchanges_them(dtype, role, data):
    op, causal = DIAGONAL_SSM_BIDIRECTIONAL, DIAGONAL_SSM.implementation(role)
    example = data.draw(examples(DIAGONAL_SSM, dtype))
    a, B, past, D, u = broadcast(example)
    future, backwards = broadcast(example.redrawn())[2], (..., slice(None, None, -1), slice(None))
    C = np.concatenate([past, future], axis=-1)
    y = causal(a, B, past, D, u) + causal(a, B, future, 0 * D, u[backwards])[backwards]
    right(op, y, a, B, C, D, u)
    exchanged = np.concatenate([future, past], axis=-1)
    turned = op.implementation(role)(a, B, exchanged, D, u[backwards])[backwards]
    right(op, turned.copy(), a, B, C, D, u)


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_diagonal_system_is_a_dense_one_read_and_driven(dtype, role, data):
    a, B, C, D, u = broadcast(data.draw(examples(DIAGONAL_SSM, dtype)))
    A = a[..., None] * np.eye(a.shape[-1], dtype=a.dtype)
    x = DENSE_SCAN.implementation(role)(A, driven(B, u))
    right(DIAGONAL_SSM, driven(C, x) + driven(D, u), a, B, C, D, u)


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_state_of_several_inputs_is_the_sum_of_the_states_of_each(dtype, role, data):
    a, B, C, D, u = broadcast(data.draw(examples(DIAGONAL_SSM, dtype)))
    scan, m = LINEAR_SCAN.implementation(role), u.shape[-1]
    decays = np.broadcast_to(a[..., None, :], (*u.shape[:-1], a.shape[-1]))
    x = sum(scan(decays, B[..., None, :, i] * u[..., i, None]) for i in range(m))
    right(DIAGONAL_SSM, driven(C, x) + driven(D, u), a, B, C, D, u)


@each_role
@each_type
@given(data=st.data())
@laws
def test_decays_that_do_not_vary_are_one(dtype, role, data):
    a, B, C, D, u = broadcast(data.draw(examples(DIAGONAL_SSM, dtype)))
    decays = np.broadcast_to(a[..., None, :], (*u.shape[:-1], a.shape[-1]))
    y = DIAGONAL_SSM_VARYING.implementation(role)(decays, B, C, D, u)
    right(DIAGONAL_SSM, y, a, B, C, D, u)


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_varying_system_is_its_linear_scan_read_and_driven(dtype, role, data):
    a, B, C, D, u = broadcast(data.draw(examples(DIAGONAL_SSM_VARYING, dtype)))
    y = driven(C, LINEAR_SCAN.reference(a, driven(B, u))) + driven(D, u)
    right(DIAGONAL_SSM_VARYING, y, a, B, C, D, u)
    again = DIAGONAL_SSM_VARYING.implementation(role)(a, B, C, D, u)
    right(DIAGONAL_SSM_VARYING, again, a, B, C, D, u)
