from itertools import product

import numpy as np
import pytest
from recurrences import TYPES, drawn, each_role, each_type, integers, random, several

from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.convolution import (
    CAUSAL_CONVOLUTION_DIRECT,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)

FORMS = [SHORT_CONVOLUTION, SHORT_CONVOLUTION_STATEFUL, SHORT_CONVOLUTION_STEP]
each_form = pytest.mark.parametrize("op", FORMS, ids=str)
SIZES = [(1, 1), (1, 4), (2, 3), (3, 3), (4, 3), (7, 1), (13, 4), (31, 5), (5, 17)]
each_size = pytest.mark.parametrize(("l", "t"), SIZES)


def plain(role):
    return SHORT_CONVOLUTION.implementation(role)


def stateful(role):
    return SHORT_CONVOLUTION_STATEFUL.implementation(role)


def step(role):
    return SHORT_CONVOLUTION_STEP.implementation(role)


@each_role
@each_type
@each_size
def test_it_is_the_beginning_of_numpys_full_convolution(role, dtype, l, t):
    u, k = integers(l + t, (l,), (t,), dtype=dtype)
    assert np.array_equal(plain(role)(u, k), np.convolve(u, k)[:l])


@each_role
@each_size
def test_it_is_the_causal_convolution_with_taps_filled_up_with_zeros(role, l, t):
    u, k = integers(1, (l,), (t,))
    filled = np.concatenate([k, np.zeros(l)])[:l]
    causal = CAUSAL_CONVOLUTION_DIRECT.implementation(role)
    assert np.array_equal(plain(role)(u, k), causal(u, filled))


@each_role
@each_size
def test_a_frameworks_layer_has_the_taps_reversed_and_pads_at_the_start(role, l, t):
    u, k = integers(2, (l,), (t,))
    weight = k[::-1]  # Conv1d: out_i = Σ_j weight_j in_{i+j}, with t − 1 zeros at the start
    padded = np.concatenate([np.zeros(t - 1), u])
    out = [sum(weight[j] * padded[i + j] for j in range(t)) for i in range(l)]
    assert plain(role)(u, k).tolist() == out
    assert np.array_equal(plain(role)(u, k), np.correlate(padded, weight, "valid")[:l])


@each_role
def test_one_tap_scales_none_gives_zeros_and_a_late_one_delays(role):
    (u,) = random(3, (8,))
    assert np.array_equal(plain(role)(u, [3.0]), 3 * u)
    assert np.array_equal(plain(role)(u, []), np.zeros(8))
    for lag in range(10):
        late = np.concatenate([np.zeros(lag), u])[:8]
        assert np.array_equal(plain(role)(u, np.arange(10) == lag), late)


@each_role
def test_first_differences_and_running_sums(role):
    u = np.arange(20.0) ** 2
    assert np.array_equal(plain(role)(u, [1.0, -1.0]), np.diff(u, prepend=0))
    assert np.array_equal(plain(role)(u, [1.0, -2.0, 1.0])[2:], np.full(18, 2.0))
    assert np.array_equal(plain(role)(u, np.ones(20)), np.cumsum(u))


@each_role
@each_type
@each_size
def test_streams_cut_anywhere_are_the_whole(role, dtype, l, t):
    u, k, s0 = integers(4, (l,), (t,), (t,), dtype=dtype)
    run = stateful(role)
    y, s = run(u, k, s0)
    assert np.array_equal(s, np.concatenate([s0, u])[l:])
    for cut in range(l + 1):
        head, between = run(u[:cut], k, s0)
        tail, end = run(u[cut:], k, between)
        assert np.array_equal(np.concatenate([head, tail]), y), cut
        assert np.array_equal(end, s), cut


@each_role
@each_size
def test_step_by_step_it_is_the_whole(role, l, t):
    u, k, s0 = integers(5, (l,), (t,), (t,), dtype="complex128")
    y, s = stateful(role)(u, k, s0)
    state = s0
    for i in range(l):
        out, state = step(role)(u[i], k, state)
        assert out == y[i], i
        assert out.shape == ()
    assert np.array_equal(state, s)


@each_role
@each_size
def test_from_zeros_it_is_the_form_from_rest(role, l, t):
    u, k, dy = integers(6, (l,), (t,), (l,), dtype="complex128")
    assert np.array_equal(stateful(role)(u, k, np.zeros(t))[0], plain(role)(u, k))
    none = np.zeros(t, complex)
    gradients = SHORT_CONVOLUTION_STATEFUL.vjp(role)(dy, none, u, k, none)[:2]
    assert all(map(np.array_equal, gradients, SHORT_CONVOLUTION.vjp(role)(dy, u, k)))


@each_role
def test_the_oldest_entry_of_the_state_is_never_used(role):
    u, k, s0 = integers(7, (5,), (4,), (4,))
    y, (out, _) = stateful(role)(u, k, s0)[0], step(role)(u[0], k, s0)
    s0[0] = np.nan
    assert np.array_equal(stateful(role)(u, k, s0)[0], y)
    assert np.array_equal(step(role)(u[0], k, s0)[0], out)
    assert not kind_of(step(role)(u[0], k, s0)[1]).any()


@each_role
def test_nan_is_heard_for_as_many_steps_as_there_are_taps(role):
    t = 3
    for place in range(8):
        u = np.ones((2, 8))
        u[0, place] = np.nan
        heard = (np.arange(8) >= place) & (np.arange(8) < place + t)
        assert np.array_equal(np.isnan(plain(role)(u, np.ones(t))), [heard, np.zeros(8, bool)])
    s0 = np.array([1.0, np.nan, 1.0])
    assert kind_of(stateful(role)(np.ones(4), np.ones(t), s0)[0]).tolist() == [2, 0, 0, 0]
    s0 = np.array([1.0, 1.0, np.inf])
    y, s = stateful(role)(np.ones(4), np.ones(t), s0)
    assert kind_of(y).tolist() == [1, 1, 0, 0]
    assert not kind_of(s).any()


@each_role
def test_nan_in_a_tap_is_heard_from_its_lag_on(role):
    for lag in range(3):
        k = np.ones((2, 3))
        k[1, lag] = np.nan
        y = plain(role)(np.ones(5), k)
        assert kind_of(y).tolist() == [[0] * 5, [0] * lag + [2] * (5 - lag)]
        assert kind_of(stateful(role)(np.ones(5), k, np.ones(3))[0]).tolist() == [[0] * 5, [2] * 5]


@each_role
def test_the_gradient_of_the_taps_by_hand(role):
    dy, u, k = [5.0, 7.0, 11.0], [1.0, 2.0, 3.0], [13.0, 17.0]
    du, dk = SHORT_CONVOLUTION.vjp(role)(dy, u, k)
    assert dk.tolist() == [5 * 1 + 7 * 2 + 11 * 3, 7 * 1 + 11 * 2]
    assert du.tolist() == [13 * 5 + 17 * 7, 13 * 7 + 17 * 11, 13 * 11]


@each_role
def test_the_complex_gradient_from_a_state_by_hand(role):
    dy, ds, u, k, s0 = [1j, 2.0], [3.0, 5j], [1 + 1j, 2j], [2j, 1 - 1j], [7.0, 1 - 2j]
    du, dk, ds0 = SHORT_CONVOLUTION_STATEFUL.vjp(role)(dy, ds, u, k, s0)
    # y_0 = k_0 u_0 + k_1 s_1, y_1 = k_0 u_1 + k_1 u_0; s = (u_0, u_1)
    assert du.tolist() == [-2j * 1j + (1 + 1j) * 2 + 3, -2j * 2 + 5j]
    assert dk.tolist() == [(1 - 1j) * 1j - 2j * 2, (1 + 2j) * 1j + (1 - 1j) * 2]
    assert ds0.tolist() == [0, (1 + 1j) * 1j]


@each_role
def test_the_gradient_of_a_step_by_hand(role):
    du, dk, ds = SHORT_CONVOLUTION_STEP.vjp(role)(
        2.0, [3.0, 5.0, 7.0], 11.0, [1.0, 10.0, 100.0], [13.0, 17.0, 19.0]
    )
    assert du == 2 * 1 + 7
    assert dk.tolist() == [2 * 11, 2 * 19, 2 * 17]
    assert ds.tolist() == [0, 2 * 100 + 3, 2 * 10 + 5]


@each_role
@each_size
def test_gradients_of_pieces_cut_anywhere_are_those_of_the_whole(role, l, t):
    u, k, s0, dy, ds = integers(8, (l,), (t,), (t,), (l,), (t,), dtype="complex128")
    run, vjp = stateful(role), SHORT_CONVOLUTION_STATEFUL.vjp(role)
    du, dk, ds0 = vjp(dy, ds, u, k, s0)
    for cut in range(l + 1):
        between = run(u[:cut], k, s0)[1]
        du_tail, dk_tail, carried = vjp(dy[cut:], ds, u[cut:], k, between)
        du_head, dk_head, start = vjp(dy[:cut], carried, u[:cut], k, s0)
        assert np.array_equal(np.concatenate([du_head, du_tail]), du), cut
        assert np.array_equal(dk_head + dk_tail, dk), cut
        assert np.array_equal(start, ds0), cut


@pytest.mark.parametrize(("l", "t"), [(0, 3), (3, 0), (0, 0), (1, 1)])
@each_role
@each_form
def test_no_time_no_taps_and_one_of_each(op, role, l, t):
    arrays = drawn(op, 9, l=l, t=t)
    outputs = [*several(op.implementation(role)(*arrays))]
    assert [y.shape for y in outputs] == op.output_shapes(*arrays)
    assert judge(op, op.implementation(role), *arrays).ok
    gradients = op.vjp(role)(*outputs, *arrays)
    assert [g.shape for g in gradients] == [a.shape for a in arrays]
    if op is SHORT_CONVOLUTION_STATEFUL and l == 0:
        assert np.array_equal(outputs[1], arrays[2])
        assert np.array_equal(gradients[2], outputs[1])


@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
@each_role
@each_form
def test_result_and_gradients_have_the_types_and_kinds_of_the_arguments(op, role, types):
    for state in ("float32", "complex64"):
        kinds = dict(zip(op.inputs, (*types, state), strict=False))
        arrays = [a.astype(kinds[name]) for name, a in zip(op.inputs, drawn(op, 10), strict=True)]
        y, *s = several(op.implementation(role)(*arrays))
        assert y.dtype == np.result_type(*arrays)
        kept = [kinds[name] for name in op.inputs if name != "k"]  # the state has no taps
        precision = np.finfo(y.dtype).dtype
        assert [x.dtype for x in s] == [np.result_type(precision, *kept)] * len(s)
        gradients = op.vjp(role)(y, *s, *arrays)
        assert [g.dtype.kind for g in gradients] == [a.dtype.kind for a in arrays]
        assert {np.finfo(g.dtype).dtype for g in gradients} == {precision}


@each_form
def test_long_double_keeps_its_digits_in_the_references(op):
    eps = np.finfo(np.longdouble).eps
    arrays = [np.ones(np.shape(a), np.longdouble) for a in drawn(op, 11, t=1, l=1)]
    arrays[1] += eps
    outputs = several(op.implementation("reference")(*arrays))
    assert outputs[0] == 1 + eps
    assert all(g.dtype == np.longdouble for g in op.vjp()(*outputs, *arrays))


BATCHES = [((), (2,), ()), ((2,), (), ()), ((3, 1), (2,), (1,)), ((), (), (2,)), ((2,), (3, 1), ())]


@pytest.mark.parametrize("batches", BATCHES, ids=str)
@each_role
@each_form
def test_leading_axes_broadcast_and_each_member_is_what_it_is_alone(op, role, batches):
    cores = [a.shape for a in drawn(op, 12)]
    shapes = [batch + core for batch, core in zip(batches, cores, strict=False)]
    arrays = integers(12, *shapes)
    outputs = several(op.implementation(role)(*arrays))
    assert [y.shape for y in outputs] == op.output_shapes(*arrays)
    gradients = op.vjp(role)(*outputs, *arrays)
    assert [g.shape for g in gradients] == shapes
    batch = op.batch_shape(*arrays)
    full = [np.broadcast_to(a, batch + core) for a, core in zip(arrays, cores, strict=True)]
    for index in np.ndindex(*batch):
        alone = several(op.implementation(role)(*(a[index] for a in full)))
        assert all(np.array_equal(y[index], z) for y, z in zip(outputs, alone, strict=True))


@each_role
@each_form
def test_arguments_are_left_alone_and_results_are_new(op, role):
    for l in (0, 1, 5):
        arrays = drawn(op, 13, l=l)
        before = [a.copy() for a in arrays]
        outputs = several(op.implementation(role)(*arrays))
        cotangents = [y.copy() for y in outputs]
        gradients = op.vjp(role)(*cotangents, *arrays)
        assert all(map(np.array_equal, arrays, before))
        for new, old in product((*outputs, *gradients), (*arrays, *cotangents)):
            assert not np.shares_memory(new, old), l
        assert all(new.flags.writeable for new in (*outputs, *gradients))


@each_role
def test_sizes_that_disagree_are_told(role):
    with pytest.raises(ValueError, match=r"^short_convolution_stateful: `s0` has t=3, but earlier"):
        stateful(role)(np.ones(5), np.ones(4), np.ones(3))
    with pytest.raises(
        ValueError, match=r"^short_convolution_step: `s` has t=4, but earlier argum"
    ):
        step(role)(1.0, np.ones(3), np.ones(4))
    with pytest.raises(
        ValueError, match=r"^short_convolution: `k` needs core shape \(t\), got sha"
    ):
        plain(role)(np.ones(3), 1.0)
    with pytest.raises(ValueError, match=r"^short_convolution_step: leading axes do not broadcast"):
        step(role)(np.ones(2), np.ones((3, 4)), np.ones(4))
    with pytest.raises(TypeError, match=r"missing a required argument: 's0'"):
        stateful(role)(np.ones(5), np.ones(4))
