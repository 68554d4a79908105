"""Parts of the kernels' mirrors: products in registers, powers, nodes near poles, blocks."""

import numpy as np
import pytest
from numba import njit

import refssm.jit.cauchy as cauchy
import refssm.jit.vandermonde as vandermonde
from refssm.cauchy import CAUCHY_KERNEL, cauchy_kernel, cauchy_kernel_vjp
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.jit._tiles import COLUMNS, ROWS, product
from refssm.jit.dplr.nodes import circle
from refssm.jit.dplr.powers import STEPS, truncated
from refssm.jit.dplr.transfer import closest
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL

ROUNDING = 2.0**-53


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


@pytest.mark.parametrize("l", [1, 2, STEPS - 1, STEPS, STEPS + 1, 5 * STEPS + 3, 1000, 4096])
def test_a_truncated_output_keeps_the_digits_of_slow_modes(l):
    rates = np.array([1e-14, 1e-9, 1e-3, 0.5, 1.0])
    C, turn = np.ones(5) + 0j, np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    wanted = -np.expm1(l * np.log1p(-np.minimum(rates, 0.999)))
    E = np.diag(np.minimum(rates, 0.999)) + 0j
    found = truncated(E, C, np.float64(l))
    assert np.max(np.abs(found / wanted - 1)) < 16 * l * ROUNDING  # one mode after the other
    naive = C - C @ np.linalg.matrix_power(np.eye(5) - E, l)
    assert np.abs(naive / wanted - 1)[0] > 16 * l * ROUNDING  # the planted bug: I − Ā^l cancels
    dense = truncated(turn @ E @ turn.T, C @ turn.T, np.float64(l)) @ turn
    assert np.max(np.abs(dense - wanted)) < 16 * l * ROUNDING


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


@pytest.mark.parametrize("l", [1, 15, 16, 17, 255, 256, 257, 1000])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_blocks_of_time_meet_without_a_gap(n, l):
    x, v = -0.01 * (1 + np.arange(n)) + 0.3j * np.arange(1, n + 1), np.ones(n) * (1 - 2j)
    dk = np.cos(np.arange(l))
    for op, cotangent in ((VANDERMONDE_KERNEL, dk + 0j), (VANDERMONDE_KERNEL_REAL, dk)):
        assert judge(op, getattr(vandermonde, op.name), v, x, l=l).grade == "A"
        found = getattr(vandermonde, f"{op.name}_vjp")(cotangent, v, x, l=l)
        assert right(op, found, cotangent, (v, x), l=l)
