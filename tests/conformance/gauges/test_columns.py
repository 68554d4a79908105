"""What a delta rule may err by where little is left but roundings, and by sums of its gates."""

import numpy as np
import pytest

from refssm._declaration.adapted import adapted
from refssm.adapters import normalised
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges.columns import of_columns, steps
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.gauge import TrackedCall, as_input
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.judging.grading import judge
from refssm.layers._namespaces import corrected, corrected_from, corrected_vjp
from refssm.oracle import evaluate

UNIT = 2.0**-24
TINY = float(np.finfo(np.float32).tiny)


def of_values(op, arrays, statics=None):
    return bounds(op, arrays, statics or {}, None, unit=UNIT, floor=TINY)


def test_a_product_of_two_numbers_that_are_roundings_has_a_bound():
    """With equal keys and β = 1 a step leaves a 64th of the state along k; across it, roundings.

    They stay, in the state and in its cotangent: dβ = r·w is a product of two of them.
    """
    op, rng = operator_named("gated_delta_rule_stateful"), np.random.default_rng(0)
    l, n, p = 60, 3, 3
    key = rng.standard_normal(n)
    k = np.tile(127 / 128 * key / np.sqrt((key**2).sum()), (l, 1))
    v, zeros, S0 = np.zeros((l, p)), np.zeros((l, n)), rng.standard_normal((n, p))
    v[4] = 1e3 * rng.standard_normal(p)
    beta, log_g = np.full(l, 0.999993), np.full(l, -1e-4)
    ends = zeros, 1e3 * rng.standard_normal((n, p))
    given = [a.astype(np.float32) for a in (*ends, zeros, k, v, log_g, beta, S0)]
    gauges = bounds(op, given, {}, op.bare_vjp, unit=UNIT, floor=TINY)
    dbeta = op.bare_vjp(*given)[4]
    wanted = op.bare_vjp(*(a.astype(np.float64) for a in given))[4]
    error = np.abs(dbeta - wanted)
    assert np.abs(wanted[20:40]).max() < 1e-27  # nothing but the roundings of double precision
    assert error[20:40].max() > 1e-13
    assert (error <= 16 * UNIT * gauges[4].k0).all()


@pytest.mark.parametrize(
    "name",
    ["gated_delta_rule", "kimi_delta_rule", pytest.param("delta_dplr", marks=pytest.mark.long)],
)
def test_gradients_of_gates_may_err_by_sums_of_a_chunk_and_not_of_the_row(name, monkeypatch):
    """Small entries before large ones: a sum over the row has the roundings of the large ones."""
    op, rng, l = operator_named(name), np.random.default_rng(1), 4 * steps.CHUNK
    size = np.where(np.arange(l) < l // 2, 1e-4, 1)[:, None]
    dy, q, k, v = (rng.standard_normal((l, 3)) for _ in range(4))
    k = k / (2 * np.linalg.norm(k, axis=-1, keepdims=True))
    gates = np.full(l if name == "gated_delta_rule" else (l, 3), -1.0)
    others = (-k, k) if name == "delta_dplr" else (np.full(l, 0.5),)
    arrays = [a.astype(np.float32) for a in (dy * size, q, k, v * size, gates, *others)]

    def second_gauge():
        gauge = bounds(op, arrays, {}, op.bare_vjp, unit=UNIT, floor=TINY)[3]
        assert gauge.cumulated is not None
        return gauge.cumulated.whole().reshape(l, -1).max(-1)

    of_chunks = second_gauge()
    monkeypatch.setattr(steps, "CHUNK", l)
    of_row = second_gauge()
    assert (of_chunks[: l // 4] < 1e-4 * of_row[: l // 4]).all()
    assert (of_chunks <= of_row).all()


def by_differences(q, k, v, log_g, beta, *, chunk):
    """One chunk: e^{G_i − G_j} from the sums G of the gates."""
    G, l = np.cumsum(log_g), len(log_g)
    D = np.exp(np.where(np.tri(l, dtype=bool), G[:, None] - G, -np.inf)).astype(q.dtype)
    L = np.tril(beta[:, None] * (k @ k.T) * D, -1)
    u = np.linalg.solve(np.eye(l, dtype=q.dtype) + L, beta[:, None] * v)
    return np.tril(q @ k.T * D) @ u


GATES = [-300.0, -0.01, -0.02, -300.0, -0.03, -0.01, -0.01, -0.5]


def case(dtype, gates=GATES):
    rng, l = np.random.default_rng(1), len(gates)
    q, k, v = rng.standard_normal((3, l, 4))
    k /= 1.01 * np.sqrt((k**2).sum(-1, keepdims=True))
    return [a.astype(dtype) for a in (q, k, v, np.array(gates), rng.uniform(0, 1, l))]


def test_differences_of_sums_of_gates_are_right_in_norm():
    op, arrays = operator_named("gated_delta_rule_chunked"), case(np.float32)
    verdict = judge(op, by_differences, *arrays, chunk=8)
    assert verdict.grade == "N"
    assert judge(op, by_differences, *case(np.float32, [-0.01] * 8), chunk=8).grade == "A"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda *a, chunk: by_differences(*a, chunk=8) * np.float32(1.001),
        lambda q, k, v, g, beta, chunk: by_differences(
            q, k, v, g.astype(np.float16), beta, chunk=8
        ),
        lambda q, k, v, g, beta, chunk: by_differences(q, k, v, np.roll(g, 1), beta, chunk=8),
    ],
    ids=["one in a thousand", "gates of 11 bits", "gates one step late"],
)
def test_the_second_gauge_excuses_nothing_else(wrong):
    op = operator_named("gated_delta_rule_chunked")
    arrays = case(np.float32)
    arrays[3] = arrays[3] * np.float32(1.0007)  # no gate has 11 bits
    assert judge(op, wrong, *arrays, chunk=8).grade in "CF"


def state_by_differences(q, k, v, log_g, beta, S0, *, chunk):
    """The last state of one chunk, e^{G_l − G_j}, and its outputs."""
    del chunk
    G, l = np.cumsum(log_g), len(log_g)
    D = np.exp(np.where(np.tri(l, dtype=bool), G[:, None] - G, -np.inf)).astype(q.dtype)
    L = np.tril(beta[:, None] * (k @ k.T) * D, -1)
    missing = v - np.exp(G)[:, None] * (k @ S0)
    u = np.linalg.solve(np.eye(l, dtype=q.dtype) + L, beta[:, None] * missing)
    y = np.exp(G)[:, None] * (q @ S0) + np.tril(q @ k.T * D) @ u
    return y, np.exp(G[-1]) * S0 + (D[-1][:, None] * k).T @ u


@pytest.mark.parametrize("name", ["gated_delta_rule_chunked_stateful", "gated_delta_rule_stateful"])
def test_the_last_state_may_err_by_differences_of_sums_as_the_outputs_do(name):
    op, (q, k, v, log_g, beta) = operator_named(name), case(np.float32, [-3e3, *[-0.01] * 7])
    k[np.arange(8) != 3] = 0  # one step writes, and none reads what it wrote
    arrays = [q, k, v, log_g, beta, np.ones((4, 4), np.float32)]
    statics = {"chunk": 8} if "chunked" in name else {}
    y, S = (np.asarray(x, np.float64) for x in state_by_differences(*arrays, chunk=8))
    of_y, of_S = bounds(op, arrays, statics, None, unit=UNIT, floor=TINY)
    for found, gauge in ((y, of_y), (S, of_S)):
        assert gauge.cumulated is not None
        error = np.abs(found - gauge.value)
        assert (error <= 16 * UNIT * gauge.cumulated.whole()).all()
        assert (error > 16 * UNIT * gauge.k0).any()


def test_without_sums_of_gates_the_second_gauge_is_the_first():
    op, arrays = operator_named("gated_delta_rule_chunked"), case(np.float64)
    (gauge,) = of_values(op, arrays, {"chunk": 8})
    assert gauge.cumulated is not None
    (tight,) = of_columns(TrackedCall(op, arrays, {"chunk": 8}, UNIT, TINY))
    assert np.allclose(gauge.cumulated.of_terms(), gauge.k0, rtol=1e-12)
    assert (tight.k0 >= gauge.k0).all()
    assert (gauge.cumulated.whole() > 50 * gauge.k0).any()
    (y,) = evaluate(op, *arrays, chunk=8)
    error = np.abs(by_differences(*(a.astype(np.float32) for a in arrays), chunk=8) - y)
    assert (error <= 16 * UNIT * gauge.cumulated.whole()).all()
    assert (error > 16 * UNIT * gauge.k0).any()
    (delta,) = of_values(
        operator_named("delta_rule_chunked"), [*arrays[:3], arrays[4]], {"chunk": 8}
    )
    assert delta.cumulated is not None
    assert np.allclose(delta.cumulated.whole(), delta.k0, rtol=1e-12)  # without gates


def by_solve(q, k, v, beta):
    """One system for all steps; LAPACK exchanges its rows."""
    L = np.tril(beta[:, None] * (k @ k.T), -1)
    return np.tril(q @ k.T) @ np.linalg.solve(np.eye(len(L), dtype=q.dtype) + L, beta[:, None] * v)


def equal_keys(largest, l=40):
    """The first step writes nothing, so its output is 0; later ones have a β up to `largest`."""
    ones = np.ones((l, 1), np.float32)
    beta = np.random.default_rng(0).uniform(0, largest, l).astype(np.float32)
    beta[0] = 0
    return [ones, ones, ones, beta]


def test_a_system_whose_rows_are_exchanged_is_right_in_norm():
    op, arrays = operator_named("delta_rule"), equal_keys(2)
    assert by_solve(*arrays)[0] != 0
    assert judge(op, by_solve, *arrays).grade == "N"
    assert judge(op, lambda *a: by_solve(*a) + np.float32(1e-3), *arrays).grade in "CF"
    # without a β above 1 LAPACK exchanges nothing, and nothing is excused
    assert by_solve(*equal_keys(1))[0] == 0
    assert judge(op, by_solve, *equal_keys(1)).grade == "A"
    assert judge(op, lambda *a: by_solve(*a) + np.float32(1e-12), *equal_keys(1)).grade in "CF"


def test_gradients_through_a_system_whose_rows_are_exchanged_have_a_bound():
    op = operator_named("delta_rule_chunked")
    for largest, more in ((2, True), (1, False)):
        arrays = [np.ones((40, 1), np.float32), *equal_keys(largest)]
        gauges = bounds(op, arrays, {"chunk": 40}, op.bare_vjp, unit=UNIT, floor=TINY)
        for name, gauge in zip(op.inputs, gauges, strict=True):
            assert gauge.cumulated is not None
            larger = gauge.cumulated.whole() / gauge.k0
            assert (larger > 2).any() == more, name


def test_an_empty_sequence_has_a_second_gauge():
    op = operator_named("gated_delta_rule")
    (gauge,) = of_values(op, [a[:0] for a in case(np.float64)])
    assert gauge.cumulated is not None
    assert gauge.cumulated.whole().shape == (0, 4)


def test_sums_from_the_end_count_in_gradients_of_gates_alone():
    op = operator_named("gated_delta_rule")
    arrays = [np.ones((8, 4), np.float32), *case(np.float32, [-0.01] * 8)]
    gauges = bounds(op, arrays, {}, op.bare_vjp, unit=UNIT, floor=TINY)
    for name, gauge in zip(op.inputs, gauges, strict=True):
        assert gauge.cumulated is not None
        larger = gauge.cumulated.of_terms() / gauge.k0
        assert (larger[0] > 2).all() == (name == "log_g"), name
        assert (larger >= 1 - 1e-12).all()


def test_the_gradient_behind_a_norm_may_err_by_the_terms_that_cancel():
    """With n = 1 and θ = 1e3 single precision has k = 1 and dθ = 0 exactly; double rounds k."""
    op = adapted(operator_named("delta_rule"), (normalised(),))
    k = np.full((3, 1), 1e3)
    arrays = [np.ones((3, 2)), np.ones((3, 1)), k, np.full((3, 2), 0.7), np.full(3, 0.5)]
    _, of_k, *_ = bounds(op, arrays, {}, op.bare_vjp, unit=2.0**-53, floor=1e-300)
    natural = [*arrays[:2], k / np.sqrt(k**2 + 1e-6), *arrays[3:]]
    dk = operator_named("delta_rule").bare_vjp(*natural)[1]
    assert (np.abs(of_k.value) < 1e-9 * np.abs(dk / k)).all()
    assert (of_k.k0 > np.abs(dk / k)).all()


def test_a_sum_of_gates_without_digits_counts_as_one_with_few():
    op, arrays = operator_named("gated_delta_rule"), case(np.float64, [-1e9] + [-0.01] * 7)
    (gauge,) = of_values(op, arrays)
    assert gauge.cumulated is not None
    assert (UNIT * gauge.cumulated.whole() <= 64 * gauge.k0).all()


def test_a_delta_rule_inside_a_layer_is_bounded_by_the_columns_of_its_state():
    single = case(np.float32, [-0.01] * 8)
    S0, dy = np.ones((4, 4), np.float32), np.ones((8, 4), np.float32)
    given = [a.astype(float) for a in single]
    with tracing(UNIT, TINY):
        inputs = [as_input(a) for a in single]
        rougher = [Tracked(x.value, 4 * x.errors) for x in inputs]
        found = [corrected(*inputs), *corrected_from(*[*inputs, as_input(S0)])]
        found += corrected_vjp(as_input(dy), *inputs)
        worse = [corrected(*rougher), *corrected_from(*[*rougher, as_input(S0)])]
        worse += corrected_vjp(as_input(dy), *rougher)
    wanted = [corrected(*given), *corrected_from(*[*given, S0]), *corrected_vjp(dy, *given)]
    computed = [corrected(*single), *corrected_from(*[*single, S0]), *corrected_vjp(dy, *single)]
    assert len(found) == len(wanted) == 3 + 5
    for tracked, rough, y, right in zip(found, worse, computed, wanted, strict=True):
        assert np.array_equal(tracked.value, right)
        k0, k1 = np.moveaxis(tracked.errors, -1, 0)
        error = np.abs(y - right)
        assert error.any()
        assert (error <= 16 * UNIT * k0).all()
        assert (k0 <= 1e3 * max(1, np.abs(right).max())).all()
        assert (k1 >= k0).all()
        assert (rough.errors[..., 1] >= k1).all()
        assert (rough.errors[..., 1] > k1).any()


def test_a_layer_may_compute_the_gradient_of_a_gate_by_a_sum_over_all_later_steps():
    """From rest the first gate does nothing, and its gradient is 0; a program that sums the
    gradients of sums of gates from the end has its roundings there, as transformers' Qwen3-Next."""
    single = case(np.float32, [-0.01] * 8)
    dy = np.ones((8, 4), np.float32)
    with tracing(UNIT, TINY):
        dlog_g = corrected_vjp(as_input(dy), *[as_input(a) for a in single])[3]
    k0, k1 = np.moveaxis(dlog_g.errors, -1, 0)
    assert dlog_g.value[0] == 0
    assert k1[0] >= np.abs(dlog_g.value).max() > 0
    assert k0[0] < UNIT * k1[0]


@pytest.mark.parametrize(
    "name", ["delta_rule", "gated_delta_rule", "kimi_delta_rule", "delta_dplr"]
)
def test_a_chunk_may_round_its_sums_where_the_first_step_takes_away_all_of_the_state(name):
    """With n = 1 and β k² = 1 no step leaves anything of the state: dS0 is 0, and so is what its
    columns lose. A chunk subtracts two sums of its outputs' cotangents after it has added them."""
    op, rng = operator_named(f"{name}_chunked_stateful"), np.random.default_rng(0)
    l = 33
    one, gates = np.ones((l, 1)), {"delta_rule": [], "gated_delta_rule": [np.zeros(l)]}
    middle = [
        *gates.get(name, [np.zeros((l, 1))]),
        *([-one, one] if "dplr" in name else [one[:, 0]]),
    ]
    dy, q = rng.standard_normal((2, l, 1))
    given = [dy, np.zeros((1, 1)), q, one, one, *middle, np.ones((1, 1))]
    gauge = bounds(op, given, {"chunk": 5}, op.bare_vjp, unit=2.0**-53, floor=1e-300)[-1]
    sums = np.cumsum((q * dy)[::-1])
    assert gauge.value == 0
    assert np.abs(sums).max() / 4 <= gauge.k0 <= 64 * np.abs(sums).max()
