"""The pipeline of HOPE's stream: lanes, launches and ragged ends, exactly where dt = 1.

Then ρ = 0 and c = 1: the all-passes are plain delays, and whole numbers stay whole numbers.
"""

import numpy as np
import pytest
from on_target import given, taken
from planting_kernels import plant

import refssm
from refssm_gpu import hope
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu.hope import hope_stream_stateful, hope_stream_stateful_vjp


def whole(*shapes, seed=0):
    """Arrays of the numbers −2 to 2."""
    r = np.random.default_rng(seed)
    return tuple(r.integers(-2, 3, shape).astype(float) for shape in shapes)


def agree(n, l, rows=2):
    """Outputs, last states and gradients equal the reference's, bit for bit."""
    h, u, x0, dy, dx = whole((n,), (rows, l), (rows, n), (rows, l), (rows, n), seed=n + l)
    arguments = h, np.float64(1.0), u, x0
    (h_,), (u_, x0_), (dy_, dx_) = given(h), given(u, x0), given(dy, dx)
    got = (
        *taken(hope_stream_stateful(h_, 1.0, u_, x0_)),
        *taken(hope_stream_stateful_vjp(dy_, dx_, h_, 1.0, u_, x0_)),
    )
    wanted = (
        *refssm.hope_stream_stateful(*arguments),
        *refssm.hope_stream_stateful_vjp(dy, dx, *arguments),
    )
    for mine, theirs in zip(got, wanted, strict=True):
        assert np.array_equal(mine, theirs), (n, l)


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 64, 65, 255, 256, 257])
def test_stages_split_among_lanes_and_launches_are_exact(n):
    for l in (0, 1, 31, 32, 33, 70):
        agree(n, l)


@pytest.mark.parametrize("order", [0, 1, 7])
def test_the_order_of_threads_does_not_show(order):
    with settings(order=order):
        agree(40, 50, rows=5)


FILE = "hope_stream.cuh"
BUGS = {
    "lane_at_the_wrong_time": (FILE, "base + i - at.lane;", "base + i;"),
    "last_lanes_not_drained": (FILE, "base < l + WARP - 1", "base < l"),
    "sum_of_the_launch_before_lost": (FILE, "sum = had;", "sum = had - had;"),
    "state_of_another_row": (FILE, "x0[of_x0 * size.n", "x0[0 * of_x0 * size.n"),
    "shuffle_downwards": (FILE, "shuffle_up(WHOLE_WARP, out, 1)", "shuffle(WHOLE_WARP, out, 0)"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    plant(monkeypatch, tmp_path, hope, ["_STREAM", "_STREAM_BACK"], *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    for n in (40, 257):
        agree(n, 70)
