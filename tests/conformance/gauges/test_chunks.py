"""What a delta rule by chunks may err by: sums that no later step corrects."""

import numpy as np
import pytest
from honest.linear_attention.chunked import IMPLEMENTATIONS
from honest.linear_attention.chunks import in_chunks

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges.columns import steps
from refssm.conformance.gauges.columns.steps import Columns
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.gauge import as_input
from refssm.conformance.gauges.programs.linear_attention import dplr
from refssm.conformance.gauges.programs.linear_attention.states import NEXT, StateRun, apart
from refssm.conformance.gauges.programs.measured import SINGLE, SMALLEST, _units
from refssm.conformance.gauges.tracked import tracing
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs
from refssm.conformance.planted.linear_attention.forms import form
from refssm.oracle import evaluate

UNIT = 2.0**-53
KEY = -127 / 128  # βk² is near 1, so that a step leaves a 64th of the state or less
BETA = [1.1733235803169864, 1.0, 0.8686861999243778, 0.0, 2.0, 1.0, 2.0, 0.0, 1.0, 0.0, 2.0]
BETA += [0.7753412825159409, 0.0, 1.0, 0.010882186129799902, 0.0, 0.7753412825159409]
BETA += [0.9900522337838569, 1.0, 0.40570305557371855, 1.0, 0.7753412825159409, 0.0, 1.0]
BETA += [0.4131631066572834, 2.0, 1.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.7753412825159409]


def by_rows(name):
    """Values and gradients chunk by chunk."""
    return next(h for h in IMPLEMENTATIONS if h.op == name and h.name == "by_rows")


def ratios(gauges, found, wanted):
    """|error| in units of the bound u·K0, the largest of each result."""
    pairs = zip(gauges, found, wanted, strict=True)
    return [float((np.abs(y - w) / (UNIT * g.k0)).max()) for g, y, w in pairs]


def second(gauge):
    """The bound of grade N."""
    assert gauge.cumulated is not None
    return gauge.cumulated.whole()


@pytest.mark.parametrize("slope", [1.0, 0.37])
def test_a_chunk_may_keep_the_rounding_errors_of_what_it_takes_away(slope):
    op, l = operator_named("delta_rule_chunked_stateful"), len(BETA)
    k, zeros, beta = np.full((l, 1), KEY), np.zeros((l, 1)), np.array(BETA)
    arrays = [zeros, np.full((1, 1), slope), zeros, k, zeros + 0.9, beta, np.ones((1, 1))]
    gauges = bounds(op, arrays, {"chunk": 64}, op.bare_vjp, unit=UNIT, floor=1e-300)
    wanted = op.bare_vjp(*(a.astype(np.longdouble) for a in arrays), chunk=64)
    back = by_rows(op.name).vjp
    assert back is not None
    found = back(*arrays, chunk=64)
    assert max(ratios(gauges, found, wanted)) < 16
    of_steps = operator_named("delta_rule_stateful")
    tight = bounds(of_steps, arrays, {}, of_steps.bare_vjp, unit=UNIT, floor=1e-300)
    assert max(ratios(tight, found, wanted)) > 1e6  # and a loop may not


def test_the_first_chunk_keeps_its_sums_wherever_the_sequence_ends():
    # 129 steps: a program that begins its 128 at the end begins anew at the first step
    op, l, rng = operator_named("delta_rule_chunked_stateful"), 129, np.random.default_rng(0)
    beta = rng.choice(BETA, l)
    beta[:20] = 1.0
    q, v, dy = rng.standard_normal((3, l, 1))
    arrays = [dy, np.zeros((1, 1)), q, np.full((l, 1), KEY), v, beta, np.ones((1, 1))]
    gauges = bounds(op, arrays, {"chunk": 64}, op.bare_vjp, unit=UNIT, floor=1e-300)
    wanted = op.bare_vjp(*(a.astype(np.longdouble) for a in arrays), chunk=64)
    back = by_rows(op.name).vjp
    assert back is not None
    assert max(ratios(gauges, back(*arrays, chunk=64), wanted)) < 16


def test_a_sum_errs_by_a_rounding_of_the_largest_that_it_was():
    k, beta, c = (np.array([x], np.float32).T for x in ([1] * 4, [0, 1, 0, 1], [100, 0, -100, 0]))
    _, taken = apart(StateRun(k, beta, 0 * k, k, c), np.zeros((1, 1), np.float32))
    assert 2**-24 <= abs(float(taken[-1].item())) / 100 <= 2**-22  # 100, then 0 again


def test_cotangents_of_a_low_rank_rule_begin_anew_where_chunks_of_the_sequence_do():
    # 130 steps: the first 128 are a chunk, so what steps 128 and 129 took away is out of its sums
    one = np.ones((130, 1), np.float32)
    dy = 0 * one
    dy[-1], dy[-2] = 1, -1
    given = [one, one, one, 0 * one, 0 * one, 0 * one]  # q, k, v, g, a, b: all of a state is kept
    _, _, dv, *_ = dplr.ByLowRankStates(dplr.apart).back((dy,), given, None, None)
    assert 2**-24 <= np.abs(dv[128]).item() <= 2**-22
    assert not dv[:128].any()


def after_one_impulse(l=64):
    """Steps that each leave 0.4 of the state, and are read when less is left than a sum over the
    chunk can hold."""
    q, v = np.zeros((2, l, 1))
    q[l // 2 :], v[0] = 1.0, 1.0
    return [q, np.full((l, 1), KEY), v, np.full(l, 0.6)]


def test_a_chunk_judged_as_the_steps_is_right_in_norm():
    op, arrays = operator_named("delta_rule"), after_one_impulse()
    chunk = form(op, in_chunks(64))
    (gauge,) = expect(op, arrays, {})
    verdicts = [grade_outputs(op, arrays, (f(*arrays),), (gauge,)) for f in (op.reference, chunk)]
    assert [verdict.grade for verdict in verdicts] == ["A", "N"]
    assert verdicts[1].message.startswith("cancels: ")
    off = np.asarray(chunk(*arrays)) + 1e-12
    assert grade_outputs(op, arrays, (off,), (gauge,)).grade == "F"


def test_one_chunk_of_255_steps_keeps_the_errors_of_its_first_steps():
    op, l = operator_named("delta_rule_chunked"), 255
    k, beta = np.full((l, 1), -KEY), np.full(l, 1.0023)
    early, late = (np.arange(l)[:, None] < 100), (np.arange(l)[:, None] > 200)
    arrays = [a.astype(np.float32) for a in (late, k, np.where(early, 1e3, 1e-3), beta)]
    (y,) = evaluate(op, *arrays, chunk=4096)
    found = op.reference(*arrays, chunk=4096)
    (gauge,) = bounds(op, arrays, {"chunk": 4096}, None, unit=2.0**-24, floor=1e-38)
    assert (np.abs(found - y) <= 16 * 2.0**-24 * gauge.k0).all()
    (short,) = bounds(op, arrays, {"chunk": 64}, None, unit=2.0**-24, floor=1e-38)
    assert (np.abs(found - y) > 16 * 2.0**-24 * short.k0).any()  # of a chunk that nobody asked for


@pytest.mark.parametrize("start", [1, NEXT, 1 / NEXT])
def test_what_is_taken_away_errs_to_the_side_where_it_shows(start):
    one = np.ones((1, 1), np.float32)
    written, taken = apart(StateRun(one, one, 0 * one, 0 * one, one), one * np.float32(start))
    assert 2**-24 <= float(np.abs(written - taken).max()) <= 2**-22


def test_a_product_of_two_states_that_are_0_errs_as_the_sums_that_cancel():
    # with k = 1 and β = 1 nothing is left of a state: from both ends step 2 sees 0
    l, beta = 5, np.array([0.3, 1.0, 0.4, 1.0, 0.3])
    k, zeros, one = np.ones((l, 1)), np.zeros((l, 1)), np.ones((1, 1))
    arrays = [zeros, one, zeros, k, zeros, beta, 43 * one]  # dy, dS, q, k, v, β, S0
    op = operator_named("delta_rule_chunked_stateful")
    _, of_k, *_ = bounds(op, arrays, {"chunk": 64}, op.bare_vjp, unit=UNIT, floor=1e-300)
    assert of_k.value[2] == 0
    assert of_k.k0[2] > 1
    of_steps = operator_named("delta_rule_stateful")
    _, of_k, *_ = bounds(of_steps, arrays, {}, of_steps.bare_vjp, unit=UNIT, floor=1e-300)
    assert 1e-20 < of_k.k0[2] < 1e-10  # both err by a rounding: u times the bound of chunks


def test_the_exponent_of_a_sum_of_gates_may_err_by_a_rounding():
    op, l = operator_named("gated_delta_rule_chunked"), 40
    ones, k = np.ones((l, 1)), np.zeros((l, 1))
    k[0] = 1.0
    log_g = np.full(l, -16.7)
    arrays = [ones, k, ones, log_g, np.ones(l)]
    (gauge,) = bounds(op, arrays, {"chunk": 64}, None, unit=UNIT, floor=1e-300)
    (y,) = evaluate(op, *arrays, chunk=64)
    assert (gauge.k0 >= 16.7 * np.arange(l)[:, None] * np.abs(y)).all()
    found = by_rows(op.name).forward(*arrays, chunk=64)
    assert max(ratios([gauge], [found], [y])) < 16


def test_sums_of_gates_that_begin_before_the_last_of_many_strong_decays_keep_its_roundings():
    # nine of them: a sum over all has no digits left, one of a chunk of four steps has them
    op, l, unit = operator_named("gated_linear_recurrence_chunked"), 21, 2.0**-24
    ones, log_g = np.ones((l, 1)), np.full((l, 1), -0.02)
    log_g[1:18:2] = -1e4
    arrays = [ones, ones, ones, ones, log_g]
    for chunk in (4, 64):
        gauges = bounds(op, arrays, {"chunk": chunk}, op.bare_vjp, unit=unit, floor=1e-38)
        dk = gauges[1]
        assert dk.k0[18] < 100
        assert 1e4 < second(dk)[18] < 1e7


@pytest.mark.parametrize("unit", [2.0**-24, UNIT])
def test_a_gate_that_has_no_gradient_has_a_bound_of_sums_in_each_type(unit):
    # before the first step there is no state: a program by sums of gates has T − T there
    op, ones = operator_named("gated_delta_rule_chunked"), np.ones((2, 1))
    arrays = [np.array([[1.5], [0.1]]), ones, ones, ones, np.zeros(2), np.array([1.8, 0.5])]
    floor = float(np.finfo(np.float32 if unit > UNIT else np.float64).tiny)
    *_, of_gates, _ = bounds(op, arrays, {"chunk": 16}, op.bare_vjp, unit=unit, floor=floor)
    assert of_gates.value[0] == 0
    assert of_gates.k0[0] < 1e-30
    assert 1 < second(of_gates)[0] < 1e4


def test_a_system_solved_with_exchanged_rows_errs_where_nothing_is_written():
    # β = 0 at the first step; the second and third rows of the system are exchanged
    op, ones, beta = operator_named("delta_rule_chunked"), np.ones((3, 1)), np.array([0, 1.3, 1.7])
    arrays = [ones, ones, ones, ones, beta]
    _, k, v, _ = bounds(op, arrays, {"chunk": 16}, op.bare_vjp, unit=UNIT, floor=1e-300)
    assert k.value[0] == v.value[0] == 0
    assert max(k.k0[0], v.k0[0]) < 1e-290
    assert min(second(k)[0], second(v)[0]) > 1
    arrays[-1] = beta / 2  # no entry of the system is above 1
    _, k, v, _ = bounds(op, arrays, {"chunk": 16}, op.bare_vjp, unit=UNIT, floor=1e-300)
    assert max(second(k)[0], second(v)[0]) < 1e-290


def test_the_norm_of_a_column_does_not_underflow():
    x = np.array([[3e-200, 4e-200]])
    assert Columns([], keyed=False)._norm(x).item() == pytest.approx(5e-200, rel=1e-15)
    assert Columns([], keyed=False)._norm(np.array([0.0, 0.0])) == 0
    assert np.isnan(Columns([], keyed=False)._norm(np.array([np.nan, 1.0]))).all()


@pytest.mark.parametrize(("size", "says_nothing"), [(1e-60, True), (1e-20, False)])
def test_errors_that_single_precision_cannot_hold_say_nothing(size, says_nothing):
    wanted, found = np.array([[0.0], [size]]), np.zeros((2, 1))
    k0 = _units([found], wanted, np.zeros(1), (-1,), 1)
    assert k0 is not None
    assert np.isinf(k0).all() == says_nothing
    assert (size > SMALLEST * SINGLE) != says_nothing


def test_bounds_are_the_same_however_many_steps_are_in_memory(monkeypatch):
    op, rng, l = operator_named("kimi_delta_rule_chunked_stateful"), np.random.default_rng(0), 9
    q, k, v, dy = (rng.standard_normal((l, 2)) for _ in range(4))
    log_g, beta, S0 = -rng.random((l, 2)), rng.random(l), rng.standard_normal((2, 2))
    arrays = [dy, S0, q, k / 4, v, log_g, beta, S0]
    whole = bounds(op, arrays, {"chunk": 4}, op.bare_vjp, unit=UNIT, floor=1e-300)
    monkeypatch.setattr(steps, "WINDOW", 8)
    cut = bounds(op, arrays, {"chunk": 4}, op.bare_vjp, unit=UNIT, floor=1e-300)
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_allclose(one.k0, other.k0, rtol=1e-12, atol=0)


def test_bounds_behind_a_reset_are_those_of_a_sequence_of_its_own():
    columns = Columns(["q", "k", "v", "log_g", "beta"], False, floor=1e-300, unit=UNIT)
    rng, l, cut = np.random.default_rng(1), 7, 3
    dy, q, k, v = (rng.standard_normal((l, 2)) for _ in range(4))
    given = [q, k / 4, v, -rng.random(l), rng.random(l)]
    with tracing(UNIT, 1e-300):
        whole = [as_input(a) for a in given]
        part = [as_input(a[cut:]) for a in given]
        y, S = columns.run(whole, None, np.arange(l) == cut)
        late, end = columns.run(part, None, None)
        *both, _ = columns.back((dy,), whole, None, np.arange(l) == cut)
        *of_late, _ = columns.back((dy[cut:],), part, None, None)
        first = [as_input(a[:cut]) for a in given]
        *of_first, _ = columns.back((dy[:cut],), first, None, None)
    np.testing.assert_allclose(y[:, cut:], late, rtol=1e-12, atol=0)
    np.testing.assert_allclose(S, end, rtol=1e-12, atol=0)
    for one, other in zip(both, of_late, strict=True):
        # the gate of a first step has no gradient: its bound is near the floor
        np.testing.assert_allclose(one[:, cut:], other, rtol=1e-12, atol=1e-290)
    for one, other in zip(both, of_first, strict=True):
        np.testing.assert_allclose(one[:, :cut], other, rtol=1e-12, atol=1e-290)


def test_errors_run_forward_and_back_as_their_recurrences_say():
    rng, l = np.random.default_rng(2), 5
    e, made, by_decay = rng.random((2, 1)), rng.random((2, l, 1)), rng.random((2, l, 1))
    kept, more, strongest, by_w = rng.random((4, l, 1))
    resets = np.arange(l) == 2
    before, after = steps._run(kept, made, more, e, resets)
    now = e
    for t in range(l):
        now = 0 * now if resets[t] else now
        assert (before[:, t] == now).all()
        second = now[1] * kept[t] + made[1, t] + more[t] * now[0]
        now = np.stack([now[0] * kept[t] + made[0, t], second])
        np.testing.assert_allclose(after[:, t], now, rtol=1e-12, atol=0)
    given = made, kept, by_w, strongest, by_decay, more
    of_G, last = steps._run_back(given, e, resets)
    now = e
    for t in reversed(range(l)):
        G = now + made[:, t]
        np.testing.assert_allclose(of_G[:, t], G, rtol=1e-12, atol=0)
        dZ = kept[t] * G + by_w[t]
        now = strongest[t] * dZ + by_decay[:, t] + np.stack([0 * dZ[0], more[t] * dZ[0]])
        now = 0 * now if resets[t] else now
    np.testing.assert_allclose(last, now, rtol=1e-12, atol=0)
