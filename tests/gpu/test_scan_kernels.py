"""The scan's kernels on the host build: how columns and time are split must not show.

The reference computes in the same type one step after the other, so an error of one scan is
compared with the judge's bound (test_mirrors_judged.py). Here inputs are small whole numbers and
powers of two, which every order of additions gives exactly.
"""

import numpy as np
import pytest
from kernel_bounds import assert_gradients_right, assert_right, dtype_of
from on_target import given, taken
from planting_kernels import plant

import refssm
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.kernel import target
from refssm_gpu.scan import (
    linear,
    linear_scan,
    linear_scan_from,
    linear_scan_from_vjp,
    linear_scan_packed,
    linear_scan_vjp,
)
from refssm_gpu.scan.linear import INSTANCES

ONES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")


def exact(shape, kind, seed=0):
    """Decays −1, 0 or 1 and inputs −1, 0 or 1: states are whole numbers, exact in every type."""
    r = np.random.default_rng(seed)
    return tuple(r.integers(-1, 2, shape).astype(dtype_of(kind)) for _ in range(2))


def stepped(a, b):
    """The scan one step after another, in whole numbers."""
    x = np.zeros(np.broadcast_shapes(a.shape, b.shape), complex)
    for k in range(a.shape[-2]):
        before = x[..., k - 1, :] if k else 0
        x[..., k, :] = a[..., k, :].astype(complex) * before + b[..., k, :].astype(complex)
    return x


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 15, 16, 17, 64, 65])
def test_every_split_of_columns_and_ragged_tail_is_exact(n, order):
    for l in (1, 31, 32, 33, 257):
        a, b = exact((2, l, n), "float32", seed=l)
        with settings(order=order):
            assert np.array_equal(taken(linear_scan(*given(a, b))), stepped(a, b).real), (l, n)


@pytest.mark.parametrize("kind", ONES)
def test_every_type_is_exact_where_rounding_cannot_occur(kind):
    a, b = exact((2, 40, 18), kind)
    x = taken(linear_scan(*given(a, b)))
    assert x.dtype == a.dtype
    assert np.array_equal(x.astype(complex), stepped(a, b))


@pytest.mark.parametrize("multiprocessors", [1, 3, 40])
def test_pieces_of_time_are_exact_forwards_and_backwards(monkeypatch, multiprocessors):
    monkeypatch.setattr(type(target()), "multiprocessors", multiprocessors)
    a, b = exact((1, 3001, 3), "float64", seed=multiprocessors)
    resets = np.zeros(3001, bool)
    resets[[7, 1500, 1501, 2999]] = True
    arguments = given(a, b, resets)
    assert np.array_equal(
        taken(linear_scan_packed(*arguments)), refssm.linear_scan_packed(a, b, resets)
    )
    mine, theirs = linear_scan_vjp(*given(b, a, b)), refssm.linear_scan_vjp(b, a, b)
    for got, want in zip(taken(mine), theirs, strict=True):
        assert np.array_equal(got, want)


def test_time_is_cut_into_pieces_only_where_rows_are_few(monkeypatch):
    monkeypatch.setattr(type(target()), "multiprocessors", 8)
    for rows, cut in ((1, True), (200, False)):
        s = linear.arguments(*given(*exact((rows, 4096, 4), "float32")), None, None, True)
        assert (linear._plan(s).pieces > 1) == cut


def test_a_decay_that_is_constant_in_time_is_read_from_one_row():
    a, b = exact((50, 6), "float32")
    got = taken(linear.scan(*given(a[:1], b)))
    assert np.array_equal(got, stepped(np.broadcast_to(a[:1], b.shape), b).real)


def test_broadcast_batches_of_every_kind_agree_with_the_reference():
    r = np.random.default_rng(5)
    leads = [((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((1, 1), ()), ((), (2, 3)), ((4,), (3, 1))]
    for of_a, of_b in leads:
        a = r.integers(-1, 2, (*of_a, 9, 5)).astype(float)
        b = r.integers(-1, 2, (*of_b, 9, 5)).astype(float)
        x0 = r.integers(-1, 2, (*of_b, 5)).astype(float)
        got = taken(linear_scan_from(*given(a, b, x0)))
        assert np.array_equal(got, refssm.linear_scan_from(a, b, x0)), (of_a, of_b)


def test_nan_before_a_reset_stays_there():
    a, b = np.ones((70, 5), np.float32), np.ones((70, 5), np.float32)
    a[33], b[10] = np.nan, np.inf
    resets = np.arange(70) == 33
    x = taken(linear_scan_packed(*given(a, b, resets)))
    assert np.isinf(x[32]).all()
    assert np.array_equal(x[33:], np.arange(1.0, 38)[:, None] * np.ones(5))


def test_halves_keep_their_state_in_single_precision():
    """1 + 2⁻¹² many times: a state in float16 would stay at 1."""
    b = np.full((4096, 8), 2.0**-12, np.float16)
    b[0] = 1
    x = taken(linear_scan(*given(np.ones_like(b), b)))
    assert x[-1, 0] == np.float16(1 + 4095 * 2.0**-12)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_gradients_of_halves_are_halves(kind):
    a, b = exact((2, 5, 3), kind)
    for gradient in taken(linear_scan_from_vjp(*given(b, a, b, b[:, 0]))):
        assert gradient.dtype == a.dtype


def test_every_type_has_instances_and_none_is_declared_twice():
    kinds = {kind for kind, *_ in INSTANCES}
    assert kinds == set(ONES)
    assert len(set(INSTANCES)) == len(INSTANCES) == 33


BUGS = {
    "no_barrier": ("affine.cuh", "        __syncthreads();\n", ""),
    "one_set_of_totals": ("affine.cuh", "shared + parity *", "shared + 0 * parity *"),
    "earlier_warps_forgotten": ("affine.cuh", "if (w < warp)", "if (w < 0)"),
    "lost_between_chunks": (
        "affine.cuh", "apply(totals[w * LANES], state);", "if (w) apply(totals[w * LANES], state);"
    ),
    "reset_multiplies": ("affine.cuh", "x[v] = f.begins ? f.b[v] : f", "x[v] = f"),
    "row_of_another_member": ("rows.cuh", "r / size.inner", "r % size.inner"),
    "last_step_left_out": ("linear_scan.cuh", "k < at.end)", "k + 1 < at.end)"),
    "not_conjugate": ("linear_scan.cuh", "s.a[i][v] = conj(s.a[i][v]);", ";"),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    plant(monkeypatch, tmp_path, linear, ["_FORWARD", "_BACK"], *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    r = np.random.default_rng(9)
    a = np.exp(2j * np.pi * r.uniform(size=(3, 1, 300, 5)))
    b, x0 = r.standard_normal((2, 300, 5)), r.standard_normal((3, 1, 5))
    for order in (0, 1, 7):
        with settings(order=order):
            assert_right(LINEAR_SCAN_FROM, linear_scan_from, a, b, x0)
            assert_gradients_right(LINEAR_SCAN, linear_scan_vjp, a, b)
    test_nan_before_a_reset_stays_there()


def test_without_a_planted_bug_the_facts_hold():
    _all_facts()
