from itertools import product

import numpy as np
import pytest

import refssm
from refssm.jit.linear_attention import chunked as compiled
from refssm.linear_attention.chunked import CHUNKED, GATED_DELTA_CHUNKED, KIMI_CHUNKED
from refssm.linear_attention.chunks import Chunk, chunk_of

LENGTHS = (1, 2, 15, 16, 17, 63, 64, 65, 129)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each_recurrence = pytest.mark.parametrize("recurrence", CHUNKED, ids=lambda r: r.name)


def arguments(recurrence, l, n=5, p=3, seed=0):
    """Arguments of a form from rest, of heads that share queries and keys."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 2, 1, l, n))
    drawn = {"q": q, "k": k / np.linalg.norm(k, axis=-1, keepdims=True)}
    drawn |= {"v": rng.standard_normal((2, 2, l, p)), "beta": rng.uniform(0, 2, (2, 2, l))}
    log_g = -rng.exponential(0.1, (2, 2, l, n))
    drawn["log_g"] = log_g if recurrence in (CHUNKED[0], KIMI_CHUNKED) else log_g[..., 0]
    return [drawn[name] for name in recurrence.inputs]


def alike(found, wanted):
    """All within a few hundred roundings of the largest number."""
    pairs = zip(found, wanted, strict=True)
    return all(np.abs(x - y).max() <= 2**-44 * max(1, np.abs(y).max()) for x, y in pairs)


@each_role
@each_recurrence
def test_chunks_of_any_size_are_the_recurrence(recurrence, role):
    op, of_steps = recurrence.operators[0], recurrence.same_as.operators[0]
    for l, chunk in product(LENGTHS, (1, 16, 64)):
        given = arguments(recurrence, l)
        y = op.implementation(role)(*given, chunk=chunk)
        assert alike([y], [of_steps.reference(*given)]), (l, chunk)


@each_role
@each_recurrence
def test_gradients_by_chunks_are_those_of_the_recurrence(recurrence, role):
    op, of_steps = recurrence.operators[0], recurrence.same_as.operators[0]
    for l in LENGTHS:
        given = arguments(recurrence, l)
        dy = np.random.default_rng(1).standard_normal(given[2].shape)
        found, wanted = op.vjp(role)(dy, *given, chunk=16), of_steps.bare_vjp(dy, *given)
        assert alike(found, wanted), l


@pytest.mark.long
@each_role
def test_orthogonal_keys_recall_their_values(role):
    k, v = np.eye(4), np.arange(8.0).reshape(4, 2)
    run = GATED_DELTA_CHUNKED.operators[1].implementation(role)
    q, k, v = (np.concatenate([x] * 5) for x in (np.roll(k, 1, axis=0), k, v))
    y, S = run(q, k, v, np.zeros(20), np.ones(20), np.zeros((4, 2)), chunk=16)
    assert np.array_equal(S, v[:4])
    assert np.array_equal(y[4:], np.roll(v, 1, axis=0)[4:])


@each_role
def test_one_key_with_rate_two_is_reflected_at_every_step(role):
    k, v = np.full((70, 4), 0.5), np.ones((70, 1))
    run = KIMI_CHUNKED.operators[0].implementation(role)
    y = run(k, k, v, np.zeros((70, 4)), np.full(70, 2.0), chunk=64)
    assert np.array_equal(y.ravel(), np.tile([2.0, 0.0], 35))


@pytest.mark.long
@each_role
@pytest.mark.parametrize("recurrence", [GATED_DELTA_CHUNKED, KIMI_CHUNKED], ids=lambda r: r.name)
def test_a_step_of_minus_ten_thousand_forgets_and_costs_no_digits(recurrence, role):
    op = recurrence.operators[0]
    q, k, v, log_g, beta = arguments(recurrence, 64)
    log_g[:, :, 20] = -1e4
    y = op.implementation(role)(q, k, v, log_g, beta, chunk=64)
    later = [x[..., 20:, :] for x in (q, k, v)]
    gates = log_g[:, :, 20:]
    wanted = op.reference(*later, gates, beta[..., 20:], chunk=64)
    assert alike([y[..., 20:, :]], [wanted])
    gradients = op.vjp(role)(np.ones_like(y), q, k, v, log_g, beta, chunk=64)
    assert not gradients[3][:, :, 20].any()


@each_role
@each_recurrence
def test_nan_reaches_no_earlier_step_and_passes_no_reset(recurrence, role):
    given = arguments(recurrence, 48)
    given[2][..., 30, :] = np.nan
    resets = np.arange(48) == 40
    y = recurrence.operators[2].implementation(role)(*given, resets, chunk=16)
    assert np.isnan(y[..., 30, :]).all()
    assert np.isfinite(y[..., :30, :]).all()
    assert np.isfinite(y[..., 40:, :]).all()


@each_recurrence
def test_sequences_of_one_chunk_with_overflowing_products_are_as_alone(recurrence):
    given = arguments(recurrence, 64)
    names = tuple(recurrence.inputs)
    q, k, v = (given[names.index(name)] for name in "qkv")
    k[..., 40:, :], v[..., 40:, :] = 1e150, 1e-200
    q[..., :40, :] *= 1e200
    q[..., 40:, :] = 1e-200
    if "beta" in names:
        given[names.index("beta")][..., 40:] = 0.0
    op = recurrence.operators[2].implementation("jit")
    y = op(*given, np.arange(64) == 40, chunk=64)
    first = [x[..., :40, :] if x.shape[-2] == 64 else x[..., :40] for x in given]
    alone = op(*first, np.zeros(40, bool), chunk=64)
    assert alike([y[..., :40, :] / 1e200], [alone / 1e200])


@each_recurrence
def test_heads_that_share_keys_and_queries_are_as_heads_with_copies(recurrence):
    op, given = recurrence.operators[2], arguments(recurrence, 130)
    resets = np.isin(np.arange(130), (40, 100))
    dy = np.random.default_rng(1).standard_normal(given[2].shape)
    names = tuple(recurrence.inputs)
    copies = list(given)
    for name in "qk":
        copies[names.index(name)] = np.repeat(given[names.index(name)], 2, axis=1)
    run, back = op.implementation("jit"), op.vjp("jit")
    assert alike([run(*given, resets, chunk=64)], [run(*copies, resets, chunk=64)])
    *wanted, _ = back(dy, *copies, resets, chunk=64)
    for name in "qk":
        place = names.index(name)
        wanted[place] = wanted[place].sum(1, keepdims=True)
    *found, _ = back(dy, *given, resets, chunk=64)
    assert alike(found, wanted)


def test_w_of_one_gate_is_that_without_gates_times_the_decay_from_the_start():
    rng = np.random.default_rng(0)
    k, beta, log_g = rng.standard_normal((8, 3)), rng.random(8), -rng.random(8)
    k, G = k / np.linalg.norm(k, axis=-1, keepdims=True), np.cumsum(log_g)
    products = np.tril(beta[:, None] * (k @ k.T), -1)
    decays = np.exp(G[:, None] - G)
    W = np.linalg.solve(np.eye(8) + decays * products, (beta * np.exp(G))[:, None] * k)
    bare = np.linalg.solve(np.eye(8) + products, beta[:, None] * k)
    assert np.abs(W - np.exp(G)[:, None] * bare).max() < 2**-48
    # what a step writes from rest is U: the state before is missing
    v = rng.standard_normal((8, 2))
    chunk = Chunk(k, k, v, log_g[:, None], beta, np.zeros(8, bool))
    _, u, _ = chunk_of(chunk, np.zeros((3, 2)))
    U = np.linalg.solve(np.eye(8) + decays * products, beta[:, None] * v)
    assert np.abs(u - U).max() < 2**-48


def test_compiled_gradients_in_spans_are_those_in_one(monkeypatch):
    given = arguments(KIMI_CHUNKED, 200)
    dy = np.random.default_rng(1).standard_normal(given[2].shape)
    whole = compiled.kimi_delta_rule_chunked_vjp(dy, *given, chunk=64)
    monkeypatch.setattr(compiled, "SPAN", 64)
    assert alike(compiled.kimi_delta_rule_chunked_vjp(dy, *given, chunk=64), whole)


@pytest.mark.parametrize("chunk", [0, -1, 1.5])
def test_a_chunk_that_is_no_whole_number_above_zero_is_refused(chunk):
    one = [[1.0]]
    with pytest.raises(ValueError, match="delta_rule_chunked: `chunk` must be an integer >= 1"):
        refssm.delta_rule_chunked(one, one, one, [1.0], chunk=chunk)
