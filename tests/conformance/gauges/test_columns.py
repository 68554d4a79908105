"""What a delta rule may err by where little is left but roundings, and by sums of its gates."""

import numpy as np
import pytest

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges.columns import of_columns
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.gauge import TrackedCall
from refssm.conformance.judging.grading import judge
from refssm.oracle import evaluate

UNIT = 2.0**-24
TINY = float(np.finfo(np.float32).tiny)


def of_values(op, arrays, statics=None):
    return bounds(op, arrays, statics or {}, None, unit=UNIT, floor=TINY)


def test_a_product_of_two_numbers_that_are_roundings_has_a_bound():
    """With equal keys and β = 1 a step leaves a 64th of the state along k; across it, roundings.

    They stay, in the state and in its cotangent: dβ = r·w is a product of two of them.
    """
    op, rng, l, n, p = (
        operator_named("gated_delta_rule_stateful"),
        np.random.default_rng(5),
        60,
        3,
        3,
    )
    key = np.array([0.57284, 0.57284, 0.57284])
    k, q, v = np.tile(key, (l, 1)), np.zeros((l, n)), np.zeros((l, p))
    v[4] = 1e3 * rng.standard_normal(p)
    beta, log_g = np.full(l, 0.999993), np.full(l, -1e-4)
    ends = np.zeros((l, p)), 1e3 * rng.standard_normal((n, p))
    given = [a.astype(np.float32) for a in (*ends, q, k, v, log_g, beta, np.zeros((n, p)))]
    gauges = bounds(op, given, {}, op.bare_vjp, unit=UNIT, floor=TINY)
    dbeta = op.bare_vjp(*given)[4]
    wanted = op.bare_vjp(*(a.astype(np.float64) for a in given))[4]
    error = np.abs(dbeta - wanted)[20:40]
    assert (error > 1e9 * UNIT * np.abs(wanted[20:40])).any()
    assert (error <= 16 * UNIT * gauges[4].k0[20:40]).all()


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


def test_without_sums_of_gates_the_second_gauge_is_the_first():
    op, arrays = operator_named("gated_delta_rule"), case(np.float64)
    (gauge,) = of_values(op, arrays)
    assert gauge.cumulated is not None
    (tight,) = of_columns(TrackedCall(op, arrays, {}, UNIT, TINY))
    assert np.allclose(gauge.cumulated.of_terms(), gauge.k0, rtol=1e-12)
    assert (tight.k0 >= gauge.k0).all()
    assert (gauge.cumulated.whole() > 50 * gauge.k0).any()
    (y,) = evaluate(op, *arrays)
    error = np.abs(by_differences(*(a.astype(np.float32) for a in arrays), chunk=8) - y)
    assert (error <= 16 * UNIT * gauge.cumulated.whole()).all()
    assert (error > 16 * UNIT * gauge.k0).any()
    delta = operator_named("delta_rule")
    assert of_values(delta, [*arrays[:3], arrays[4]])[0].cumulated is None  # it has no gates


def test_an_empty_sequence_has_a_second_gauge():
    op = operator_named("gated_delta_rule")
    (gauge,) = of_values(op, [a[:0] for a in case(np.float64)])
    assert gauge.cumulated is not None
    assert gauge.cumulated.whole().shape == (0, 4)
