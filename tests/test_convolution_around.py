"""Facts of circular and bidirectional convolutions: by hand, lags, special cases, SciPy."""

import numpy as np
import pytest
from scipy.ndimage import convolve1d

import refssm
from refssm.conformance.judging.grading import judge
from refssm.convolution import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    CAUSAL_CONVOLUTION,
    CIRCULAR_CONVOLUTION,
)

BOTH_WAYS = [BIDIRECTIONAL_CONVOLUTION, BIDIRECTIONAL_CONVOLUTION_SHIFTED]
LENGTHS = [1, 2, 3, 16, 17, 97, 128]
both_ways = pytest.mark.parametrize("op", BOTH_WAYS, ids=str)
each_length = pytest.mark.parametrize("l", LENGTHS)


def run(op, *arrays):
    return op.implementation("reference")(*arrays)


def right(op, value, *arrays):
    """True if the judge accepts `value` as the output of `op`."""
    value = np.asarray(value, np.result_type(*arrays))
    return judge(op, lambda *_: value, *map(np.asarray, arrays)).ok


def signals(l, count=3, seed=1):
    return np.random.default_rng(seed).standard_normal((count, l))


def impulse(l, place):
    return np.eye(1, l, place)[0]


@pytest.mark.parametrize("place", [0, 1, 4])
def test_an_impulse_gives_the_kernel_around_its_place(place):
    k = np.arange(1.0, 6.0)
    value = np.roll(k, place)
    assert right(CIRCULAR_CONVOLUTION, value, impulse(5, place), k)
    assert right(
        CIRCULAR_CONVOLUTION, run(CIRCULAR_CONVOLUTION, impulse(5, place), k), impulse(5, place), k
    )


def test_an_impulse_in_the_middle_shows_both_kernels_and_where_they_meet():
    k, kr = np.array([1.0, 2, 3, 4, 5]), np.array([10.0, 20, 30, 40, 50])
    u = impulse(5, 2)
    assert right(BIDIRECTIONAL_CONVOLUTION, [30, 20, 11, 2, 3], u, k, kr)
    assert right(BIDIRECTIONAL_CONVOLUTION_SHIFTED, [20, 10, 1, 2, 3], u, k, kr)
    for op in BOTH_WAYS:
        assert right(op, run(op, u, k, kr), u, k, kr)


@each_length
def test_scipys_wrapped_filter_is_the_circular_convolution(l):
    u, k, _ = signals(l)
    # the origin of an even filter is right of its centre, of an odd filter at its centre
    value = convolve1d(u, k, mode="wrap", origin=-(l // 2))
    assert right(CIRCULAR_CONVOLUTION, value, u, k)


@each_length
def test_zeros_behind_make_the_circular_convolution_the_causal_one(l):
    u, k, _ = signals(l)
    zeros = np.zeros(l)
    wide = run(CIRCULAR_CONVOLUTION, np.r_[u, zeros], np.r_[k, zeros])[:l]
    assert judge(CAUSAL_CONVOLUTION, lambda *_: wide, u, k).ok


@each_length
def test_a_kernel_that_ends_in_time_wraps_nothing_around(l):
    u, k, _ = signals(2 * l)
    u[l:], k[l:] = 0, 0
    assert right(CIRCULAR_CONVOLUTION, refssm.causal_convolution_direct(u, k), u, k)


@both_ways
@each_length
def test_without_a_kernel_of_the_future_it_is_causal(op, l):
    u, k, _ = signals(l)
    assert right(op, refssm.causal_convolution_direct(u, k), u, k, np.zeros(l))


@each_length
def test_the_conventions_differ_by_the_lag_at_which_the_future_begins(l):
    u, k, kr = signals(l)
    later = np.r_[0.0, kr[:-1]]
    value = run(BIDIRECTIONAL_CONVOLUTION, u, k, later)
    assert right(BIDIRECTIONAL_CONVOLUTION_SHIFTED, value, u, k, kr)


@each_length
def test_time_reversed_the_kernels_change_places(l):
    u, k, kr = signals(l)
    value = run(BIDIRECTIONAL_CONVOLUTION, u[::-1], kr, k)[::-1]
    assert right(BIDIRECTIONAL_CONVOLUTION, value, u, k, kr)


@both_ways
def test_one_kernel_of_twice_the_length_has_both(op):
    l, shift = 8, int(op is BIDIRECTIONAL_CONVOLUTION_SHIFTED)
    u, k, kr = signals(l)
    around = np.r_[k, np.zeros(l)]
    for j in range(l - shift):
        around[(-j - shift) % (2 * l)] += kr[j]
    value = run(CIRCULAR_CONVOLUTION, np.r_[u, np.zeros(l)], around)[:l]
    assert right(op, value, u, k, kr)


def test_the_last_tap_of_the_shifted_kernel_reaches_nothing():
    u, k, kr = signals(9)
    other = np.r_[kr[:-1], 7.0]
    first, second = (run(BIDIRECTIONAL_CONVOLUTION_SHIFTED, u, k, x) for x in (kr, other))
    assert right(BIDIRECTIONAL_CONVOLUTION_SHIFTED, second, u, k, kr)
    assert right(BIDIRECTIONAL_CONVOLUTION_SHIFTED, first, u, k, other)
    ones = np.ones(9)
    *_, dkr = refssm.bidirectional_convolution_shifted_vjp(ones, u, k, kr)
    assert dkr[-1] == 0


@pytest.mark.parametrize("op", [CIRCULAR_CONVOLUTION, *BOTH_WAYS], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
def test_no_signal_has_no_output_and_types_stay(op, dtype):
    count = len(op.inputs)
    for l in (0, 1, 5):
        y = run(op, *np.ones((count, l), dtype))
        assert y.shape == (l,)
        assert y.dtype == dtype
        gradients = op.vjp()(y, *np.ones((count, l), dtype))
        assert [g.shape for g in gradients] == [(l,)] * count
