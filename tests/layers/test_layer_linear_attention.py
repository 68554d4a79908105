from dataclasses import replace

import numpy as np

import refssm
from refssm.layers.attention.linear_attention import LINEAR_ATTENTION_LAYER, features

U = 2.0**-53


def started(h=3, **sizes):
    return LINEAR_ATTENTION_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def heads_of(p, u):
    """Queries, keys and values of each head."""
    return zip(*([u @ M for M in W] for W in (p.W_q, p.W_k, p.W_v)), strict=True)


def test_its_parameters_are_four_maps_of_all_channels():
    p = started(h=128, heads=4, n=32, p=32)
    assert sum(a.size for a in p.arrays().values()) == 4 * 128 * 128


def test_its_features_are_elu_plus_one():
    x = np.array([2.0, 0.0, -1.0, -800.0])
    assert np.array_equal(features(x), [3.0, 1.0, np.exp(-1.0), 0.0])


def test_with_equal_scores_it_is_a_running_mean():
    """W_k = 0 gives φ(k) = 1 at all steps: each earlier value has the same weight."""
    p = started(heads=2, n=4, p=3)
    p = replace(p, W_k=0 * p.W_k)
    u = np.random.default_rng(1).standard_normal((6, 3))
    mean = np.cumsum(u, axis=0) / np.arange(1, 7)[:, None]
    wanted = sum(mean @ V @ W for V, W in zip(p.W_v, p.W_out, strict=True))
    size = sum(np.abs(u).max() * np.abs(V).sum() * np.abs(W).sum()
               for V, W in zip(p.W_v, p.W_out, strict=True))  # fmt: skip
    assert np.abs(LINEAR_ATTENTION_LAYER.forward(refssm, p, u) - wanted).max() <= 32 * U * size


def test_it_is_a_weighted_mean_over_all_earlier_steps():
    """y_t = Σ_s w_ts v_s / Σ_s w_ts, w_ts = φ(q_t) · φ(k_s), in plain loops."""
    p, u = started(heads=2, n=4, p=3), np.random.default_rng(1).standard_normal((6, 3))
    wanted, size = np.zeros((6, 3)), 0.0
    for (q, k, v), W in zip(heads_of(p, u), p.W_out, strict=True):
        for t in range(6):
            w = [features(q[t]) @ features(k[s]) for s in range(t + 1)]
            wanted[t] += sum(w_s * v[s] for s, w_s in enumerate(w)) / sum(w) @ W
        size += np.abs(v).max() * np.abs(W).sum()
    # all weights are positive: a sum of six, a quotient, and products of at most four numbers
    assert np.abs(LINEAR_ATTENTION_LAYER.forward(refssm, p, u) - wanted).max() <= 64 * U * size


def test_its_first_output_is_the_first_value_whatever_queries_and_keys_are():
    p, u = started(heads=2), np.random.default_rng(1).standard_normal((1, 3))
    wanted = sum(u @ V @ W for V, W in zip(p.W_v, p.W_out, strict=True))
    size = np.abs(u).max() * np.abs(p.W_v).sum() * np.abs(p.W_out).max()
    assert np.abs(LINEAR_ATTENTION_LAYER.forward(refssm, p, u) - wanted).max() <= 16 * U * size


def test_its_state_is_the_sum_of_outer_products_and_of_features():
    p, u = started(heads=2, n=4, p=3), np.random.default_rng(1).standard_normal((6, 3))
    _, (S, z) = LINEAR_ATTENTION_LAYER.stateful(refssm, p, u, LINEAR_ATTENTION_LAYER.rest(p))
    for i, (_, k, v) in enumerate(heads_of(p, u)):
        size = np.abs(v).T @ features(k)
        assert (np.abs(S[i] - v.T @ features(k)) <= 32 * U * size.max()).all()
        assert (np.abs(z[i] - features(k).sum(0)) <= 32 * U * features(k).sum(0)).all()
