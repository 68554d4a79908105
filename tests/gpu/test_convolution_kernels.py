"""The kernels of short convolutions: tiles of time, groups of taps, and gradients, exactly.

Inputs are small whole numbers, whose sums every order of additions gives exactly.
"""

import numpy as np
import pytest
from on_target import given, taken
from planting_kernels import plant

import refssm
from refssm_gpu import convolution
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu.convolution import (
    causal_convolution_direct,
    short_convolution,
    short_convolution_stateful,
    short_convolution_stateful_vjp,
    short_convolution_vjp,
)


def whole(*shapes, seed=0):
    """Arrays of the numbers −2 to 2."""
    r = np.random.default_rng(seed)
    return tuple(r.integers(-2, 3, shape).astype(np.float32) for shape in shapes)


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("t", [0, 1, 4, 63, 64, 65, 130])
def test_tiles_of_time_and_groups_of_taps_do_not_show(t, order):
    for l in (1, 3, 1023, 1024, 1025, 2050):
        u, k, dy = whole((2, 3, l), (3, t), (2, 3, l), seed=l)
        with settings(order=order):
            assert np.array_equal(
                taken(short_convolution(*given(u, k))), refssm.short_convolution(u, k)
            ), l
            got = taken(short_convolution_vjp(*given(dy, u, k)))
        for mine, theirs in zip(got, refssm.short_convolution_vjp(dy, u, k), strict=True):
            assert np.array_equal(mine, theirs), l


@pytest.mark.parametrize("l", [0, 1, 2, 5, 1030])
def test_the_inputs_before_the_first_and_the_last_ones_are_exact(l):
    u, k, s0, dy, ds = whole((2, l), (2, 4), (2, 4), (2, l), (2, 4), seed=l)
    for mine, theirs in zip(
        (
            *taken(short_convolution_stateful(*given(u, k, s0))),
            *taken(short_convolution_stateful_vjp(*given(dy, ds, u, k, s0))),
        ),
        (
            *refssm.short_convolution_stateful(u, k, s0),
            *refssm.short_convolution_stateful_vjp(dy, ds, u, k, s0),
        ),
        strict=True,
    ):
        assert np.array_equal(mine, theirs)


def test_a_convolution_with_as_many_taps_as_inputs_is_exact():
    u, k = whole((2, 1500), (2, 1500))
    assert np.array_equal(
        taken(causal_convolution_direct(*given(u, k))), refssm.causal_convolution_direct(u, k)
    )


def test_a_tap_that_is_nan_does_not_reach_outputs_before_it():
    u, k = np.ones(8, np.float32), np.array([1, 1, np.nan], np.float32)
    assert np.array_equal(np.isnan(taken(short_convolution(*given(u, k)))), np.arange(8) >= 2)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_halves_are_exact_where_rounding_cannot_occur(kind):
    dtype = kind if kind == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    u, k, s0, dy, ds = whole((2, 70), (2, 4), (2, 4), (2, 70), (2, 4))
    halves = [x.astype(dtype) for x in (u, k, s0, dy, ds)]
    u_, k_, s0_, dy_, ds_ = given(*halves)
    got = (
        *taken(short_convolution_stateful(u_, k_, s0_)),
        *taken(short_convolution_stateful_vjp(dy_, ds_, u_, k_, s0_)),
    )
    wanted = (
        *refssm.short_convolution_stateful(u, k, s0),
        *refssm.short_convolution_stateful_vjp(dy, ds, u, k, s0),
    )
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.dtype == np.dtype(dtype)
        assert np.array_equal(mine.astype(np.float32), theirs.astype(dtype).astype(np.float32))


def test_halves_are_added_in_single_precision():
    """2048 + 1 + 1: in float16 each 1 would be lost."""
    u, k = np.array([1, 1, 2048], np.float16), np.ones(3, np.float16)
    assert taken(short_convolution(*given(u, k)))[2] == 2050


FILE = "short_convolution.cuh"
BUGS = {
    "newest_tap_first_in_memory": (FILE, "(GROUP - 1) - p;", "p;"),
    "group_reused_without_barrier": (
        FILE,
        "sums[i] = tap * inputs[at] + sums[i];\n            }\n        }\n        __syncthreads();",
        "sums[i] = tap * inputs[at] + sums[i];\n            }\n        }",
    ),
    "last_warp_left_out": (FILE, "w < WARPS; ++w", "w < WARPS - 1; ++w"),
    "taps_of_another_row": (FILE, "row_of(size, K_BITS, row)", "0 * row"),
    "state_from_its_beginning": (FILE, "s0[size.past + i]", "s0[-1 - i]"),
    "zeros_before_the_start_multiply": (FILE, "if (whole || ", "if (whole || true || "),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    plant(monkeypatch, tmp_path, convolution, ["_FORWARD", "_BACK"], *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def test_without_a_planted_bug_the_facts_hold():
    _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    for order in (0, 1, 7):
        test_tiles_of_time_and_groups_of_taps_do_not_show(130, order)
    test_the_inputs_before_the_first_and_the_last_ones_are_exact(5)
    test_a_tap_that_is_nan_does_not_reach_outputs_before_it()
