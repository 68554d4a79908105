"""Mamba-3: a step by hand, its relations to other recurrences, and angles on the circle."""

import numpy as np
import pytest

import refssm
from refssm._declaration.arguments import several
from refssm._numerics.circle import summed_angles, within_turn
from refssm.conformance.cases.scaled import comparable
from refssm.conformance.gauges.cumulated.mamba3 import plain_angles
from refssm.conformance.gauges.cumulated.sums import CHUNK
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.judging.grading import judge
from refssm.mamba3 import (
    MAMBA3_SISO,
    MAMBA3_SISO_PACKED,
    MAMBA3_SISO_RECURRENCE,
    MAMBA3_SISO_STATEFUL,
    MAMBA3_SISO_STEP,
)

ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)
TURN = 2 * np.pi


def usual(seed=0, batch=(), l=7, pairs=2, p=3, state=False, dtype="float64"):
    """Arguments as in a model."""
    rng = np.random.default_rng(seed)
    q, k = (rng.standard_normal((*batch, l, 2 * pairs)) for _ in range(2))
    v, dt = rng.standard_normal((*batch, l, p)), rng.exponential(0.5, (*batch, l))
    trap, angles = rng.standard_normal((*batch, l)), rng.standard_normal((*batch, l, pairs))
    arrays = [q, k, v, -dt * rng.exponential(1, (*batch, l)), dt, trap, angles]
    if state:
        shapes = (pairs,), (2 * pairs, p), (2 * pairs,), (p,)
        arrays += [rng.uniform(0, 6, (*batch, *shape)) for shape in shapes]
    return [x.astype(dtype) for x in arrays]


@each_role
def test_one_step_by_hand(role):
    # tanh(angle) Δ π is a quarter of a turn: (2, 0) becomes (0, 2), (0, 1) becomes (−1, 0)
    step = MAMBA3_SISO_STEP.implementation(role)
    quarter, half = np.arctanh(0.25), np.log(0.5)
    given = ([0.0, 1.0], [2.0, 0.0], [5.0], half, 2.0, np.log(3.0), [quarter],
             [0.0], [[8.0], [4.0]], [1.0, 1.0], [6.0])  # fmt: skip
    y, phase, S, key, value = step(*map(np.array, given))
    # λ = 3/4: S = ½ (8, 4) + ¼·2·½·(1, 1)·6 + ¾·2·(0, 2)·5
    np.testing.assert_allclose(S[:, 0], [5.5, 18.5], rtol=1e-14)
    np.testing.assert_allclose([*y, *phase, *value], [-5.5, np.pi / 2, 5], rtol=1e-14)
    np.testing.assert_allclose(key, [0, 2], atol=1e-15)


@each_role
def test_with_all_weight_on_its_own_input_and_no_angles_it_is_state_space_duality(role):
    q, k, v, log_g, dt, trap, angles = usual(1)
    y = MAMBA3_SISO.implementation(role)(q, k, v, log_g, dt, 0 * trap + 60, 0 * angles)
    np.testing.assert_allclose(y, refssm.ssd_recurrent(dt[:, None] * v, log_g, k, q), rtol=1e-12)


@each_role
def test_turned_pairs_are_a_recurrence_of_complex_numbers(role):
    q, k, v, log_g, dt, trap, angles = usual(2, pairs=1, p=1)
    y = MAMBA3_SISO.implementation(role)(q, k, v, log_g, dt, 0 * trap + 60, angles)
    decays = np.exp(log_g[:, None] - 1j * np.pi * np.tanh(angles) * dt[:, None])
    inputs = (k[:, :1] + 1j * k[:, 1:]) * dt[:, None] * v
    x = refssm.linear_scan(decays, inputs)
    np.testing.assert_allclose(y, ((q[:, :1] - 1j * q[:, 1:]) * x).real, rtol=1e-11, atol=1e-13)


@each_role
def test_half_of_each_input_is_the_trapezoidal_rule(role):
    l, h = 9, 0.5
    one, zero = np.tile([1.0, 0.0], (l, 1)), np.zeros(l)
    f = np.arange(l)[:, None] ** 2.0
    y = MAMBA3_SISO.implementation(role)(one, one, f, zero, zero + h, zero, zero[:, None])
    sums = [np.trapezoid(f[: t + 1, 0], dx=h) for t in range(l)]
    np.testing.assert_allclose(y[:, 0], sums, rtol=1e-14)


@each_role
def test_whole_turns_of_the_first_angles_change_nothing(role):
    *arrays, phase, S, key, value = usual(3, state=True)
    stateful = MAMBA3_SISO_STATEFUL.implementation(role)
    one = stateful(*arrays, phase, S, key, value)
    other = stateful(*arrays, phase - 3 * TURN, S, key, value)
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


@each_role
def test_all_angles_moved_by_the_same_leave_the_outputs_from_rest(role):
    """Only differences of angles count, if the first key and state are 0."""
    *arrays, phase, S, key, value = usual(4, state=True)
    stateful = MAMBA3_SISO_STATEFUL.implementation(role)
    y, *_ = stateful(*arrays, phase, 0 * S, 0 * key, value)
    np.testing.assert_allclose(y, MAMBA3_SISO.implementation(role)(*arrays), rtol=1e-11)


@each_role
@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 16, 17])
def test_any_length_is_right_and_none_gives_the_first_state(role, l):
    arrays = usual(l, (2, 1, 2), l=l, state=True)
    assert judge(MAMBA3_SISO, MAMBA3_SISO.implementation(role), *arrays[:7]).grade == "A"
    y, *state = MAMBA3_SISO_STATEFUL.implementation(role)(*arrays)
    assert y.shape == (2, 1, 2, l, 3)
    if not l:
        for one, other in zip(state, arrays[7:], strict=True):
            np.testing.assert_array_equal(one, other)


@each_role
@pytest.mark.parametrize("of", range(11))
def test_what_members_share_gets_the_sum_of_their_gradients_once(role, of):
    op = MAMBA3_SISO_STATEFUL
    arrays, rng = usual(9, l=9, state=True), np.random.default_rng(10)
    arrays[of] = np.stack([arrays[of], 0.9 * arrays[of]])  # alone with an axis of members
    members = [[*arrays[:of], x, *arrays[of + 1 :]] for x in arrays[of]]
    dy = [rng.standard_normal(x.shape) for x in op.reference(*arrays)]
    pulled = op.vjp(role)(*dy, *arrays)
    each = [op.vjp(role)(*(x[i] for x in dy), *member) for i, member in enumerate(members)]
    for i, (one, other, both) in enumerate(zip(*each, pulled, strict=True)):
        wanted = np.stack([one, other]) if i == of else one + other
        np.testing.assert_allclose(both, wanted, rtol=1e-11, atol=1e-11)


@each_role
def test_a_reset_is_a_new_start_without_the_last_key_and_angle(role):
    arrays = usual(6)
    packed = MAMBA3_SISO_PACKED.implementation(role)
    y = packed(*arrays, np.arange(7) == 3)
    alone = refssm.mamba3_siso(*(x[3:] for x in arrays))
    np.testing.assert_allclose(y[3:], alone, rtol=1e-12, atol=1e-14)


def test_the_forms_over_time_are_the_step_taken_many_times():
    step = MAMBA3_SISO_RECURRENCE.step
    assert step is not None
    by_steps = MAMBA3_SISO_RECURRENCE.by_steps(*step)
    *arrays, phase, S, key, value = usual(7, (2,), l=20, state=True)
    state, rng = (phase, S, key, value), np.random.default_rng(8)
    for resets in (None, rng.random(20) < 0.3):
        made = MAMBA3_SISO_RECURRENCE.run(arrays, state, resets)
        wanted = by_steps.run(arrays, state, resets)
        cotangents = [rng.standard_normal(x.shape) for x in wanted]
        made += tuple(MAMBA3_SISO_RECURRENCE.back(cotangents, arrays, state, resets))
        wanted += tuple(by_steps.back(cotangents, arrays, state, resets))
        for one, other in zip(made, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


def test_angles_are_compared_on_the_circle():
    arrays = usual(9, state=True)
    y, phase, *others = refssm.mamba3_siso_stateful(*arrays)
    moved = y, phase - TURN, *others
    assert judge(MAMBA3_SISO_STATEFUL, lambda *_: moved, *arrays).grade == "A"
    back = comparable(MAMBA3_SISO_STATEFUL, moved, (y, phase, *others))
    np.testing.assert_allclose(back[1], phase, rtol=1e-14)
    for wrong in (phase + 0.5, phase + np.pi, phase * np.nan):
        made = y, wrong, *others
        assert judge(MAMBA3_SISO_STATEFUL, lambda *_, made=made: made, *arrays).grade == "F"


def test_an_angle_of_a_single_step_is_compared_on_the_circle_too():
    given = [x[0] for x in usual(10, l=1)] + usual(10, state=True)[7:]
    y, phase, *others = several(refssm.mamba3_siso_step(*given))
    made = y, phase + TURN, *others
    assert judge(MAMBA3_SISO_STEP, lambda *_: made, *given).grade == "A"


def winding(l, rate):
    """Single precision, one pair that turns by `rate` at each step; nothing is forgotten."""
    rng = np.random.default_rng(11)
    q, k = (rng.standard_normal((l, 2)) / 2 for _ in range(2))
    one, angles = np.ones(l), np.full((l, 1), np.arctanh(rate / np.pi))
    arrays = q, k, rng.standard_normal((l, 1)), 0 * one, one, 3 * one, angles
    return [x.astype(np.float32) for x in arrays]


def with_angles(phases):
    """The step by step program with angles `phases(moves)`."""

    def program(q, k, v, log_g, dt, trap, angles):
        moves = np.float32(np.pi) * np.tanh(angles) * dt[:, None]
        phase, share = phases(moves), 1 / (1 + np.exp(-trap))
        c, s = np.cos(phase), np.sin(phase)
        q, k = (np.concatenate([x[:, :1] * c - x[:, 1:] * s, x[:, :1] * s + x[:, 1:] * c], -1)
                for x in (q, k))  # fmt: skip
        S, key, value, y = np.zeros((2, 1), np.float32), 0 * k[0], 0 * v[0], []
        for t in range(len(q)):
            late, own = ((1 - share[t]) * dt[t], share[t] * dt[t])
            S = np.exp(log_g[t]) * (S + late * np.outer(key, value)) + own * np.outer(k[t], v[t])
            key, value = k[t], v[t]
            y.append(q[t] @ S)
        return np.array(y)

    return program


def in_plain_sums(moves):
    return np.cumsum(moves, axis=0, dtype=np.float32)


def in_turns(moves):
    """As the public kernels: sums of 64 steps, then within a turn."""
    start, found, turn = np.float32(0), [], np.float32(TURN)
    for i in range(0, len(moves), 64):
        sums = start + np.cumsum(moves[i : i + 64], axis=0, dtype=np.float32)
        found.append(sums - turn * np.floor(sums / turn))
        start = found[-1][-1]
    return np.concatenate(found)


def test_plain_sums_of_angles_lose_digits_and_those_within_a_turn_keep_them():
    arrays = winding(3000, 2.9)
    plain, turns = (judge(MAMBA3_SISO, with_angles(f), *arrays) for f in (in_plain_sums, in_turns))
    assert plain.grade == turns.grade == "A"
    assert plain.ratio > 3 * turns.ratio


def test_angles_in_half_precision_are_wrong():
    def in_halves(moves):
        return in_turns(moves).astype(np.float16).astype(np.float32)

    assert judge(MAMBA3_SISO, with_angles(in_halves), *winding(300, 2.9)).grade in "CF"


def errors_of(sums, l, unit=2.0**-24):
    """K0 of the angles after l steps of 3 radians, from exact moves."""
    moves, begins = np.full((l, 1), 3.0), np.zeros(l, bool)
    (gauge,) = gauges(lambda m: sums(m, np.zeros(1), begins), moves, unit=unit)
    return gauge.k0[:, 0]


def test_angles_within_a_turn_err_by_their_number_and_plain_sums_by_its_square():
    t = 1 + np.arange(1000)
    within, plain = (errors_of(sums, 1000, 2.0**-53) for sums in (summed_angles, plain_angles))
    # of each step: the sum, up to 2π + 3; what is taken from it, twice; and what is left
    assert (within <= (4 * TURN + 3) * t).all()
    np.testing.assert_allclose(plain, 3 * t * (t + 1) / 2)


def test_a_plain_sum_without_digits_excuses_no_short_chunk():
    errors = errors_of(plain_angles, 4096)
    # 16 · 3 · 4096²/2 roundings are 24 radians; within chunks they are 3 · 257/2 a step, from a
    # start within a turn, and at the end of each twice its sum of at most 3 · 256 + 2π
    of_ends = 2 * (3 * CHUNK + TURN) / CHUNK
    assert errors[-1] < 4096 * (3 * (CHUNK + 1) / 2 + TURN + of_ends)
    assert 16 * 2.0**-24 * errors[-1] < 2


@pytest.mark.parametrize(
    ("sums", "wanted"), [(summed_angles, [6, 18, 2]), (plain_angles, [3, 9, 1])]
)
def test_the_errors_of_angles_begin_anew_with_a_sequence(sums, wanted):
    # within a turn: 3 and 3 are left of the first sum and its remainder; 6 and 6; 1 and 1
    moves, begins = np.array([[3.0], [3.0], [1.0]]), np.array([False, False, True])
    (gauge,) = gauges(lambda m: sums(m, np.zeros(1), begins), moves, unit=2.0**-24)
    np.testing.assert_allclose(gauge.k0[:, 0], wanted)


@pytest.mark.parametrize("sums", [summed_angles, plain_angles])
def test_sequences_may_begin_at_other_steps_in_each_member_of_a_batch(sums):
    moves, begins = np.array([[1.0], [2.0], [3.0]]), np.array([[0, 1, 0], [0, 0, 1]], bool)
    assert sums(moves, np.ones(1), begins)[..., 0].tolist() == [[2, 2, 5], [2, 4, 3]]
    (gauge,) = gauges(lambda m: sums(m, np.ones(1), begins), moves, unit=2.0**-24)
    assert gauge.k0.shape == (2, 3, 1)


def test_an_angle_within_a_turn_has_the_roundings_of_the_turns_that_were_taken():
    x = np.array([1.0, 2 * TURN + 1])
    (gauge,) = gauges(lambda x: within_turn(x + 0), x, unit=2.0**-24)
    np.testing.assert_allclose(gauge.value, [1, 1])
    np.testing.assert_allclose(gauge.k0, [2, (2 * TURN + 1) + 2 * 2 * TURN + 1])


def test_sizes_that_disagree_and_an_odd_number_of_keys_are_refused():
    q, k, v, log_g, dt, trap, angles = usual()
    with pytest.raises(ValueError, match=r"mamba3_siso: `dt` has l=6, but earlier .* have l=7"):
        refssm.mamba3_siso(q, k, v, log_g, dt[1:], trap, angles)
    with pytest.raises(ValueError, match="mamba3_siso"):
        refssm.mamba3_siso(q[:, 1:], k[:, 1:], v, log_g, dt, trap, angles)
