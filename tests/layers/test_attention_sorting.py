"""Sinkhorn sorting, SORTCUT and cascade pruning: limits, equalities with attention, messages."""

from itertools import permutations

import numpy as np
import pytest

from refssm.layers._parts.softmax import attended, weights
from refssm.layers.attention.pruning import head_importance, pruned, step_importance
from refssm.layers.attention.sorting import (
    sinkhorn,
    sortcut_attention,
    sorted_attention,
    sorted_blocks,
)

U = 2.0**-53
RNG = np.random.default_rng


def drawn(l=12, n=3, p=2, seed=0):
    rng = RNG(seed)
    return rng.standard_normal((l, n)), rng.standard_normal((l, n)), rng.standard_normal((l, p))


def full(q, k, v):
    """Attention over all keys, by sums."""
    y = []
    for q_i in q:
        w = np.exp(np.array([q_i @ k_j for k_j in k]) / np.sqrt(len(q_i)))
        y.append(sum(w_j * v_j for w_j, v_j in zip(w, v, strict=True)) / w.sum())
    return np.array(y)


def allowed(q, k, v):
    """Rounding errors of scores (n products and a few), their exponentials, and a mean of m values.

    A score s of size up to |q||k| moves e^s by its own rounding error.
    """
    sizes = np.abs(q).max() * np.abs(k).max() * q.shape[-1]
    return 4 * (len(k) + (q.shape[-1] + 4) * (1 + sizes)) * U * np.abs(v).max()


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_all_rows_and_columns_of_the_limit_sum_to_one(size):
    P = sinkhorn(RNG(size).standard_normal((3, size, size)), rounds=200)
    assert (P > 0).all()
    for axis in (-1, -2):  # the steps converge geometrically; a sum has a rounding for each term
        assert np.abs(P.sum(axis) - 1).max() <= 8 * size * U


def test_each_round_brings_the_rows_nearer_to_one():
    R = RNG(0).standard_normal((6, 6))
    away = [np.abs(sinkhorn(R, rounds=r).sum(-1) - 1).max() for r in (1, 3, 9)]
    assert away[0] > 2 * away[1] > 4 * away[2] > 0


def test_what_is_a_product_of_a_row_and_a_column_is_uniform_in_the_limit():
    a, b = RNG(1).standard_normal((2, 4))
    P = sinkhorn(a[:, None] + b)
    assert np.abs(P - 1 / 4).max() <= 64 * U  # the first round finds it; each has some roundings


@pytest.mark.parametrize("seed", range(5))
def test_at_a_low_temperature_the_best_permutation_is_recovered(seed):
    size = 5
    order = RNG(seed).permutation(size)
    R = 0.3 * RNG(seed).random((size, size))
    R[np.arange(size), order] += 1
    best = max(permutations(range(size)), key=lambda s: R[np.arange(size), list(s)].sum())
    P = sinkhorn(R, temperature=0.01, rounds=200)
    # other permutations have sums lower by 2 · 0.7 at least: e^{−140} of the weight, below u
    assert np.array_equal(best, order)
    assert np.abs(P - np.eye(size)[order]).max() <= 8 * size * U


def test_scores_of_any_size_do_not_overflow():
    P = sinkhorn(1e5 * np.eye(3) - 1e5)
    assert np.array_equal(P, np.eye(3))


def test_a_permutation_moves_whole_blocks():
    x, order = np.arange(24.0).reshape(2, 6, 2), [2, 0, 1]
    moved = sorted_blocks(x, np.eye(3)[order])
    assert np.array_equal(moved, x[:, [4, 5, 0, 1, 2, 3]])


def test_sortcut_of_all_blocks_is_attention_for_any_permutation():
    q, k, v = drawn()
    P = np.eye(4)[[3, 1, 0, 2]]
    ours = sortcut_attention(q, k, v, P, cut=4)
    assert np.abs(ours - full(q, k, v)).max() <= allowed(q, k, v)


def test_sortcut_reads_the_first_sorted_blocks_and_no_others():
    q, k, v = drawn()
    P = np.eye(4)[[3, 1, 0, 2]]
    kept = [9, 10, 11, 3, 4, 5]  # blocks 3 and 1
    ours = sortcut_attention(q, k, v, P, cut=2)
    assert np.abs(ours - full(q, k[kept], v[kept])).max() <= allowed(q, k, v)
    assert np.abs(ours - full(q, k, v)).max() > 1e6 * allowed(q, k, v)


def test_sorted_attention_reads_the_own_block_and_the_one_at_its_place():
    q, k, v = drawn()
    order = [2, 3, 1, 0]
    ours = sorted_attention(q, k, v, np.eye(4)[order])
    for i, j in enumerate(order):
        own, other = np.arange(3 * i, 3 * i + 3), np.arange(3 * j, 3 * j + 3)
        there = [*own, *other]
        wanted = full(q[own], k[there], v[there])
        assert np.abs(ours[own] - wanted).max() <= allowed(q, k, v)


def test_blocks_that_stay_in_place_make_attention_in_blocks():
    q, k, v = drawn()
    ours = sorted_attention(q, k, v, np.eye(4))
    wanted = [full(q[i : i + 3], k[i : i + 3], v[i : i + 3]) for i in range(0, 12, 3)]
    assert np.abs(ours - np.concatenate(wanted)).max() <= allowed(q, k, v)


def test_importance_is_what_is_attended_to_and_what_is_given():
    w = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]])  # two heads and queries
    assert step_importance(w).tolist() == [1.75, 2.25]
    y = np.array([[[1.0, -2.0]], [[0.5, 0.0]]])
    assert head_importance(y).tolist() == [3.0, 0.5]
    q, k, _ = drawn(l=6)
    all_of = step_importance(weights(q[None], k[None], np.zeros((1, 6))))
    assert abs(all_of.sum() - 6) <= 6 * 6 * U  # the weights of each of six queries sum to 1


def test_the_most_important_of_those_still_there_are_kept_and_none_comes_back():
    rng, l, layers = RNG(3), 16, [12, 9, 5, 5, 1]
    total, there = np.zeros((2, l)), np.ones((2, l), bool)
    for keep in layers:
        total += rng.random((2, l))
        before, there = there, pruned(total, there, keep)
        assert (there.sum(-1) == keep).all()
        assert not (there & ~before).any()
        for kept, old, of in zip(there, before, total, strict=True):
            lost = old & ~kept
            assert not lost.any() or of[kept].min() >= of[lost].max()


def test_of_equal_ones_the_first_stays_and_fewer_stay_as_they_are():
    assert pruned(np.ones(4), np.ones(4), 2).tolist() == [True, True, False, False]
    assert pruned(np.arange(3), [1, 0, 0], 2).tolist() == [True, False, False]
    lost = pruned([-1.0, np.inf, -2.0], [True, False, True], 1)
    assert lost.tolist() == [True, False, False]


def test_a_pruned_step_is_as_if_it_were_not_there():
    q, k, v = drawn(l=8)
    there, bias = np.array([1, 0, 1, 1, 0, 1, 1, 1], bool), np.zeros((1, 8))
    masked, _ = attended(q[None], k[None], v[None], bias, there.astype(float)[None, None])
    rest, _ = attended(q[there][None], k[there][None], v[there][None], bias)
    assert np.abs(masked[:, there] - rest).max() <= allowed(q, k, v)


FOUR, FIVE = np.ones((4, 1)), np.ones((5, 1))
REFUSED = {
    "not square": (lambda: sinkhorn(np.zeros((2, 3))), "sinkhorn: `R` must be square"),
    "cold": (lambda: sinkhorn(np.eye(2), temperature=0), "`temperature` must be above 0, got 0"),
    "NaN": (lambda: sinkhorn(np.eye(2), temperature=np.nan), "`temperature` must be above 0"),
    "no round": (lambda: sinkhorn(np.eye(2), rounds=0), "`rounds` must be at least 1, got 0"),
    "length": (
        lambda: sorted_blocks(np.ones((5, 1)), np.eye(2)),
        "a multiple of 2 blocks, got l=5",
    ),
    "queries": (lambda: sorted_attention(FIVE, FIVE, FIVE, np.eye(2)), "sorted_attention"),
    "cut": (
        lambda: sortcut_attention(FOUR, FOUR, FOUR, np.eye(2), cut=3),
        "`cut` must be from 1 to 2 blocks, got 3",
    ),
    "keep": (lambda: pruned(np.ones(2), np.ones(2), 0), "pruned: `keep` must be at least 1, got 0"),
    "shapes": (lambda: pruned(np.ones(2), np.ones(3), 1), r"the shape \(2,\) of `importance`"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_sorted_or_pruned_is_told(what):
    call, told = REFUSED[what]
    with pytest.raises(ValueError, match=told):
        call()
