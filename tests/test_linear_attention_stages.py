"""Facts about the stages of a chunk: composition, two steps by hand, strong decays, equal keys."""

import numpy as np
import pytest

import refssm
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.judging.expected import expect, unit_roundoff
from refssm.domains import writes_of_states
from refssm.linear_attention import CHUNK_INVERSE

STEPS, CHUNK = 8, 4


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def composed(q, k, v, log_g, beta, S, chunk):
    """The outputs and the last state, stage by stage."""
    q, k, v, log_g, beta = (x.reshape(-1, chunk, *x.shape[1:]) for x in (q, k, v, log_g, beta))
    g = refssm.chunk_gates(log_g)
    X = refssm.chunk_inverse(refssm.chunk_products(k, g, beta))
    w, u = refssm.chunk_writes(k, v, g, beta, X)
    states, new, last = refssm.chunk_states(k, w, u, g, S)
    y = refssm.chunk_outputs(q, k, new, g, states)
    return y.reshape(-1, y.shape[-1]), last


def composed_keyed(q, k, v, log_g, beta, S, chunk):
    """The same with a gate for each key."""
    q, k, v, log_g, beta = (x.reshape(-1, chunk, *x.shape[1:]) for x in (q, k, v, log_g, beta))
    g = np.swapaxes(refssm.chunk_gates(np.swapaxes(log_g, -1, -2)), -1, -2)
    X = refssm.chunk_inverse(refssm.chunk_products_keyed(k, g, beta))
    w, u = refssm.chunk_writes_keyed(k, v, g, beta, X)
    states, new, last = refssm.chunk_states_keyed(k, w, u, g, S)
    y = refssm.chunk_outputs_keyed(q, k, new, g, states)
    return y.reshape(-1, y.shape[-1]), last


def exact_arguments(rng, keyed=False):
    """Whole numbers, keys of one entry, rates 0, 1 and 2: no sum or product rounds."""
    k = np.eye(3)[rng.integers(3, size=STEPS)] * rng.choice([-1.0, 1.0], (STEPS, 1))
    q, v = rng.integers(-3, 4, (STEPS, 3)) * 1.0, rng.integers(-3, 4, (STEPS, 2)) * 1.0
    log_g = np.zeros((STEPS, 3) if keyed else STEPS)
    return q, k, v, log_g, rng.integers(3, size=STEPS) * 1.0, rng.integers(-3, 4, (3, 2)) * 1.0


@pytest.mark.parametrize("chunk", [1, 2, 4, 8])
def test_the_stages_one_after_the_other_are_the_gated_delta_rule_exactly(chunk, rng):
    arguments = exact_arguments(rng)
    y, last = composed(*arguments, chunk)
    wanted = refssm.gated_delta_rule_chunked_stateful(*arguments, chunk=chunk)
    np.testing.assert_array_equal(y, wanted[0])
    np.testing.assert_array_equal(last, wanted[1])


@pytest.mark.parametrize("chunk", [1, 2, 4, 8])
def test_the_keyed_stages_one_after_the_other_are_the_kimi_delta_rule_exactly(chunk, rng):
    arguments = exact_arguments(rng, keyed=True)
    arguments[3][5, 1] = -1e4  # one key forgets all
    y, last = composed_keyed(*arguments, chunk)
    wanted = refssm.kimi_delta_rule_chunked_stateful(*arguments, chunk=chunk)
    np.testing.assert_array_equal(y, wanted[0])
    np.testing.assert_array_equal(last, wanted[1])


@pytest.mark.parametrize("stage", ["products", "writes", "states", "outputs"])
def test_a_keyed_stage_with_the_same_gate_for_all_keys_is_the_one_of_heads(stage):
    op, keyed = (operator_named(f"chunk_{stage}{kind}") for kind in ("", "_keyed"))
    arrays = ordinary_case(op, "float64").arrays
    n = arrays[0].shape[-1]
    place = [*op.inputs].index("g")
    wide = [np.repeat(x[..., None], n, -1) if i == place else x for i, x in enumerate(arrays)]
    expected, found = expect(op, arrays), keyed.reference(*wide)
    found = found if isinstance(found, tuple) else (found,)
    for y, gauge in zip(found, expected, strict=True):
        assert (np.abs(y - gauge.value) <= 16 * unit_roundoff(y.dtype) * gauge.k0).all()


def test_the_stages_agree_with_the_recurrence_where_a_step_forgets_all(rng):
    q, k, v, log_g, beta, S = exact_arguments(rng)
    log_g[5] = -1e4  # in the second chunk, of which the first step is kept exactly
    y, last = composed(q, k, v, log_g, beta, S, CHUNK)
    wanted = refssm.gated_delta_rule_stateful(q, k, v, log_g, beta, S)
    np.testing.assert_array_equal(y, wanted[0])
    np.testing.assert_array_equal(last, wanted[1])


def test_two_steps_by_hand():
    k, v = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.0], [3.0]])
    beta, half = np.array([1.0, 2.0]), np.log(0.5)
    g = refssm.chunk_gates([0.0, half])
    L = refssm.chunk_products(k, g, beta)
    assert L[1, 0].round(15) == 2 * 0.5 * 0.5
    X = refssm.chunk_inverse([[0.0, 0.0], [0.5, 0.0]])
    np.testing.assert_array_equal(X, [[1, 0], [-0.5, 1]])
    w, u = refssm.chunk_writes(k, v, np.zeros(2), beta, X)
    np.testing.assert_array_equal(w, [[1, 0], [2 * 0.5 - 0.5, 1]])
    np.testing.assert_array_equal(u, [[1], [2 * 3 - 0.5]])


def test_decays_whose_reciprocals_overflow_have_no_infinity():
    k = np.ones((3, 1), np.float32)
    g = refssm.chunk_gates(np.array([0, -200, -1], np.float32))
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(-g[1]))  # e^{−G} in single precision
    L = refssm.chunk_products(k, g, np.ones(3, np.float32))
    np.testing.assert_array_equal(L[1:, 0], [0, 0])
    assert L[2, 1] == np.exp(np.float32(-1))
    y = refssm.chunk_outputs(k, k, k, g, np.zeros((1, 1), np.float32))
    assert np.isfinite(y).all()
    assert y[1, 0] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_inverse_of_the_same_key_at_all_steps_has_no_entry_above_two(dtype):
    L = np.tril(np.full((64, 64), 2, dtype), -1)
    steps = np.arange(64)
    wanted = np.where(steps[:, None] > steps, 2.0 * (-1.0) ** (steps[:, None] - steps), np.eye(64))
    np.testing.assert_array_equal(refssm.chunk_inverse(L), wanted)


def test_powers_of_the_same_key_are_far_larger_than_the_inverse():
    L = np.tril(np.full((64, 64), 2.0), -1)
    assert np.abs(np.linalg.matrix_power(L, 32)).max() > 1e27


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_no_entry_of_the_inverse_is_above_two_for_keys_of_the_domain(rate, rng):
    k = rng.standard_normal((20, 32, 5))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    L = refssm.chunk_products(k, np.zeros((20, 32)), np.full((20, 32), rate))
    (X,) = expect(CHUNK_INVERSE, [L])
    assert (np.abs(X.value) <= 2 + 16 * unit_roundoff(L.dtype) * X.k1).all()


def test_the_inverse_does_not_read_the_diagonal_or_above(rng):
    L = rng.uniform(-1, 1, (5, 5))
    X = refssm.chunk_inverse(L)
    np.testing.assert_array_equal(X, refssm.chunk_inverse(np.tril(L, -1)))
    (dL,) = refssm.chunk_inverse_vjp(np.ones((5, 5)), L)
    assert not np.triu(dL).any()
    (expected,) = expect(CHUNK_INVERSE, [L])
    assert (np.abs(X - expected.value) <= 16 * unit_roundoff(L.dtype) * expected.k0).all()


def test_writes_read_the_inverse_up_to_its_diagonal(rng):
    k, v, X = (rng.uniform(-1, 1, shape) for shape in ((4, 3), (4, 2), (4, 4)))
    g, beta = np.zeros(4), np.ones(4)
    for one, other in zip(
        refssm.chunk_writes(k, v, g, beta, X),
        refssm.chunk_writes(k, v, g, beta, np.tril(X)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_chunks_without_steps_and_no_chunks_keep_the_state():
    S = np.array([[2.0, 3.0]])
    for m, l in ((2, 0), (0, 3)):
        shape = (m, l)
        states, new, last = refssm.chunk_states(
            np.ones((*shape, 1)), np.ones((*shape, 1)), np.ones((*shape, 2)), np.zeros(shape), S
        )
        assert states.shape == (m, 1, 2)
        assert new.shape == (m, l, 2)
        np.testing.assert_array_equal(last, S)


def test_short_rows_keep_the_state_bounded_over_many_chunks(rng):
    m, l, n = 200, 4, 3
    k = np.ones((m, l, n)) / np.sqrt(n)
    assert writes_of_states.fit is not None
    w = writes_of_states.fit(-k)  # the worst rows: each chunk adds to what is there
    zero = np.zeros((m, l, 1))
    *_, last = refssm.chunk_states(k, w, zero, np.zeros((m, l)), np.ones((n, 1)))
    assert np.linalg.norm(last) <= np.e * np.sqrt(n)
    assert np.linalg.norm(last) > 2 * np.sqrt(n)
