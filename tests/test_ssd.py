import tracemalloc
from itertools import product

import numpy as np
import pytest
from calls import several
from selective import ROLES, TYPES, alone, each_role, each_type, exact, usual

from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import kind_of
from refssm.selective_scan import SELECTIVE_SCAN
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

BATCH = {"b": 2, "g": 2, "h": 2}
FORMS = (SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED)
STATEFUL = (SSD_RECURRENT_STATEFUL, SSD_CHUNKED_STATEFUL)
FAMILY = (*FORMS, *STATEFUL, SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED, SSD_STEP)


def each_of(operators):
    """Parametrize over operators and the roles that they have."""
    cases = [(op, role) for op in operators for role in ROLES if role not in op.lacks]
    return pytest.mark.parametrize(("op", "role"), cases, ids=[f"{op}-{r}" for op, r in cases])


def chunk_of(op, chunk=3):
    """The keyword `chunk` for the forms that need it."""
    return {"chunk": chunk} if op.static else {}


@each_of(FORMS)
@each_type
def test_without_decay_every_form_is_linear_attention(op, role, dtype):
    # y_t = Σ_{j≤t} (C_t · B_j) x_j: C queries, B keys, x values
    x, log_a, B, C = exact(SSD_RECURRENT, 1, dtype)
    y = [sum((C[t] @ B[j]) * x[j] for j in range(t + 1)) for t in range(7)]
    assert np.array_equal(op.implementation(role)(x, log_a, B, C, **chunk_of(op)), y)


@each_of(FORMS)
@each_type
def test_the_forms_are_one_function(op, role, dtype):
    arrays = usual(SSD_RECURRENT, 2, dtype, BATCH, l=20)
    y = op.implementation(role)(*arrays, **chunk_of(op))
    for other in FORMS:
        assert judge(other, lambda *_, **__: y, *arrays, **chunk_of(other)).grade == "A"


@each_of(FORMS)
def test_a_constant_decay_is_the_retention_of_retnet(op, role):
    x, log_a, B, C = arrays = usual(SSD_RECURRENT, 3, l=20)
    log_a[:] = np.log(0.5)
    gamma = 0.5 ** np.subtract.outer(np.arange(20.0), np.arange(20.0))
    y = (np.tril(gamma) * (C @ B.T)) @ x
    assert judge(SSD_RECURRENT, lambda *_: y, *arrays).ok
    assert judge(op, op.implementation(role), *arrays, **chunk_of(op)).grade == "A"


@each_of(FORMS)
@each_type
def test_a_head_of_one_number_is_a_selective_scan_with_equal_rates(op, role, dtype):
    u, dt, A, B, C = arrays = usual(SELECTIVE_SCAN, 4, dtype)
    A[:] = A[0]
    y = op.implementation(role)((dt * u)[:, None], dt * A[0], B, C, **chunk_of(op))
    assert judge(SELECTIVE_SCAN, lambda *_: y[:, 0], *arrays).ok


@each_of(FORMS)
@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 7, 11, 13])
def test_any_length_is_right_and_none_gives_nothing(op, role, l):
    arrays = usual(op, 5, batch=BATCH, l=l)
    assert judge(op, op.implementation(role), *arrays, **chunk_of(op)).grade == "A"
    assert op.implementation(role)(*arrays, **chunk_of(op)).shape == (2, 2, 2, l, 2)


@each_of(STATEFUL)
@each_type
def test_cut_at_any_step_with_the_state_carried_it_is_the_whole(op, role, dtype):
    for arrays in (usual(op, 6, dtype, BATCH), exact(op, 6, dtype, BATCH)):
        *arrays, S0 = arrays
        y, S = op.implementation(role)(*arrays, S0, **chunk_of(op))
        for k in range(8):
            first, state = alone(op, role, (*arrays, S0), slice(0, k), **chunk_of(op))
            second, last = alone(op, role, (*arrays, state), slice(k, None), **chunk_of(op))
            both = np.concatenate([first, second], axis=-2), last
            verdict = judge(op, lambda *_, b=both, **__: b, *arrays, S0, **chunk_of(op))
            assert verdict.grade == "A", (k, verdict)
    assert all(map(np.array_equal, both, (y, S)))  # exact, because of integers


@each_of(STATEFUL)
def test_without_steps_the_last_state_is_a_copy_of_the_first(op, role):
    *arrays, S0 = usual(op, 7, batch=BATCH, l=0)
    y, S = op.implementation(role)(*arrays, S0, **chunk_of(op))
    assert (y.shape, S.tolist()) == ((2, 2, 2, 0, 2), S0.tolist())
    *gradients, dS0 = op.vjp(role)(y, S, *arrays, S0, **chunk_of(op))
    assert [g.shape for g in gradients] == [a.shape for a in arrays]
    assert np.array_equal(dS0, S)


@each_of(STATEFUL)
@each_type
def test_steps_one_after_another_are_the_recurrence(op, role, dtype):
    for arrays in (usual(op, 8, dtype, BATCH), exact(op, 8, dtype, BATCH)):
        x, log_a, B, C, S = arrays
        step, y = SSD_STEP.implementation(role), []
        for t in range(7):
            y_t, S = step(x[..., t, :], log_a[..., t], B[..., t, :], C[..., t, :], S)
            y.append(y_t)
        decoded = np.stack(y, axis=-2), S
        verdict = judge(op, lambda *_, d=decoded, **__: d, *arrays, **chunk_of(op))
        assert verdict.grade == "A"
    whole = op.implementation(role)(*arrays, **chunk_of(op))
    assert all(map(np.array_equal, decoded, whole))  # exact, because of integers


@each_of(FORMS)
def test_neighbouring_heads_share_the_b_and_c_of_their_group(op, role):
    x, log_a, B, C = exact(SSD_RECURRENT, 9, batch={"b": 1, "g": 2, "h": 3})
    form, x_h, log_h = op.implementation(role), x.reshape(6, 7, 2), log_a.reshape(6, 7)
    y = form(x, log_a, B, C, **chunk_of(op)).reshape(6, 7, 2)
    for h, g in enumerate([0, 0, 0, 1, 1, 1]):
        own = form(x_h[h], log_h[h], B[0, g, 0], C[0, g, 0], **chunk_of(op))
        assert np.array_equal(own, y[h])
    tiled = form(x_h, log_h, *(np.tile(c[0, :, 0], (3, 1, 1)) for c in (B, C)), **chunk_of(op))
    equal = [bool((tiled[h] == y[h]).all()) for h in range(6)]
    assert equal == [True, False, True, True, False, True]  # where h % 2 equals h // 3


@each_of(FORMS)
@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
def test_the_result_has_the_common_type_and_gradients_are_real_where_the_argument_is(
    op, role, types
):
    arrays = usual(op, 10, "float32")
    arrays[1:3] = (a.astype(t) for a, t in zip(arrays[1:3], types, strict=True))  # log_a and B
    y = op.implementation(role)(*arrays, **chunk_of(op))
    assert y.dtype == np.result_type(*types)
    gradients = op.vjp(role)(y, *arrays, **chunk_of(op))
    assert [g.dtype.kind for g in gradients] == [a.dtype.kind for a in arrays]
    assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(y.dtype).dtype}


@each_of(FAMILY)
@pytest.mark.parametrize("l", [0, 1, 2])
def test_inputs_stay_as_they_are_and_what_is_returned_is_new(op, role, l):
    arrays = usual(op, 11, batch={"b": 1, "g": 1, "h": 1}, l=l)
    outputs = several(op.implementation(role)(*map(np.array, arrays), **chunk_of(op)))
    given = [*(y.copy() for y in outputs), *arrays]  # cotangents, then arguments
    before = [a.copy() for a in given]
    for a in given:
        a.flags.writeable = False
    returned = several(op.implementation(role)(*arrays, **chunk_of(op)))
    returned += op.vjp(role)(*given, **chunk_of(op))
    assert all(map(np.array_equal, given, before))
    for x in returned:
        assert x is None or not any(np.shares_memory(x, a) for a in given)
        assert x is None or x.flags.writeable


NAN_IN = {  # (place of NaN, 2 where y is NaN), with l = 4 and p = 2
    "x": ((1, 0), [[0, 0], [2, 0], [2, 0], [2, 0]]),
    "log_a": ((1,), [[0, 0], [2, 2], [2, 2], [2, 2]]),
    "B": ((1, 2), [[0, 0], [2, 2], [2, 2], [2, 2]]),
    "C": ((1, 2), [[0, 0], [2, 2], [0, 0], [0, 0]]),
}


@each_of(FORMS)
@pytest.mark.parametrize("name", NAN_IN)
def test_nan_reaches_the_later_outputs_that_see_it(op, role, name):
    arrays, (place, kinds) = usual(op, 12, l=4), NAN_IN[name]
    arrays[list(op.inputs).index(name)][place] = np.nan
    y = op.implementation(role)(*arrays, **chunk_of(op))
    assert kind_of(y).tolist() == kinds


@each_role
def test_the_gradient_by_hand(role):
    arrays = [[2.0], [3.0]], [0.0, 0.0], [[5.0], [7.0]], [[11.0], [13.0]], [[17.0]]
    back = SSD_RECURRENT_STATEFUL.vjp(role)([[19.0], [23.0]], [[29.0]], *arrays)
    dx, dlog_a, dB, dC, dS0 = (g.ravel().tolist() for g in back)
    S = [17 + 2 * 5, 17 + 2 * 5 + 3 * 7]
    G = [11 * 19 + 13 * 23 + 29, 13 * 23 + 29]
    assert (dx, dB) == ([5 * G[0], 7 * G[1]], [2 * G[0], 3 * G[1]])
    assert (dlog_a, dS0) == ([17 * G[0], S[0] * G[1]], [G[0]])
    assert dC == [S[0] * 19, S[1] * 23]


@each_role
@each_type
def test_the_gradient_of_a_head_of_one_number_is_that_of_the_selective_scan(role, dtype):
    u, _, A, B, C = usual(SELECTIVE_SCAN, 13, dtype)
    dt, dy = np.ones_like(u.real), usual(SELECTIVE_SCAN, 14, dtype)[0]
    arrays = u, dt, np.repeat(A[:1], 3), B, C
    du, ddt, _, dB, dC = expect(SELECTIVE_SCAN, [dy, *arrays], vjp=SELECTIVE_SCAN.bare_vjp)
    head = u[:, None], dt * A[0], B, C
    dx, dlog_a, *others = SSD_RECURRENT.vjp(role)(dy[:, None], *head)
    for g, gauge, like in zip((dx[:, 0], *others), (du, dB, dC), (u, B, C), strict=True):
        assert compare(g, gauge, like.dtype).ok
    through = np.real(u.conj() * dx[:, 0] + A[0].conj() * dlog_a)  # dt is in x and in log_a
    assert compare(through, ddt, dt.dtype).ok


@each_of(FORMS)
@each_type
def test_the_forms_have_one_gradient(op, role, dtype):
    arrays = usual(op, 15, dtype, BATCH)
    dy = op.implementation("reference")(*usual(op, 16, dtype, BATCH), **chunk_of(op))
    gradients = op.vjp(role)(dy, *arrays, **chunk_of(op))
    assert all(map(np.array_equal, gradients, SSD_RECURRENT.vjp(role)(dy, *arrays)))


def test_the_gradient_keeps_the_states_between_blocks_only():
    l, n = 1024, 32
    arrays = usual(SSD_RECURRENT, 17, l=l, p=n, n=n)
    tracemalloc.start()
    try:
        SSD_RECURRENT.vjp()(np.ones((l, n)), *arrays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # all states would be 1; the gradients, in pieces and joined, 0.2; 32 of l states, and as many
    # in each of the eight arrays of one block, 0.3
    assert peak < 0.5 * l * n * n * 8
