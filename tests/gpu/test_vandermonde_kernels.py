"""The kernels of sums of powers: tiles of time, slices of modes, pieces, and modes backwards."""

import numpy as np
import pytest
from kernel_bounds import TURN, TYPES, a_third, assert_gradients_right, assert_right, normal
from on_target import given, taken
from planting_kernels import plant

from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL
from refssm_gpu import vandermonde
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.kernel import target
from refssm_gpu.vandermonde import (
    later_sums,
    moments,
    sums,
    vandermonde_kernel,
    vandermonde_kernel_real,
    vandermonde_kernel_real_vjp,
    vandermonde_kernel_vjp,
)

pytestmark = pytest.mark.usefixtures("one_multiprocessor")


def modes(kind, *shape, seed=0):
    """Logarithms of slow and fast modes that decay, complex ones with any angle."""
    r = np.random.default_rng(seed)
    x = -np.exp(r.uniform(-9, 0, shape))
    return (x + 3j * r.standard_normal(shape) if np.dtype(kind).kind == "c" else x).astype(kind)


def check(kind, rows, n, l):
    """Both operators and their gradients at one size."""
    v, x = normal(kind, rows, n, seed=n), modes(kind, n, seed=l)
    both = (
        (VANDERMONDE_KERNEL, vandermonde_kernel, vandermonde_kernel_vjp),
        (VANDERMONDE_KERNEL_REAL, vandermonde_kernel_real, vandermonde_kernel_real_vjp),
    )
    for op, forward, vjp in both:
        assert_right(op, forward, v, x, l=l)
        assert_gradients_right(op, vjp, v, x, l=l)


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 17])
def test_tiles_of_time_and_slices_of_modes_do_not_show(n, order):
    for l in (1, 31, 32, 33, 64, 65):
        with settings(order=order):
            check(TURN, 2, n, l)


@pytest.mark.parametrize("l", [2047, 2049, 4097])
def test_a_time_in_several_blocks_is_right(l):
    check(TURN, 1, 3, l)


@pytest.mark.long
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("l", [2047, 2049, 4095, 4097, 8193, 16385])
def test_every_type_is_right_over_several_blocks(kind, l):
    check(kind, 2, 3, l)


@pytest.mark.parametrize("kind", TYPES)
def test_both_heights_of_a_block_are_used(kind):
    """On a card with one multiprocessor two tall blocks suffice."""
    with settings() as now:
        for l in (100, 20000):
            sums(*given(normal(kind, 2, 1), modes(kind, 2, 1)), l=l, kind=kind)
    assert [c.kernel.endswith(", 1>") for c in now.counts] == [True, False]


@pytest.mark.parametrize("multiprocessors", [1, 100])
def test_the_result_does_not_depend_on_the_card(monkeypatch, multiprocessors):
    """Only the digits of the powers do, which are in double precision."""
    monkeypatch.setattr(type(target()), "multiprocessors", multiprocessors)
    check("complex64", 1, 5, 9000)


def test_any_batch_broadcasts():
    for of_v, of_x in (((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 3), (3,)), ((0,), ()), ((1, 1), ())):
        v, x = normal(TURN, *of_v, 3), modes(TURN, *of_x, 3)
        assert_right(VANDERMONDE_KERNEL, vandermonde_kernel, v, x, l=6)
        assert_gradients_right(VANDERMONDE_KERNEL, vandermonde_kernel_vjp, v, x, l=6)


@pytest.mark.parametrize("l", [0, 3])
@pytest.mark.parametrize("n", [0, 2])
def test_without_times_or_modes_there_are_zeros(l, n):
    v, x = normal(TURN, 2, n), modes(TURN, 2, n)
    k = taken(vandermonde_kernel(*given(v, x), l=l))
    dv, dx = taken(vandermonde_kernel_vjp(*given(k, v, x), l=l))
    assert k.shape == (2, l)
    assert dv.shape == dx.shape == (2, n)
    if l == 0 or n == 0:
        assert not k.any()
        assert not dv.any()
        assert not dx.any()


def test_nan_in_a_mode_reaches_every_time_of_its_row_only():
    v, x = normal(TURN, 2, 20), modes(TURN, 2, 20)
    x[1, 17] = np.nan
    k = taken(vandermonde_kernel(*given(v, x), l=100))
    assert np.isfinite(k[0]).all()
    assert np.isnan(k[1]).all()


def test_rising_modes_are_the_same_sums_backwards():
    v, x = normal("complex64", 3, 20), modes("complex128", 3, 20)
    forwards = taken(sums(*given(v, x), l=2100, kind=np.complex64))
    flags = np.ones(x.shape, bool)
    backwards = taken(sums(*given(v, x), l=2100, kind=np.complex64, rising=given(flags)[0]))
    assert np.array_equal(backwards, forwards[..., ::-1])
    flags[1] = False
    mixed = taken(sums(*given(v, x), l=2100, kind=np.complex64, rising=given(flags)[0]))
    assert np.array_equal(mixed[1], forwards[1])
    assert np.array_equal(mixed[::2], backwards[::2])


def test_turned_modes_have_alternating_signs():
    v, x, flags = normal("float64", 2, 20), modes("float64", 2, 20), np.ones((2, 20), bool)
    plain = taken(sums(*given(v, x), l=100, kind=np.float64))
    turned = taken(sums(*given(v, x), l=100, kind=np.float64, turned=given(flags)[0]))
    signs = (-1.0) ** np.arange(100)
    assert np.array_equal(turned, signs * plain)
    dk, x, flags = given(normal("float64", 2, 100), x, flags)
    signed = moments(dk, x, turned=flags)
    for mine, theirs in zip(signed, moments(given(signs)[0] * dk, x), strict=True):
        assert np.array_equal(taken(mine), taken(theirs))


def test_moments_of_rising_modes_count_from_the_last_time():
    dk, x = given(normal("complex64", 3, 4500), modes("complex128", 3, 5))
    flags = np.array([[True], [False], [True]]) & np.ones((3, 5), bool)
    back = moments(given(taken(dk)[..., ::-1])[0], x)
    for mine, theirs, ahead in zip(
        moments(dk, x, rising=given(flags)[0]), back, moments(dk, x), strict=True
    ):
        wanted = np.where(flags, taken(theirs), taken(ahead))
        assert np.array_equal(taken(mine), wanted)


def test_moments_from_a_later_time_on_are_those_of_the_rest():
    dk, x = normal("complex64", 3, 4500), given(modes("complex128", 3, 5))[0]
    for mine, theirs in zip(
        moments(given(dk)[0], x, skip=2), moments(given(dk[..., 2:])[0], x), strict=True
    ):
        assert np.array_equal(taken(mine), taken(theirs))


def test_the_slope_at_a_root_of_zero_is_the_second_cotangent():
    dk = np.array([[3.0, 5.0, 7.0]])
    found, start = later_sums(*given(dk, np.array([[-1e4]])))
    assert taken(start) == 3
    assert np.array_equal(taken(found), [[[5], [0]]])


SUMS, MOMENTS = "vandermonde.cuh", "vandermonde_moments.cuh"
BARRIER = "        __syncthreads();  // {}\n"
LAST = BARRIER.format("nobody reads the exponentials of the last slice any more")
TABLES = BARRIER.format("and nobody reads the tables of the last slice any more")
BUGS = {
    "tables_without_exponentials": (SUMS, TABLES, ""),
    "tables_without_barrier": (
        SUMS, "        __syncthreads();\n        tile::multiply", "        tile::multiply"
    ),
    "last_time_left_out": (SUMS, "if (at >= size.l) continue;", "if (at >= size.l - 1) continue;"),
    "modes_of_the_first_row": (SUMS, "x += row * size.n;", ""),
    "modes_behind_the_last": (SUMS, "min(size.n - first, (long long)tile::SLICE)", "tile::SLICE"),
    "start_forgotten": ("powers.cuh", "return start + ", "return 0 * start + "),
    "second_digit_wrong": ("powers.cuh", "(i - HIGH) * 8", "(i - HIGH) * 7"),
    "imaginary_parts_added": (SUMS, "sum = sum - a.im * b.im;", "sum = sum + a.im * b.im;"),
    "last_slice_overwritten": (MOMENTS, LAST, ""),
    "moment_of_time_zero": (MOMENTS, "if (q > 0) moment", "moment"),
    "heads_without_their_time": (MOMENTS, "two + static_cast<double>(j) * part", "two"),
    "half_of_the_lanes": (MOMENTS, "tile::DOWN / 2; distance", "tile::DOWN / 4; distance"),
    "not_conjugate": (MOMENTS, "= conj(one);", "= one;"),
    "times_of_another_piece": (MOMENTS, "j = start + i;", "j = 0 * start + i;"),
}  # fmt: skip


@pytest.mark.parametrize("bug", a_third(BUGS))
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    plant(monkeypatch, tmp_path, vandermonde, ["_SUMS", "_MOMENTS"], *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def test_without_a_planted_bug_the_facts_hold():
    _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    v, x = normal("complex64", 2, 31), modes("complex64", 2, 31)
    for order in (0, 1, 7):
        with settings(order=order):
            assert_right(VANDERMONDE_KERNEL_REAL, vandermonde_kernel_real, v, x, l=2100)
            assert_gradients_right(VANDERMONDE_KERNEL, vandermonde_kernel_vjp, v, x, l=4200)


@pytest.mark.long
def test_places_beyond_two_to_the_31_are_right():
    """The last row of 66000: 8.7 GB of addresses, of which one block touches its own."""
    rows, l = 66000, 32769
    v, x = normal("float32", rows, 1), modes("float32", rows, 1)
    assert_last = np.testing.assert_array_equal
    tiles = -(-l // 8192)
    with settings(only=((rows * tiles - 1, 0, 0),)):
        k = taken(vandermonde_kernel(*given(v, x), l=l))
    with settings(only=((tiles - 1, 0, 0),)):
        alone = taken(sums(*given(v[-1:], x[-1:]), l=l, kind=np.float32))
    assert_last(k[-1, 32768:], alone[0, 32768:])
    dk = np.zeros((rows, l), np.float32)  # no memory but for the page that is written
    dk[-1, -1] = 1
    pieces = -(-l // 4096)
    # every piece of the last row: a sum of one that no block wrote would be any number
    with settings(only=tuple((rows * pieces - 1 - i, 0, 0) for i in range(pieces))):
        found = vandermonde.moment_sums(*given(dk, x))
    alone = vandermonde.moment_sums(*given(dk[-1:], x[-1:]))
    assert_last(taken(found)[-1], taken(alone)[0])
