"""HOPE's transfer function and its adjoint: groups of parameters, ragged tiles, both halves."""

import numpy as np
import pytest
from on_target import given, taken
from planting_kernels import plant

import refssm
import refssm.jit.hope
from refssm_gpu import hope
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings

FILE = "hope_transfer.cuh"


def drawn(n, l, kind, rows=2):
    """h, dt and a cotangent of the transfer function."""
    rng = np.random.default_rng(n + l)
    h, dk = rng.standard_normal((2, rows, n)), rng.standard_normal((2, rows, l))
    h = h[0] + 1j * h[1] if np.dtype(kind).kind == "c" else h[0]
    return h.astype(kind), np.array([0.3, 2.0])[:rows], dk[0] + 1j * dk[1]


def close(found, wanted, scale):
    """Sums of n terms: each of the powers has an error of a few n units."""
    assert found.shape == wanted.shape
    room = 2.0**-53 * 16 * (scale + 8) ** 2
    assert np.abs(found - wanted).max(initial=0) <= room * max(1, np.abs(wanted).max(initial=0))


def agree(n, l, kind="complex128"):
    """The transfer function and its gradients are the reference's."""
    h, dt, dk = drawn(n, l, kind)
    close(taken(hope.hope_transfer(*given(h, dt), l=l)), refssm.hope_transfer(h, dt, l=l), n)
    found = taken(hope.hope_transfer_vjp(*given(dk, h, dt), l=l))
    wanted = refssm.hope_transfer_vjp(dk, h, dt, l=l)
    for f, y in zip(found, wanted, strict=True):
        close(f, y, n + l)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 33, 257, 300])
def test_groups_and_chunks_of_parameters_meet_without_a_gap(n, kind):
    agree(n, 7, kind)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("l", [0, 1, 2, 3, 4, 254, 255, 256, 257, 511, 513, 1100])
def test_tiles_of_nodes_meet_without_a_gap(l, kind):
    agree(18, l, kind)


@pytest.mark.parametrize("plenty", [False, True])
def test_small_and_large_blocks_give_the_same(monkeypatch, plenty):
    monkeypatch.setattr(hope, "RESIDENT", 0 if plenty else 10**9)
    agree(40, 1100, "float64")
    agree(40, 1100, "complex128")


def test_at_a_step_of_one_it_is_the_transform_of_the_parameters():
    h = np.arange(1.0, 6.0)
    wanted = np.fft.fft(np.concatenate([[0.0], h, np.zeros(2)]))
    close(taken(hope.hope_transfer(*given(h, np.ones(())), l=8)), wanted, 5)


@pytest.mark.parametrize("order", [0, 1, 7])
def test_the_order_of_threads_does_not_show(order):
    with settings(order=order):
        agree(40, 300, "float64")


@pytest.mark.parametrize("op", ["hope_transfer", "hope_kernel", "hope_kernel_aliased"])
def test_single_precision_is_double_precision_rounded_once(op):
    h, dt, _ = drawn(20, 50, "float32")
    dt = dt.astype(np.float32)
    narrow = taken(getattr(hope, op)(*given(h, dt), l=50))
    wide = taken(getattr(hope, op)(*given(h.astype(float), dt.astype(float)), l=50))
    assert np.array_equal(narrow, wide.astype(narrow.dtype))


@pytest.mark.long
def test_the_kernels_are_the_cpu_mirrors_at_a_larger_size():
    h, dt, _ = drawn(100, 2000, "float64")
    for op in ("hope_kernel", "hope_kernel_aliased"):
        wanted = getattr(refssm.jit.hope, op)(h, dt, l=2000)
        close(taken(getattr(hope, op)(*given(h, dt), l=2000)), wanted, 100)


BUGS = {
    "no_barrier_before_the_next_chunk": (
        "__syncthreads();  // nobody reads the last chunk any more", ""),
    "no_barrier_after_the_chunk": (
        "first), sums);\n        __syncthreads();", "first), sums);"),
    "last_parameter_of_a_row": ("up < size.n ?", "up < size.n - 1 ?"),
    "tail_of_the_nodes": ("if (j >= size.nodes) continue;", ""),
    "wrong_row": ("row_of(size, 0, row) * size.n", "0 * size.n"),
    "middle_node_twice": (
        "other = {0, 0};\n    const long long mirrored = size.l - j;\n"
        "    if (mirrored >= size.nodes &&",
        "other = {0, 0};\n    const long long mirrored = size.l - j;\n    if ("),
    "sum_of_one_warp": ("warp < WARPS; ++warp)", "warp < 1; ++warp)"),
    "group_of_the_neighbour": ("power_of(p16, first)", "power_of(p16, 0)"),
    "no_barrier_after_the_sums": (
        "    __syncthreads();\n    const int i = threadIdx.x", "    const int i = threadIdx.x"),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    plant(monkeypatch, tmp_path, hope, ["_TRANSFER", "_ADJOINT"], FILE, *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    for order in (0, 1, 7):
        with settings(order=order):
            agree(300, 300, "float64")
            agree(40, 255)


def test_the_right_kernel_passes_what_sees_the_bugs():
    _all_facts()
