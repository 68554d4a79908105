"""One model in several forms: S4's kernel, matrix powers, diagonal kernels and scans."""

import numpy as np
import pytest

import refssm
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.standard import C as ALLOWED
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR
from refssm.dplr import DPLR_KERNEL

U = 2.0**-53
LONG = {"n": 64, "l": 4096, "dt": 1e-3}
MEASURES = ("legs", "legt", "lagt", "fourier", "fourier_naive")


def difference(k, wanted):
    """‖k − wanted‖ / ‖wanted‖ over the whole length."""
    return np.linalg.norm(k - wanted) / np.linalg.norm(wanted)


def dense(measure, n, dt):
    """A and B of a measure in its own basis, by the bilinear rule."""
    A, B = getattr(refssm, f"hippo_{measure}")(n=n)
    A_bar, B_bar = refssm.discretize_bilinear(A, B[:, None], dt)
    return A_bar, B_bar[:, 0]


def split(measure, n, read):
    """w, P, P, B and C of the same system in its modes."""
    w, P, B, V = getattr(refssm, f"nplr_{measure}")(n=n)
    return w, P, P, B, read @ V


@pytest.mark.parametrize("measure", MEASURES)
def test_the_kernel_among_the_modes_is_that_of_powers_of_the_dense_matrix(measure):
    n, l, dt = LONG.values()
    read = np.random.default_rng(5).standard_normal(n)
    wanted = refssm.krylov_kernel(*dense(measure, n, dt), read, l=l)
    k = refssm.dplr_kernel(*split(measure, n, read), dt, l=l)
    assert difference(k, wanted) <= 1e-12  # the required accuracy
    assert np.abs(k.imag).max() <= 1e-12 * np.abs(wanted).max()
    other = refssm.dplr_kernel(*split("lagt", n, read), dt, l=l)
    assert measure == "lagt" or difference(other, wanted) > 0.1  # LagT uses another measure


@pytest.mark.parametrize("l", [1, 2, 7, 64, 255])
def test_rank_zero_is_the_bilinear_kernel_of_the_diagonal_system(l):
    rng, dt = np.random.default_rng(l), np.array(0.1)
    w = -rng.random(6) + 20j * rng.standard_normal(6)
    B, C = rng.standard_normal((2, 6)) + 1j * rng.standard_normal((2, 6))
    none = np.zeros((6, 0), complex)
    k = refssm.dplr_kernel(w, none, none, B, C, dt, l=l)
    arrays, nothing = [w, B, C, dt], [w, none, none, B, C, dt]
    ours = bounds(DPLR_KERNEL, nothing, {"l": l}, None, unit=U, floor=0.0)[0]
    theirs = bounds(DIAGONAL_KERNEL_BILINEAR, arrays, {"l": l}, None, unit=U, floor=0.0)[0]
    wanted = refssm.diagonal_kernel_bilinear(*arrays, l=l)
    assert (np.abs(k - wanted) <= ALLOWED * U * (ours.k0 + theirs.k0)).all()


def test_a_convolution_with_the_kernel_is_the_recurrence_read_out():
    n, l, dt = 16, 300, 1e-2
    rng = np.random.default_rng(2)
    read, u = rng.standard_normal((2, max(n, l)))
    k = refssm.dplr_kernel(*split("legs", n, read[:n]), dt, l=l).real
    A_bar, B_bar = dense("legs", n, dt)
    x = refssm.dense_scan(A_bar, u[:l, None] * B_bar)
    assert difference(refssm.causal_convolution(u[:l], k), x @ read[:n]) <= 1e-12


def test_s5_with_one_state_is_the_sum_of_the_states_that_s4_gives_each_input():
    n, l, dt = 8, 50, 0.05
    rng = np.random.default_rng(3)
    w, *_ = refssm.nplr_legs(n=n)
    B, u = rng.standard_normal((n, 3)) + 0j, rng.standard_normal((l, 3))
    a, B_bar = refssm.discretize_diagonal_bilinear(w, B, np.full(n, dt))
    read, nothing = np.ones((1, n)) + 0j, np.zeros((1, 3)) + 0j
    y = refssm.diagonal_ssm(a, B_bar, read, nothing, u)[:, 0]
    ones = np.ones(n)
    kernels = refssm.diagonal_kernel_bilinear(w, B.T, ones, dt, l=l)
    each = refssm.causal_convolution_direct(u.T, kernels)
    assert difference(each.sum(0), y) <= 1e-12
