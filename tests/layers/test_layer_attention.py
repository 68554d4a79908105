from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import refssm
from refssm import initial
from refssm.layers._parts.softmax import weights
from refssm.layers.attention.attention import ATTENTION_LAYER
from refssm.layers.attention.linear_attention import LINEAR_ATTENTION_LAYER, LinearAttention

U = 2.0**-53


def started(h=3, **options):
    return ATTENTION_LAYER.init(np.random.default_rng(0), h=h, **options)


def drawn(l=6, h=3):
    return np.random.default_rng(1).standard_normal((l, h))


def of_values(p, rows):
    """Σ_heads (rows W_v) W_out, and the size of its terms."""
    y = sum(rows @ V @ W for V, W in zip(p.W_v, p.W_out, strict=True))
    size = sum(np.abs(rows).max() * np.abs(V).sum() * np.abs(W).sum()
               for V, W in zip(p.W_v, p.W_out, strict=True))  # fmt: skip
    return y, size


def test_its_parameters_are_four_maps_of_all_channels_and_a_number_for_each_distance():
    p = started(h=128, heads=4, n=32, p=32, t=64)
    assert sum(a.size for a in p.arrays().values()) == 4 * 128 * 128 + 4 * 64


def test_the_slopes_of_eight_heads_are_those_of_the_paper():
    """1/2, 1/4, …, 1/256."""
    assert np.array_equal(initial.alibi_slopes(8), [2.0**-i for i in range(1, 9)])
    assert np.array_equal(initial.alibi_slopes(4), [1 / 4, 1 / 16, 1 / 64, 1 / 256])


def test_the_slopes_of_twelve_heads_are_those_of_eight_and_every_second_one_of_sixteen():
    powers = [Fraction(i) for i in range(1, 9)] + [Fraction(i, 2) for i in (1, 3, 5, 7)]
    wanted = np.array([2.0 ** -float(i) for i in powers])
    assert np.abs(initial.alibi_slopes(12) - wanted).max() <= 2 * U


def test_alibi_subtracts_the_slope_times_the_distance():
    bias = started(heads=2, t=3, bias="alibi").bias
    assert np.array_equal(bias, [[0, -1 / 16, -1 / 8], [0, -1 / 256, -1 / 128]])
    assert not started(heads=2, t=3).bias.any()


def test_an_unknown_bias_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match="`bias` must be one of zero, alibi, got 'rotary'"):
        started(bias="rotary")


def test_two_steps_by_hand():
    """Scores 0 and log 3: the weights of the second step are 1/4 and 3/4."""
    q, k = np.array([[[0.0], [1.0]]]), np.array([[[0.0], [np.log(3.0)]]])
    w = weights(q, k, np.zeros((1, 2)))
    assert np.abs(w - [[1, 0], [1 / 4, 3 / 4]]).max() <= 8 * U
    late = weights(q, k, np.array([[0.0, np.log(9.0)]]))  # a bias of log 9 at distance 1
    assert np.abs(late - [[1, 0], [3 / 4, 1 / 4]]).max() <= 16 * U


def test_without_queries_it_is_a_running_mean_as_is_linear_attention_without_keys():
    p, u = started(heads=2, n=4, p=3), drawn()
    p = replace(p, W_q=0 * p.W_q)
    y = ATTENTION_LAYER.forward(refssm, p, u)
    wanted, size = of_values(p, np.cumsum(u, axis=0) / np.arange(1, 7)[:, None])
    assert np.abs(y - wanted).max() <= 64 * U * size
    linear = LinearAttention(p.W_q, 0 * p.W_k, p.W_v, p.W_out)
    assert np.abs(y - LINEAR_ATTENTION_LAYER.forward(refssm, linear, u)).max() <= 64 * U * size


def test_a_window_of_one_step_gives_the_values():
    p, u = started(heads=2, n=4, p=3, t=1), drawn()
    wanted, size = of_values(p, u)
    assert np.abs(ATTENTION_LAYER.forward(refssm, p, u) - wanted).max() <= 16 * U * size


def test_a_window_sees_its_steps_and_no_other():
    """The gradient of an output says which inputs it depends on."""
    p, u = started(t=3), drawn(l=7)
    dy = np.zeros((7, 3))
    dy[5] = 1
    _, du = ATTENTION_LAYER.vjp(refssm, dy, p, u)
    assert du.any(axis=-1).tolist() == [False, False, False, True, True, True, False]


def test_a_window_as_long_as_the_signal_is_the_full_causal_mask():
    """Against a softmax with a mask of all pairs, in plain loops."""
    p, u = started(heads=2, n=4, p=3, t=6, bias="alibi"), drawn()
    wanted, size = np.zeros((6, 3)), 0.0
    for i, slope in enumerate((1 / 16, 1 / 256)):
        q, k, v = (u @ W[i] for W in (p.W_q, p.W_k, p.W_v))
        for t in range(6):
            s = [q[t] @ k[j] / 2 - slope * (t - j) for j in range(t + 1)]
            e = np.exp(s)
            wanted[t] += (e @ v[: t + 1] / e.sum()) @ p.W_out[i]
        size += np.abs(v).max() * np.abs(p.W_out[i]).sum()
    # scores below 10 with an error of ten roundings, which a weight takes as its relative error
    assert np.abs(ATTENTION_LAYER.forward(refssm, p, u) - wanted).max() <= 256 * U * size


def test_scores_of_ten_thousand_do_not_overflow():
    """The largest score takes all; a number added to all scores changes nothing."""
    q, k = np.array([[[1.0], [1.0], [-1.0]]]), 1e4 * np.array([[[1.0], [-1.0], [0.0]]])
    w = weights(q, k, np.zeros((1, 3)))
    assert np.array_equal(w, [[[1, 0, 0], [1, 0, 0], [0, 1, 0]]])
    rng = np.random.default_rng(2)
    q, k = rng.integers(-4, 5, (2, 2, 5, 3)).astype(float)
    one, two = (weights(q, k, b) for b in (np.zeros((2, 4)), np.full((2, 4), -(2.0**13))))
    assert np.array_equal(one, two)  # integers: the scores have no rounding


def test_nan_reaches_the_steps_that_read_it_and_no_other():
    p, u = started(t=3), drawn(l=7)
    u[2] = np.nan
    bad = np.isnan(ATTENTION_LAYER.forward(refssm, p, u)).any(axis=-1)
    assert bad.tolist() == [False, False, True, True, True, False, False]


def test_its_cache_holds_the_last_keys_and_values_and_says_which_places_are_empty():
    p, u = started(heads=2, n=4, p=3, t=4), drawn()
    rest = ATTENTION_LAYER.rest(p)
    assert [s.shape for s in rest] == [(2, 4, 4), (2, 4, 3), (4,)]
    _, (K, V, seen) = ATTENTION_LAYER.stateful(refssm, p, u[:3], rest)
    assert seen.tolist() == [0, 1, 1, 1]
    assert not K[:, 0].any()
    assert np.array_equal(K[:, 1:], u[:3] @ p.W_k)
    _, (K, V, seen) = ATTENTION_LAYER.stateful(refssm, p, u[3:], (K, V, seen))
    assert seen.tolist() == [1, 1, 1, 1]
    for cached, W in ((K, p.W_k), (V, p.W_v)):
        assert np.abs(cached - u[2:] @ W).max() <= 8 * U * np.abs(u).max() * np.abs(W).sum()


def test_a_window_without_steps_is_refused():
    p = ATTENTION_LAYER.init(np.random.default_rng(0), h=4, heads=2, n=2, p=2, t=1)
    with pytest.raises(ValueError, match=r"^attention: `bias` has no distances, wanted t ≥ 1$"):
        ATTENTION_LAYER.forward(refssm, replace(p, bias=p.bias[:, :0]), np.ones((3, 4)))
