from dataclasses import replace

import numpy as np

import refssm
from refssm.layers.convolutions.long_convolution import LONG_CONVOLUTION_LAYER, LongConvolution
from refssm.layers.convolutions.multiscale_convolution import (
    MULTISCALE_CONVOLUTION_LAYER,
    kernel,
    stretching,
)

U = 2.0**-53


def started(h=2, n=4):
    return MULTISCALE_CONVOLUTION_LAYER.init(np.random.default_rng(0), h=h, n=n)


def test_four_times_n_numbers_make_a_kernel_of_eight_times_n_steps():
    p = started(h=3, n=5)
    assert p.near[0].size + p.far[0].size == 20
    assert kernel(p).shape == (3, 40)


def test_the_kernel_of_ones_has_steps_of_the_decay_to_the_power_of_the_scale():
    p = started(n=2)
    p = replace(p, near=np.ones((2, 2)), far=np.ones((2, 6)))
    wanted = np.repeat([1, 1 / 2, 1 / 4, 1 / 8], [2, 2, 4, 8])
    assert np.abs(kernel(p) - wanted).max() <= 8 * U


def test_two_numbers_are_stretched_as_by_hand():
    """Twice: a quarter of the way before and after each number; four times: eighths."""
    row = np.array([0.0, 8.0])
    assert (row @ stretching(2, 2)).tolist() == [0, 2, 6, 8]
    assert (row @ stretching(2, 4)).tolist() == [0, 0, 1, 3, 5, 7, 8, 8]
    assert np.array_equal(stretching(3, 1), np.eye(3))


def test_a_constant_and_a_line_stay_what_they_are():
    for n, factor in ((1, 4), (3, 2), (5, 4)):
        S = stretching(n, factor)
        assert np.array_equal(S.sum(0), np.ones(factor * n))
        places = (np.arange(factor * n) + 0.5) / factor - 0.5
        inner = (places >= 0) & (places <= n - 1)
        assert np.array_equal((np.arange(n) @ S)[inner], places[inner])


def test_each_kernel_starts_with_length_one_and_decay_one_half():
    p = started(h=8, n=16)
    assert np.abs((kernel(p) ** 2).sum(-1) - 1).max() <= 16 * U
    assert np.abs(np.exp(-np.exp(p.log_rate)) - 0.5).max() <= 4 * U


def test_it_is_the_long_convolution_with_its_kernel():
    p, u = started(), np.random.default_rng(1).standard_normal((2, 40, 2))
    free = LongConvolution(kernel(p), p.D, p.W, p.b)
    y = MULTISCALE_CONVOLUTION_LAYER.forward(refssm, p, u)
    assert np.array_equal(y, LONG_CONVOLUTION_LAYER.forward(refssm, free, u))


def test_without_its_first_numbers_it_is_silent_at_first():
    """Only the scale i counts: its kernel begins at n 2^{i−1} and has n 2^{i−1} numbers."""
    p = started(n=2)
    for i, (begin, end) in enumerate(((2, 4), (4, 8), (8, 16))):
        far = np.zeros((2, 6))
        far[:, 2 * i : 2 * i + 2] = 1
        K = kernel(replace(p, near=0 * p.near, far=far))
        assert (K[:, begin:end] > 0).all()
        assert np.count_nonzero(K) == 2 * (end - begin)
