"""Parts of the kernels' mirrors: products in registers, short transforms, blocks, nodes."""

import numpy as np
import pytest
from numba import njit

import refssm.jit.cauchy as cauchy
import refssm.jit.dplr as dplr
import refssm.jit.vandermonde as vandermonde
from refssm.cauchy import (
    CAUCHY_KERNEL,
    RESOLVENT_AT_ROOTS,
    cauchy_kernel,
    cauchy_kernel_vjp,
    resolvent_at_roots,
)
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.dplr import DPLR_KERNEL
from refssm.jit._vectors.tables import COLUMNS, LANES, ROWS, correlate, product
from refssm.jit.dplr.nodes import circle, closest
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL


def right(op, found, cotangent, arguments, **parameters):
    """True if each gradient is within the judge's bound of the reference's."""
    gauged = expect(op, [cotangent, *arguments], parameters, op.bare_vjp)
    return all(compare(g, gauge, g.dtype).ok for g, gauge in zip(found, gauged, strict=True))


@njit
def multiplied(left, right, sums):
    product(left, right, sums)


@pytest.mark.parametrize("k", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("tiles", [1, 2, 5])
def test_the_product_in_registers_is_the_product_of_matrices(k, tiles):
    draw = np.random.default_rng(k).integers
    left, right = (draw(-9, 9, (k, m)).astype(float) for m in (ROWS, tiles * COLUMNS))
    sums = np.full((ROWS, tiles * COLUMNS), np.nan)
    multiplied(left, right, sums)
    assert np.array_equal(sums, left.T @ right)


def test_the_product_in_registers_keeps_nan_and_infinity_in_their_rows_and_columns():
    left, right = np.ones((3, ROWS)), np.ones((3, COLUMNS))
    left[1, 2], right[2, 5] = np.nan, np.inf
    sums = np.empty((ROWS, COLUMNS))
    multiplied(left, right, sums)
    assert np.isnan(sums[2]).all()
    others = np.delete(sums, 2, axis=0)
    assert np.isinf(others[:, 5]).all()
    assert (np.delete(others, 5, axis=1) == 3).all()


@njit
def correlated(left, right, sums):
    correlate(left, right, sums)


@pytest.mark.parametrize(("r", "c", "q"), [(4, 3, 8), (4, 9, 32), (8, 3, 16), (12, 6, 64)])
def test_correlations_in_registers_are_added_to_the_sums(r, c, q):
    draw = np.random.default_rng(r).integers
    left, right = (draw(-9, 9, (m, q)).astype(float) for m in (r, c))
    sums = np.zeros((r * c, LANES))
    for _ in range(2):
        correlated(left, right, sums)
    assert np.array_equal(sums.sum(-1).reshape(r, c), 2 * left @ right.T)


def slow_and_fast(r):
    """Modes from 1e-9 to 1e2, undamped ones, and one with 1 + e = 0 (dt w = −2)."""
    rng = np.random.default_rng(r)
    w = np.array([-1e-9, -1e-3 + 2j, -4.0, 3j, 0.0, -30 + 90j, -1e-3 + 2.0000001j])
    P, B, C = (rng.normal(size=(7, k)) + 1j * rng.normal(size=(7, k)) for k in (r, 1, 1))
    return w, P, P * (1 + 0.5j), B[:, 0], C[:, 0], np.array(0.5)


@pytest.mark.parametrize("l", [0, 1, 2, 15, 16, 17, 32, 33, 255, 256, 257, 559, 560, 577, 1000])
@pytest.mark.parametrize("r", [0, 1, 2])
def test_blocks_of_a_low_rank_system_meet_without_a_gap(r, l):
    arguments, dk = slow_and_fast(r), np.exp(2j * np.arange(l))
    assert judge(DPLR_KERNEL, dplr.dplr_kernel, *arguments, l=l).grade == "A"
    assert right(DPLR_KERNEL, dplr.dplr_kernel_vjp(dk, *arguments, l=l), dk, arguments, l=l)


def test_members_of_a_batch_of_systems_broadcast():
    w, P, Q, B, C, _ = slow_and_fast(1)
    arguments = w * np.ones((2, 1, 1)), P, Q, B * np.ones((3, 1)), C, np.array([0.5, 0.1, 1.0])
    K, dk = dplr.dplr_kernel(*arguments, l=40), np.ones((2, 3, 40)) * 1j
    gradients = dplr.dplr_kernel_vjp(dk, *arguments, l=40)
    assert judge(DPLR_KERNEL, dplr.dplr_kernel, *arguments, l=40).grade == "A"
    assert K.shape == (2, 3, 40)
    assert right(DPLR_KERNEL, gradients, dk, arguments, l=40)


@pytest.mark.parametrize("l", [1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 992, 1008, 1024, 1040, 2064])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_any_length_has_its_short_transform(n, l):
    a = np.exp((-0.1 + 2j) * np.arange(1, n + 1)) * np.linspace(0, 1, n)
    v, dk = np.arange(1, n + 1) * (1 - 1j), np.exp(1j * np.arange(l))
    assert judge(RESOLVENT_AT_ROOTS, cauchy.resolvent_at_roots, v, a, l=l).grade == "A"
    found = cauchy.resolvent_at_roots_vjp(dk, v, a, l=l)
    assert right(RESOLVENT_AT_ROOTS, found, dk, (v, a), l=l)


@pytest.mark.parametrize("l", [32, 2080])
@pytest.mark.parametrize("strange", [1.0, -1.0, 1j, 1e30, np.nan])
def test_a_pole_at_a_node_or_far_away_leaves_the_other_nodes_as_they_are(strange, l):
    a = np.array([[0.5, 0.25], [strange, 0.5j], [0.9j, 0.0]])
    v = np.ones(2) + 0j
    with np.errstate(all="ignore"):
        found = cauchy.resolvent_at_roots(v, a, l=l)
        wanted = resolvent_at_roots(v, a, l=l)
    assert np.array_equal(np.isfinite(found), np.isfinite(wanted))
    whole = np.isfinite(wanted)
    assert np.allclose(found[whole], wanted[whole])
    alone = cauchy.resolvent_at_roots(v, a[0], l=l)
    assert np.array_equal(found[0], alone)


@pytest.mark.parametrize("l", [1, 2, 3, 8, 17, 64, 1000])
def test_the_closest_nodes_are_those_of_an_exhaustive_search(l):
    draw = np.random.default_rng(l).uniform
    w = -(10.0 ** draw(-6, 1, 200)) + 1j * draw(-300, 300, 200)
    dt = np.array(0.05)
    below, above = circle(l)
    D = 2 * below / dt - above * w[:, None]
    reach = 2 * np.sin(np.pi / max(l, 2)) * np.abs(2 / dt - w)
    near = np.abs(D) <= reach[:, None]
    nodes, there = closest(w, dt, l)
    found = np.zeros_like(near)
    for n in range(w.size):
        found[n, nodes[n][np.abs(there[n]) <= reach[n]]] = True
    assert near.any()
    assert np.array_equal(found, near)


@pytest.mark.parametrize("l", [1, 511, 512, 513, 1025])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_blocks_of_nodes_meet_without_a_gap(n, l):
    w, v = -1 - np.arange(n) + 3j, np.arange(1, n + 1) * (1 - 1j)
    z = 1j * np.linspace(-9, 9, l)
    dk = np.exp(1j * np.arange(l))
    assert judge(CAUCHY_KERNEL, cauchy.cauchy_kernel, v, w, z).grade == "A"
    assert right(CAUCHY_KERNEL, cauchy.cauchy_kernel_vjp(dk, v, w, z), dk, (v, w, z))


@pytest.mark.parametrize("l", [1, 63, 64, 65, 129])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 129])
def test_registers_of_nodes_and_groups_of_poles_meet_without_a_gap(n, l):
    w, v = -1 - np.arange(n) + 3j, np.arange(1, n + 1) * (1 - 1j)
    given = (x.astype(np.complex64) for x in (v, w, 1j * np.linspace(-9, 9, l)))
    assert judge(CAUCHY_KERNEL, cauchy.cauchy_kernel, *given).grade == "A"


@pytest.mark.parametrize("modulus", [0.0, 1e-14, 1e-16, 1e-25, 1e17, 1e19, 1e30])
def test_a_node_outside_of_the_safe_range_of_single_precision_is_right(modulus):
    w, v, z = np.array([-1.0 + 0j, -2.0, -3.0]), np.ones(3) + 0j, 1j * np.arange(1.0, 200.0)
    z[70], w[1] = modulus, 0
    v, w, z = (x.astype(np.complex64) for x in (v, w, z))
    with np.errstate(all="ignore"):
        assert judge(CAUCHY_KERNEL, cauchy.cauchy_kernel, v, w, z).grade == "A"
        found, wanted = cauchy.cauchy_kernel(v, w, z), cauchy_kernel(v, w, z)
    assert np.array_equal(np.isfinite(found), np.isfinite(wanted))


@pytest.mark.parametrize("modulus", [0.0, 1e-160, 1e160])
def test_a_node_outside_of_the_safe_range_leaves_the_others_as_they_are(modulus):
    w, v, z = np.array([-1.0 + 0j, -2.0, -3.0]), np.ones(3) + 0j, 1j * np.arange(1.0, 1200.0)
    z[700], w[1] = modulus, 0
    with np.errstate(all="ignore"):
        assert judge(CAUCHY_KERNEL, cauchy.cauchy_kernel, v, w, z).grade == "A"
        found, wanted = cauchy.cauchy_kernel(v, w, z), cauchy_kernel(v, w, z)
        dk = np.ones(z.size)
        gradients, exact = (f(dk, v, w, z) for f in (cauchy.cauchy_kernel_vjp, cauchy_kernel_vjp))
    assert np.array_equal(np.isfinite(found), np.isfinite(wanted))
    for g, e in zip(gradients, exact, strict=True):
        assert np.array_equal(np.isfinite(g), np.isfinite(e))


@pytest.mark.parametrize("other", [0, 2])
@pytest.mark.parametrize("far", [-1.0, -1e69, -1e75, -1e79])
def test_two_poles_that_share_a_division_may_be_far_away(far, other):
    w, z = np.array([far + 0j, other * far]), np.array([3e-158j, 1j, 2 - far])
    v = np.ones(2) + 0j
    assert judge(CAUCHY_KERNEL, cauchy.cauchy_kernel, v, w, z).grade == "A"


@pytest.mark.parametrize("l", [1, 15, 16, 17, 255, 256, 257, 1000])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_blocks_of_time_meet_without_a_gap(n, l):
    x, v = -0.01 * (1 + np.arange(n)) + 0.3j * np.arange(1, n + 1), np.ones(n) * (1 - 2j)
    dk = np.cos(np.arange(l))
    for op, cotangent in ((VANDERMONDE_KERNEL, dk + 0j), (VANDERMONDE_KERNEL_REAL, dk)):
        assert judge(op, getattr(vandermonde, op.name), v, x, l=l).grade == "A"
        found = getattr(vandermonde, f"{op.name}_vjp")(cotangent, v, x, l=l)
        assert right(op, found, cotangent, (v, x), l=l)
