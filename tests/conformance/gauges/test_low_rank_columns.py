"""What the rule with a low-rank transition may err by where decays are differences of sums."""

import numpy as np
import pytest

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges.columns import of_columns
from refssm.conformance.gauges.gauge import TrackedCall
from refssm.conformance.judging.grading import judge

UNIT = 2.0**-24
TINY = float(np.finfo(np.float32).tiny)
CLOSED = -300.0


def by_differences(q, k, v, log_g, a, b, *, chunk):
    """Chunks in which a term of step j comes to step i by e^{G_i − G_j}, with sums G of gates."""
    S, y = np.zeros((k.shape[-1], v.shape[-1]), k.dtype), []
    for first in range(0, len(v), chunk):
        w = slice(first, first + chunk)
        more, S = of_chunk([x[w] for x in (q, k, v, log_g, a, b)], S)
        y.append(more)
    return np.concatenate(y)


def of_chunk(given, S):
    """The outputs of a chunk, and the state after it."""
    q, k, v, log_g, a, b = given
    G = np.cumsum(log_g, axis=0)
    before = np.concatenate([0 * G[:1], G[:-1]])
    i, j = np.ogrid[: len(v), : len(v)]

    def weights(x, sums, seen, keys):
        gaps = np.where(seen[..., None], sums[:, None] - G, -np.inf)
        return np.einsum("in,ijn,jn->ij", x, np.exp(gaps), keys)

    A = weights(a, before, i > j, b)
    z = (np.exp(before) * a) @ S + weights(a, before, i > j, k) @ v
    for t in range(1, len(v)):
        z[t] += A[t, :t] @ z[:t]
    y = (np.exp(G) * q) @ S + weights(q, G, i >= j, k) @ v + weights(q, G, i >= j, b) @ z
    left = np.exp(G[-1] - G)
    return y, np.exp(G[-1])[:, None] * S + (left * k).T @ v + (left * b).T @ z


def case(log_g, seed=1, n=4):
    """A head of RWKV-7 with these gates, (l, n) or (l)."""
    rng, l = np.random.default_rng(seed), len(log_g)
    q, k, v, key = rng.standard_normal((4, l, n))
    key /= np.sqrt((key**2).sum(-1, keepdims=True))
    gates = np.broadcast_to(np.reshape(log_g, (l, -1)), (l, n))
    given = q, k, v, gates, -key, key * rng.uniform(0, 1, (l, n))
    return [x.astype(np.float32) for x in given]


def closing(l=40):
    """Gates that forget little, but two that close, after which the sums of gates are large."""
    log_g = -0.05 * np.random.default_rng(0).random((l, 4))
    log_g[[0, l // 2]] = CLOSED
    return log_g


@pytest.mark.parametrize("name", ["delta_dplr", "delta_dplr_chunked"])
def test_differences_of_sums_of_gates_are_right_in_norm(name):
    op, arrays = operator_named(name), case(closing())
    statics = {"chunk": 16} if op.parameters else {}
    verdict = judge(op, lambda *x, **_: by_differences(*x, chunk=40), *arrays, **statics)
    assert verdict.grade == "N"
    assert judge(op, lambda *x, **_: by_differences(*x, chunk=1), *arrays, **statics).grade == "A"


@pytest.mark.parametrize("strongest", [1e-4, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("chunk", [16, 64, 128])
def test_any_chunk_of_128_steps_passes_and_a_hundredth_more_does_not(strongest, chunk):
    op, rng = operator_named("delta_dplr"), np.random.default_rng(chunk)
    arrays = case(-strongest * rng.random((140, 3)) ** 4, n=3)
    arrays[3][rng.integers(140)] = -30.0
    found = by_differences(*arrays, chunk=chunk)
    assert judge(op, lambda *_: found, *arrays).ok
    largest = np.abs(found) == np.abs(found).max()
    wrong = np.where(largest, found * np.float32(1.01), found)
    assert judge(op, lambda *_: wrong, *arrays).grade in "CF"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda *x, chunk: by_differences(*x, chunk=40) * np.float32(1.001),
        lambda q, k, v, g, a, b, chunk: by_differences(
            q, k, v, g.astype(np.float16), a, b, chunk=40
        ),
        lambda q, k, v, g, a, b, chunk: by_differences(q, k, v, np.roll(g, 1, 0), a, b, chunk=40),
    ],
    ids=["one in a thousand", "gates of 11 bits", "gates one step late"],
)
def test_the_second_gauge_excuses_nothing_else(wrong):
    arrays = case(closing() * 1.0007)  # no gate has 11 bits
    assert judge(operator_named("delta_dplr_chunked"), wrong, *arrays, chunk=16).grade in "CF"


def test_a_key_that_forgets_has_errors_of_its_own():
    """The sums of its gates are large; those of the other keys, and what they read, are not."""
    gates = np.full((64, 4), -1e-3)
    few = case(gates)
    gates[:, 0] = -3.0
    more = case(gates)
    for arrays in (few, more):  # nothing is exchanged between keys
        arrays[4] = arrays[5] = np.zeros_like(arrays[4])
        arrays[0][:, 0] = 0  # and the first is not read
    op = operator_named("delta_dplr_chunked")
    of_few, of_more = (
        of_columns(TrackedCall(op, arrays, {"chunk": 64}, UNIT, TINY), "whole")[0].k1
        for arrays in (few, more)
    )
    assert (of_more <= 1.1 * of_few).all()
