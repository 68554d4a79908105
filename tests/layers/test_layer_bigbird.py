from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.layers.attention.attention import ATTENTION_LAYER, SoftmaxAttention
from refssm.layers.attention.bigbird import BIGBIRD_LAYER, mask

U = 2.0**-53
SIZES = {"h": 3, "heads": 2, "n": 4, "p": 3}


def started(**options):
    return BIGBIRD_LAYER.init(np.random.default_rng(0), **{**SIZES, **options})


def drawn(l=12, h=3):
    return np.random.default_rng(1).standard_normal((l, h))


def dense(p):
    """The same maps with the full causal mask of `attention`."""
    return SoftmaxAttention(p.W_q, p.W_k, p.W_v, np.zeros((2, len(p.reads))), p.W_out)


def size_of(p, u):
    """The size of the terms of an output."""
    return sum(np.abs(u).max() * np.abs(V).sum() * np.abs(W).sum()
               for V, W in zip(p.W_v, p.W_out, strict=True))  # fmt: skip


def test_a_step_reads_its_window_the_first_steps_and_as_many_others_as_are_asked_for():
    reads = mask(np.random.default_rng(2), 40, 5, 2, 3)
    assert set(np.unique(reads)) == {0, 1}
    assert not np.triu(reads, 1).any()  # no distance is larger than the number of the step
    for i in range(40):
        read = i - np.flatnonzero(reads[i])  # the steps
        window, first = set(range(max(0, i - 4), i + 1)), set(range(min(2, i + 1)))
        assert window | first <= {*read}
        assert len(read) == min(i + 1, len(window | first) + 3)


def test_the_others_are_drawn_evenly():
    """4000 rows of step 12: window 3, one first step, and 9 others, of which 2 are drawn."""
    rng = np.random.default_rng(3)
    counts = np.sum([mask(rng, 13, 3, 1, 2)[12] for _ in range(4000)], axis=0)
    assert counts[:3].tolist() == [4000] * 3
    assert counts[12] == 4000
    # of 4000 · 2/9 = 889 with a deviation of √(4000 · 2/9 · 7/9) = 26: six of them
    assert np.abs(counts[3:12] - 4000 * 2 / 9).max() < 6 * 26.3


def test_a_window_as_long_as_the_mask_is_the_full_causal_mask():
    p, u = started(t=12, window=12), drawn()
    wanted = ATTENTION_LAYER.forward(refssm, dense(p), u)
    assert np.abs(BIGBIRD_LAYER.forward(refssm, p, u) - wanted).max() <= 16 * U * size_of(p, u)


def test_a_window_alone_is_that_of_attention_beyond_the_length_of_the_mask_too():
    p, u = started(t=7, window=3, first=0, random=0), drawn(l=30)
    shorter = dense(p)
    shorter = replace(shorter, bias=shorter.bias[:, :3])
    wanted = ATTENTION_LAYER.forward(refssm, shorter, u)
    assert np.abs(BIGBIRD_LAYER.forward(refssm, p, u) - wanted).max() <= 16 * U * size_of(p, u)


def test_it_is_a_softmax_over_the_steps_that_its_row_names():
    """In plain loops, also beyond the mask, where the last row stays."""
    p, u = started(t=8, window=2, first=1, random=2), drawn(l=12)
    wanted = np.zeros((12, 3))
    for g in range(2):
        q, k, v = (u @ W[g] for W in (p.W_q, p.W_k, p.W_v))
        for i in range(12):
            read = [i - d for d in range(min(i + 1, 8)) if d == 0 or p.reads[min(i, 7), d]]
            e = np.array([np.exp(q[i] @ k[j] / 2) for j in read])
            wanted[i] += (e @ v[read] / e.sum()) @ p.W_out[g]
    # scores below 10 with an error of ten roundings, which a weight takes as its relative error
    error = np.abs(BIGBIRD_LAYER.forward(refssm, p, u) - wanted).max()
    assert error <= 256 * U * size_of(p, u)


def test_nan_reaches_the_steps_that_read_it_and_no_other():
    p, u = started(t=12, window=1, first=0, random=0), drawn()
    reads = p.reads.copy()
    reads[9, 4] = 1  # step 9 reads step 5
    u[5] = np.nan
    bad = np.isnan(BIGBIRD_LAYER.forward(refssm, replace(p, reads=reads), u)).any(axis=-1)
    assert np.flatnonzero(bad).tolist() == [5, 9]


def test_a_step_reads_itself_whatever_the_mask_says():
    p, u = started(t=12), drawn()
    without = replace(p, reads=np.zeros((12, 12)))
    wanted = sum(u @ V @ W for V, W in zip(p.W_v, p.W_out, strict=True))
    assert np.abs(BIGBIRD_LAYER.forward(refssm, without, u) - wanted).max() <= 64 * U * size_of(
        p, u
    )


def test_the_mask_has_no_gradient():
    p, u = started(t=12), drawn()
    gradients, _ = BIGBIRD_LAYER.vjp(refssm, np.ones((12, 3)), p, u)
    assert gradients.reads.shape == (12, 12)
    assert not gradients.reads.any()
    assert gradients.W_q.any()


def test_the_row_of_a_step_is_the_number_of_steps_in_the_cache():
    """Two places of three hold a step: the next one has row 2, and the one after it the last."""
    p, u = started(t=4, window=1, first=0, random=0), drawn(l=2)
    reads = np.zeros((4, 4))
    reads[2, 1], reads[3, 3] = 1, 1
    p = replace(p, reads=reads)
    K, V = (np.random.default_rng(i).standard_normal((2, 4, s)) for i, s in ((5, 4), (6, 3)))
    seen = np.array([0.0, 0.0, 1.0, 1.0])
    y, _ = BIGBIRD_LAYER.stateful(refssm, p, u, (K, V, seen))
    moved = BIGBIRD_LAYER.stateful(refssm, p, u, (K + np.eye(4)[3][:, None], V, seen))[0]
    assert (moved[0] != y[0]).all()  # distance 1: the newest place
    oldest = BIGBIRD_LAYER.stateful(refssm, p, u, (K, V + np.eye(4)[2][:, None], seen))[0]
    assert np.array_equal(oldest[0], y[0])
    assert (oldest[1] != y[1]).all()  # distance 3 of the second step


def test_a_mask_without_steps_is_refused():
    p = started(t=1)
    empty, state = replace(p, reads=p.reads[:0, :0]), BIGBIRD_LAYER.rest(p)
    message = r"^bigbird: `reads` has no distances, wanted t ≥ 1$"
    with pytest.raises(ValueError, match=message):
        BIGBIRD_LAYER.forward(refssm, empty, np.ones((3, 3)))
    with pytest.raises(ValueError, match=message):
        BIGBIRD_LAYER.stateful(refssm, empty, np.ones((3, 3)), state)
