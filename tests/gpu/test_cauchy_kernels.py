"""The Cauchy kernels: tiles of nodes, slices of poles, shared nodes, poles met, and far numbers."""

from math import prod

import numpy as np
import pytest
from kernel_bounds import TURN, TYPES, a_third, assert_gradients_right, assert_right, normal
from on_target import given, taken
from planting_kernels import plant

from refssm.cauchy import CAUCHY_KERNEL, RESOLVENT_AT_ROOTS
from refssm_gpu import cauchy
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.kernel import target
from refssm_gpu.cauchy import (
    cauchy_kernel,
    cauchy_kernel_vjp,
    resolvent_at_roots,
    resolvent_at_roots_vjp,
)

pytestmark = pytest.mark.usefixtures("one_multiprocessor")


def case(kind, *shapes):
    """Residues, poles left of the imaginary axis and nodes right of it."""
    v, w, z = (normal(kind, *shape, seed=i) for i, shape in enumerate(shapes))
    return v, w - np.abs(w) - w.dtype.type(0.1), z + np.abs(z)


def check(kind, *shapes):
    """The kernel and its gradients."""
    arrays = case(kind, *shapes)
    assert_right(CAUCHY_KERNEL, cauchy_kernel, *arrays)
    assert_gradients_right(CAUCHY_KERNEL, cauchy_kernel_vjp, *arrays)


def check_roots(kind, n, l):
    """The same at the roots of unity, one pole outside the unit circle."""
    v, a = normal(kind, 2, n), normal(kind, n, seed=1)
    a = a / (np.abs(a) + a.dtype.type(0.05))
    a[:1] = 1.01
    assert_right(RESOLVENT_AT_ROOTS, resolvent_at_roots, v, a, l=l)
    assert_gradients_right(RESOLVENT_AT_ROOTS, resolvent_at_roots_vjp, v, a, l=l)


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("n", [1, 3, 31, 32, 33, 64, 65])
def test_slices_of_poles_and_tiles_of_nodes_do_not_show(n, order):
    with settings(order=order):
        for l in (1, 127, 128, 129):
            check(TURN, (2, n), (n,), (l,))


@pytest.mark.parametrize("l", [255, 257, 511, 513, 2049])
def test_nodes_of_several_blocks_are_right(l):
    check(TURN, (2, 3), (3,), (l,))


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("l", [1, 2, 3, 64, 65, 257])
def test_roots_of_unity_are_right_for_odd_and_even_lengths(kind, l):
    check_roots(kind, 5, l)


@pytest.mark.long
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("l", [511, 513, 4097])
def test_every_type_is_right_over_several_blocks(kind, l):
    check(kind, (2, 3), (3,), (l,))
    check_roots(kind, 33, l)


@pytest.mark.parametrize("multiprocessors", [1, 40])
def test_a_block_adds_the_gradients_of_shared_nodes_over_rows(monkeypatch, multiprocessors):
    monkeypatch.setattr(type(target()), "multiprocessors", multiprocessors)
    for rows in (1, 7, 23):
        check("complex64", (rows, 5), (rows, 5), (600,))


def test_any_batch_broadcasts_with_shared_own_and_partly_shared_nodes():
    for leads in (
        ((3, 1), (1, 4), ()), ((), (2, 3), (2, 3)), ((2, 1, 3), (3,), (2, 1, 1)),
        ((0,), (), ()), ((), (), (4,)), ((2,), (2,), (1, 1)), ((), (), ()),
    ):  # fmt: skip
        check(TURN, *((*lead, size) for lead, size in zip(leads, (3, 3, 5), strict=True)))


@pytest.mark.parametrize("l", [0, 3])
@pytest.mark.parametrize("n", [0, 2])
def test_without_nodes_or_poles_there_are_zeros(l, n):
    arrays = case(TURN, (2, n), (2, n), (l,))
    k = taken(cauchy_kernel(*given(*arrays)))
    gradients = taken(cauchy_kernel_vjp(*given(k, *arrays)))
    k_roots = taken(resolvent_at_roots(*given(*arrays[:2]), l=l))
    of_roots = taken(resolvent_at_roots_vjp(*given(k_roots, *arrays[:2]), l=l))
    assert k.shape == k_roots.shape == (2, l)
    for x, g in zip((*arrays, *arrays[:2]), (*gradients, *of_roots), strict=True):
        assert g.shape == x.shape
    if not prod((l, n)):
        assert not any(x.any() for x in (k, k_roots, *gradients, *of_roots))


@pytest.mark.parametrize("kind", TYPES)
def test_a_pole_met_exactly_is_infinite_and_nan_where_the_residue_is_zero(kind):
    w, z = np.array([-1, -2], kind), np.array([-1, 1, -2], kind)
    k = taken(cauchy_kernel(*given(np.array([2, 1], kind), w, z)))
    assert np.isinf(k[[0, 2]].real).all()
    assert np.isfinite(k[1])
    assert np.isnan(taken(cauchy_kernel(*given(np.array([0, 1], kind), w, z)))[0])


@pytest.mark.parametrize("nan", [np.nan, complex(np.nan, 0.5), complex(0.5, np.nan)])
def test_nan_in_a_pole_reaches_every_root_of_its_row_only(nan):
    v, a = normal("complex64", 2, 3), np.full((2, 3), 0.5, np.complex64)
    a[1, 2] = nan
    k = taken(resolvent_at_roots(*given(v, a), l=6))
    assert np.isfinite(k[0]).all()
    assert np.isnan(k[1]).all()


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("share", [-0.6, -0.45, 0.45, 0.6])
def test_distances_whose_square_leaves_the_range_keep_their_digits(kind, share):
    """All distances times a power of two: the same sums and gradients, times its inverse."""
    scale = 2.0 ** round(share * np.finfo(kind).maxexp)
    v, w, z = case(kind, (2, 40), (40,), (300,))
    moved = [v, (w * scale).astype(kind), (z * scale).astype(kind)]
    back = (taken(cauchy_kernel(*given(*moved))).astype(np.complex128) * scale).astype(kind)
    assert_right(CAUCHY_KERNEL, lambda *_: back, v, w, z)
    if share > 0:  # then no gradient overflows; that of w is beyond the range below
        dk = normal(kind, 2, 300)
        dv, *_ = taken(cauchy_kernel_vjp(*given(dk, *moved)))
        near, *_ = taken(cauchy_kernel_vjp(*given(dk, v, w, z)))
        # scaling is exact; each sum errs by 299 u in its additions, 12 u in the quotient and 3 u
        # in the product of a term, all times Σ |d| |R|; two sums of that error: 314 · 2 u
        most = np.abs(dk).sum(-1).max() / np.abs(z[:, None] - w).min()
        bound = 314 * np.finfo(kind).eps * most
        assert np.abs(dv.astype(np.complex128) * scale - near).max() < bound


def test_a_far_number_among_near_ones_changes_only_its_own_terms():
    v, w, z = case("complex64", (1, 70), (70,), (300,))
    z[7], w[66] = 1e25, -1e30
    assert_right(CAUCHY_KERNEL, cauchy_kernel, v, w, z)
    assert_gradients_right(CAUCHY_KERNEL, cauchy_kernel_vjp, v, w, z)
    w[:] = -1e25  # |z − w|² is beyond the range, v/(z − w) is −v/w but for the node 7
    k = taken(cauchy_kernel(*given(v, w, z)))[0, :7]
    terms = v.astype(complex) / 1e25
    # 69 u in the additions; 1 u in w, 1 u in z − w, 12 u in the quotient, 3 u in the product
    bound = 86 * np.finfo(np.float32).eps / 2 * np.abs(terms).sum()
    assert (np.abs(k - terms.sum()) <= bound).all()


CAUCHY, MOMENTS, RESOLVENT = "cauchy.cuh", "cauchy_moments.cuh", "resolvent.cuh"
BUGS = {
    "poles_overwritten": (
        CAUCHY, "            __syncthreads();  // nobody reads the last poles any more\n", ""
    ),
    "poles_not_awaited": (
        CAUCHY, "            __syncthreads();\n            E part", "            E part"
    ),
    "last_node_left_out": (CAUCHY, "if (at < size.l) k[", "if (at < size.l - 1) k["),
    "poles_of_the_first_row": (CAUCHY, "w + row * size.n, size.n, total", "w, size.n, total"),
    "last_row_left_out": (CAUCHY, "row < end; ++row", "row < end - 1; ++row"),
    "not_squared": (CAUCHY, "POWER == 2 ? R * R : R", "R"),
    "far_pole_ignored": (CAUCHY, "far[i] |= all;", "far[i] |= false && all;"),
    "near_pole_ignored": (RESOLVENT, "ordered(rough));", "0 & ordered(rough));"),
    "one_step_of_newton": (
        RESOLVENT, "    y = fma(y, fma(-x, y, 1.0), y);\n", ""
    ),
    "nodes_overwritten": (
        MOMENTS, "        __syncthreads();  // nobody reads the last chunk any more\n", ""
    ),
    "groups_forgotten": (MOMENTS, "i < chunk::THREADS; i += across", "i < 0; i += across"),
    "nodes_of_another_piece": (MOMENTS, "const long long at = start + i;", "const int at = i;"),
    "root_not_multiplied": (MOMENTS, "ROOTS ? own * node : own", "own"),
    "not_conjugate": (MOMENTS, "= conj(two);", "= two;"),
}  # fmt: skip


@pytest.mark.parametrize("bug", a_third(BUGS))
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    plant(monkeypatch, tmp_path, cauchy, ["_FORWARD", "_NODES_BACK", "_MOMENTS"], *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def test_without_a_planted_bug_the_facts_hold():
    _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    for order in (0, 1, 7):
        with settings(order=order):
            check("complex64", (3, 70), (3, 70), (300,))
    check_roots("complex64", 5, 300)
    check("complex128", (3,), (3,), (20,))
    test_a_pole_met_exactly_is_infinite_and_nan_where_the_residue_is_zero("complex64")
    test_a_far_number_among_near_ones_changes_only_its_own_terms()
    test_distances_whose_square_leaves_the_range_keep_their_digits("complex64", -0.6)
