from itertools import product

import numpy as np
import pytest
from judging import rounded_to
from selective import TYPES, alone, each_role, each_type, exact, usual

from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.convolution import causal_convolution_direct
from refssm.scan import linear_scan
from refssm.selective_scan import SELECTIVE_SCAN, SELECTIVE_SCAN_STATEFUL, SELECTIVE_STEP
from refssm.vandermonde import vandermonde_kernel

BATCH = {"b": 2, "d": 3}  # all channels share B and C


@each_role
def test_a_rate_of_zero_is_a_weighted_cumulative_sum(role):
    u, dt, A, B, C, x0 = exact(SELECTIVE_SCAN_STATEFUL, 1)
    x = np.cumsum((dt * u)[:, None] * B, axis=0)
    assert np.array_equal(SELECTIVE_SCAN.implementation(role)(u, dt, A, B, C), (C * x).sum(-1))
    y, last = SELECTIVE_SCAN_STATEFUL.implementation(role)(u, dt, A, B, C, x0)
    assert np.array_equal(y, (C * (x + x0)).sum(-1))
    assert np.array_equal(last, x[-1] + x0)


@each_role
def test_the_state_is_the_linear_scan_of_decays_and_inputs_read_by_c(role):
    u, dt, A, B, C = arrays = usual(SELECTIVE_SCAN, 2, "complex128")
    x = linear_scan(np.exp(dt[:, None] * A), (dt * u)[:, None] * B)
    y, scan = (C * x).sum(-1), SELECTIVE_SCAN.implementation(role)
    assert judge(SELECTIVE_SCAN, lambda *_: y, *arrays).grade == "A"
    assert judge(SELECTIVE_SCAN, scan, *arrays).grade == "A"
    assert role != "reference" or np.array_equal(scan(*arrays), y)


@each_role
@each_type
def test_constant_steps_and_projections_are_a_convolution(role, dtype):
    u, dt, A, B, C = arrays = usual(SELECTIVE_SCAN, 3, dtype, l=40)
    dt[:], B[:], C[:] = dt[0], B[0], C[0]
    kernel = vandermonde_kernel(C[0] * dt[0] * B[0], dt[0] * A, l=40)
    y = causal_convolution_direct(u, kernel)
    assert judge(SELECTIVE_SCAN, lambda *_: y, *arrays).ok
    assert judge(SELECTIVE_SCAN, SELECTIVE_SCAN.implementation(role), *arrays).ok


@each_role
def test_pairs_of_conjugate_rates_give_twice_the_real_part_of_one_of_each(role):
    u, dt, A, B, C = usual(SELECTIVE_SCAN, 4, "complex128")
    u, pairs = u.real, [np.concatenate([x, x.conj()], axis=-1) for x in (A, B, C)]
    scan = SELECTIVE_SCAN.implementation(role)
    doubled = 2 * scan(u, dt, A, B, C).real + 0j
    assert judge(SELECTIVE_SCAN, scan, u, dt, *pairs).ok
    assert judge(SELECTIVE_SCAN, lambda *_: doubled, u, dt, *pairs).ok


@each_role
@pytest.mark.parametrize("op", [SELECTIVE_SCAN, SELECTIVE_SCAN_STATEFUL], ids=str)
@pytest.mark.parametrize("l", [1, 2, 3, 5, 7, 11, 13, 31])
def test_any_length_is_right(op, role, l):
    assert judge(op, op.implementation(role), *usual(op, 5, batch=BATCH, l=l)).grade == "A"


@each_role
def test_without_steps_the_last_state_is_a_copy_of_the_first_and_gradients_are_zero(role):
    *arrays, x0 = usual(SELECTIVE_SCAN_STATEFUL, 6, batch=BATCH, l=0)
    assert SELECTIVE_SCAN.implementation(role)(*arrays).shape == (2, 3, 0)
    y, x = SELECTIVE_SCAN_STATEFUL.implementation(role)(*arrays, x0)
    assert (y.shape, x.tolist()) == ((2, 3, 0), x0.tolist())
    assert not np.shares_memory(x, x0)
    *gradients, dx0 = SELECTIVE_SCAN_STATEFUL.vjp(role)(y, x, *arrays, x0)
    assert [g.shape for g in gradients] == [a.shape for a in arrays]
    assert not any(g.any() for g in gradients)
    assert np.array_equal(dx0, x)


@each_role
def test_without_states_the_output_is_zero(role):
    arrays = usual(SELECTIVE_SCAN_STATEFUL, 7, n=0)
    y, x = SELECTIVE_SCAN_STATEFUL.implementation(role)(*arrays)
    assert (y.tolist(), x.shape) == ([0] * 7, (0,))


@each_role
@each_type
def test_a_step_of_zero_leaves_the_state_as_it_is(role, dtype):
    # padding at the right: dt = 0 after the softplus, for any u and B
    arrays = usual(SELECTIVE_SCAN_STATEFUL, 8, dtype, l=9)
    _, dt, _, _, C, _ = arrays
    dt[6:], C[5:] = 0, C[5]
    y, x = SELECTIVE_SCAN_STATEFUL.implementation(role)(*arrays)
    short, last = alone(SELECTIVE_SCAN_STATEFUL, role, arrays, slice(0, 6))
    assert np.array_equal(x, last)
    assert np.array_equal(y[:6], short)
    assert (y[6:] == y[5]).all()


@each_role
@each_type
def test_cut_at_any_step_with_the_state_carried_it_is_the_scan_in_one_piece(role, dtype):
    *arrays, x0 = usual(SELECTIVE_SCAN_STATEFUL, 9, dtype, BATCH, l=11)
    y, x = SELECTIVE_SCAN_STATEFUL.implementation(role)(*arrays, x0)
    for k in range(12):
        first, state = alone(SELECTIVE_SCAN_STATEFUL, role, (*arrays, x0), slice(0, k))
        second, last = alone(SELECTIVE_SCAN_STATEFUL, role, (*arrays, state), slice(k, None))
        assert np.array_equal(np.concatenate([first, second], axis=-1), y)
        assert np.array_equal(last, x)


@each_role
@each_type
def test_steps_one_after_another_are_the_scan(role, dtype):
    u, dt, A, B, C, x = arrays = usual(SELECTIVE_SCAN_STATEFUL, 10, dtype, BATCH)
    step, y = SELECTIVE_STEP.implementation(role), []
    for k in range(u.shape[-1]):
        y_k, x = step(u[..., k], dt[..., k], A, B[..., k, :], C[..., k, :], x)
        y.append(y_k)
    decoded = np.stack(y, axis=-1), x
    assert judge(SELECTIVE_SCAN_STATEFUL, lambda *_: decoded, *arrays).grade == "A"
    whole = SELECTIVE_SCAN_STATEFUL.implementation(role)(*arrays)
    assert role != "reference" or all(map(np.array_equal, decoded, whole))


@each_role
def test_neighbouring_channels_share_the_b_and_c_of_their_group(role):
    u, dt, A, _, _ = usual(SELECTIVE_SCAN, 11, batch={"b": 2, "d": 6})
    B, C = np.random.default_rng(11).standard_normal((2, 2, 2, 7, 3))  # b g l n
    scan = SELECTIVE_SCAN.implementation(role)
    by_group = u.reshape(2, 2, 3, 7), dt.reshape(2, 2, 3, 7), A.reshape(2, 3, 3)
    y = scan(*by_group, B[:, :, None], C[:, :, None]).reshape(2, 6, 7)
    for d, g in enumerate([0, 0, 0, 1, 1, 1]):
        assert np.array_equal(y[:, d], scan(u[:, d], dt[:, d], A[d], B[:, g], C[:, g]))
    tiled = scan(u, dt, A, np.tile(B, (1, 3, 1, 1)), np.tile(C, (1, 3, 1, 1)))
    equal = [bool((tiled[:, d] == y[:, d]).all()) for d in range(6)]
    assert equal == [True, False, True, True, False, True]  # where d % 2 equals d // 3


@each_role
@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
def test_the_result_has_the_common_type_and_gradients_are_real_where_the_argument_is(role, types):
    arrays = usual(SELECTIVE_SCAN_STATEFUL, 12, "float32")
    arrays[2:4] = (a.astype(t) for a, t in zip(arrays[2:4], types, strict=True))  # A and B
    wanted = np.result_type(*types)
    y, x = SELECTIVE_SCAN_STATEFUL.implementation(role)(*arrays)
    assert y.dtype == x.dtype == SELECTIVE_SCAN.implementation(role)(*arrays[:-1]).dtype == wanted
    gradients = SELECTIVE_SCAN_STATEFUL.vjp(role)(y, x, *arrays)
    assert [g.dtype.kind for g in gradients] == [a.dtype.kind for a in arrays]
    assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(wanted).dtype}


def test_long_double_keeps_its_digits_in_the_reference():
    eps = np.finfo(np.longdouble).eps
    u, one = np.array([1, eps], np.longdouble), np.ones((2, 1), np.longdouble)
    y = SELECTIVE_SCAN.implementation("reference")(u, one[:, 0], one[0] * 0, one, one)
    assert (y.dtype, (y - 1).tolist()) == (np.longdouble, [0, eps])


NAN_IN = {  # (place of NaN, 2 where y is NaN)
    "u": ((0, 1, 3), [[0, 0, 0, 0, 0], [0, 0, 0, 2, 2]]),
    "dt": ((0, 1, 3), [[0, 0, 0, 0, 0], [0, 0, 0, 2, 2]]),
    "A": ((1, 0), [[0, 0, 0, 0, 0], [0, 2, 2, 2, 2]]),  # y_0 does not depend on it
    "B": ((0, 0, 2, 1), [[0, 0, 2, 2, 2], [0, 0, 2, 2, 2]]),
    "C": ((0, 0, 2, 1), [[0, 0, 2, 0, 0], [0, 0, 2, 0, 0]]),
}


@each_role
@pytest.mark.parametrize("name", NAN_IN)
def test_nan_reaches_the_later_outputs_of_the_channels_that_see_it(role, name):
    arrays = usual(SELECTIVE_SCAN, 14, batch={"d": 2}, l=5)
    place, kinds = NAN_IN[name]
    arrays[list(SELECTIVE_SCAN.inputs).index(name)][place] = np.nan
    y = SELECTIVE_SCAN.implementation(role)(*arrays)
    assert kind_of(y).tolist() == [kinds]


@each_role
def test_infinity_stays_infinite_and_nan_in_the_first_state_shows_at_once(role):
    u, dt, A, B, C, x0 = usual(SELECTIVE_SCAN_STATEFUL, 15, n=1)
    y, x = SELECTIVE_SCAN_STATEFUL.implementation(role)(u, dt, A, B, C, np.full_like(x0, np.nan))
    assert (kind_of(y).tolist(), kind_of(x).tolist()) == ([2] * 7, [2])
    u[2] = np.inf
    y = SELECTIVE_SCAN.implementation(role)(u, dt, A, B, C)
    assert kind_of(y).tolist() == [0, 0, 1, 1, 1, 1, 1]


def state_in_bfloat16(u, dt, A, B, C):
    """A planted mistake: a scan that stores eight bits of its state."""
    x, y = np.zeros_like(A), []
    for u_k, dt_k, B_k, C_k in zip(u, dt, B, C, strict=True):
        x = rounded_to(8, np.exp(dt_k * A) * x + dt_k * u_k * B_k)
        y.append((C_k * x).sum())
    return np.array(y, A.dtype)


@each_role
def test_a_slow_state_needs_its_digits(role):
    # u = 1, dt = 1e-3, A = -1: x reaches 1 − e^−2 after 2000 steps
    ones = np.ones((2000, 1), np.float32)
    arrays = ones[:, 0], 1e-3 * ones[:, 0], -ones[0], ones, ones
    scan = SELECTIVE_SCAN.implementation(role)
    assert round(float(scan(*arrays)[-1]), 3) == 0.865
    assert judge(SELECTIVE_SCAN, scan, *arrays).grade == "A"
    frozen = state_in_bfloat16(*arrays)
    assert set(frozen[-1000:].tolist()) == {0.25}  # one step adds less than half of its last bit
    assert not judge(SELECTIVE_SCAN, state_in_bfloat16, *arrays).ok


def test_a_projection_that_does_not_depend_on_time_is_refused_with_the_signature():
    u, dt, A, B, C = usual(SELECTIVE_SCAN, 16)
    scan = SELECTIVE_SCAN.implementation("reference")
    message = r"^selective_scan: `B` needs core shape \(l, n\), got shape \(3,\) "
    with pytest.raises(ValueError, match=message):
        scan(u, dt, A, B[0], C)
    constant = np.broadcast_to(B[0], B.shape)  # the right way to write it
    assert judge(SELECTIVE_SCAN, scan, u, dt, A, constant, C).ok
