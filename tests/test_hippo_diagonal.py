"""Facts of the initial poles of diagonal models."""

import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm.conformance.standard import C

U = 2.0**-53
POLES = [refssm.s4d_lin, refssm.s4d_inv, refssm.s4d_quad, refssm.s4d_real, refssm.s4d_legs]
each = pytest.mark.parametrize("made", POLES, ids=lambda f: f.__name__)


def imaginary(name, k, n):
    """Im w_k by the published formula."""
    N = 2 * n
    return {
        "s4d_lin": mp.pi * k,
        "s4d_inv": N / mp.pi * (mp.mpf(N) / (2 * k + 1) - 1),
        "s4d_quad": mp.mpf(1 + 2 * k) ** 2 / mp.pi,
    }[name]


@pytest.mark.parametrize("made", POLES[:3], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [1, 5, 32])
def test_closed_forms_have_all_their_digits(made, n):
    w = made(n=n)
    assert (w.dtype, w.shape) == (np.complex128, (n,))
    assert np.array_equal(w.real, np.full(n, -0.5))
    with mp.workdps(30):
        for k, y in enumerate(w.imag):
            exact = imaginary(made.__name__, k, n)
            assert abs(y - exact) <= 4 * U * abs(exact)


def test_the_last_mode_of_inv_has_its_digits_though_its_terms_cancel():
    w = refssm.s4d_inv(n=2**20)
    with mp.workdps(30):
        exact = imaginary("s4d_inv", 2**20 - 1, 2**20)
        assert abs(w[-1].imag - exact) <= 4 * U * exact


def test_real_poles_are_the_diagonal_of_legs():
    w = refssm.s4d_real(n=7)
    assert w.dtype == np.float64
    assert np.array_equal(w, np.diag(refssm.hippo_legs(n=7)[0]))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_poles_of_legs_are_eigenvalues_of_its_normal_part(n):
    with mp.workdps(30):
        r = [mp.sqrt(2 * i + 1) for i in range(2 * n)]
        S = mp.matrix(2 * n, 2 * n)
        for i in range(2 * n):
            for k in range(i):
                S[i, k], S[k, i] = 0.5j * r[i] * r[k], -0.5j * r[i] * r[k]
        values = sorted(mp.eighe(S, eigvals_only=True))
        w = refssm.s4d_legs(n=n)
        assert np.array_equal(w.real, np.full(n, -0.5))
        allowed = C * 2 * n * U * values[-1]
        for y, exact in zip(w.imag, values[n:], strict=True):
            assert abs(y - exact) <= allowed


def test_a_pair_of_legs_by_hand():
    """[[−½, √3/2], [−√3/2, −½]]: rotation by a third of a turn."""
    (w,) = refssm.s4d_legs(n=1)
    assert abs(w - (-0.5 + 0.5j * np.sqrt(3))) <= C * 2 * U


@pytest.mark.parametrize("n", [16, 64])
def test_the_poles_of_legs_are_those_of_a_normal_matrix(n):
    A, B = refssm.hippo_legs(n=2 * n)
    w = refssm.s4d_legs(n=n)
    normal = A + np.outer(B, B) / 2
    assert (np.diff(w.imag) > 0).all()
    assert w[0].imag > 0
    both = np.append(w, w.conj())
    assert abs((both**2).sum() - np.trace(normal @ normal)) <= C * 2 * n * U * (
        np.linalg.norm(normal) ** 2
    )


@each
@pytest.mark.parametrize("n", [0, -3, 2.0, None, True], ids=repr)
def test_what_is_no_size_is_told(made, n):
    with pytest.raises(ValueError, match=f"^{made.__name__}: `n` must be an integer >= 1, got "):
        made(n=n)


def draws(n, seed=5):
    """Two rows of random numbers from 0 to 1."""
    return np.random.default_rng(seed).random((2, n))


def test_the_ring_is_filled_uniformly():
    a, gamma = refssm.lru_ring(*draws(4000), r_min=0.5, r_max=0.9)
    square = np.abs(a) ** 2
    assert ((square >= 0.25 - 4 * U) & (square <= 0.81 + 4 * U)).all()
    u1, u2 = draws(4000)
    assert (np.abs((square - 0.25) / 0.56 - u1) <= 16 * U).all()  # u1 is the fraction of the area
    assert (np.abs(np.exp(2j * np.pi * u2) * np.abs(a) - a) <= 8 * U).all()
    assert (np.abs(gamma**2 + square - 1) <= 8 * U).all()


def test_draws_of_exactly_zero_and_one():
    a, gamma = refssm.lru_ring([0.0, 1.0], [0.0, 0.0])
    assert a.tolist() == [0, 1]
    assert gamma.tolist() == [1, 0]
    a, gamma = refssm.lru_ring([0.0, 1.0], [1.0, 1.0], r_min=0.5, r_max=1.0, max_phase=0.0)
    assert a.tolist() == [0.5, 1]
    assert gamma.tolist() == [np.sqrt(0.75), 0]


@pytest.mark.parametrize("gap", [2.0**-10, 2.0**-40, 2.0**-53])
def test_gamma_has_its_digits_next_to_the_unit_circle(gap):
    (_, _), gamma = refssm.lru_ring([0.0, 1.0], [0.0, 0.0], r_min=1 - 2 * gap, r_max=1 - gap)
    with mp.workdps(40):
        for y, distance in zip(gamma, (2 * gap, gap), strict=True):
            exact = mp.sqrt(1 - (1 - mp.mpf(distance)) ** 2)
            assert abs(y / exact - 1) <= 4 * U


def test_the_modulus_has_its_digits_next_to_zero():
    for tiny in (2.0**-60, 2.0**-500):
        a, gamma = refssm.lru_ring([tiny], [0.0])
        assert a == np.sqrt(tiny)
        assert gamma == 1


@pytest.mark.parametrize("u", [-0.1, 1.5, np.nan])
@pytest.mark.parametrize("place", [0, 1], ids=["u1", "u2"])
def test_a_draw_beyond_the_unit_interval_is_told(place, u):
    given = [np.array([0.5, 0.5]), np.array([0.5, 0.5])]
    given[place][1] = u
    with pytest.raises(ValueError, match=f"^lru_ring: `u{place + 1}` must be from 0 to 1, got "):
        refssm.lru_ring(*given)


@pytest.mark.parametrize("bounds", [(0.9, 0.5), (-0.1, 0.5), (0.5, 1.1), (np.nan, 1)], ids=str)
def test_what_is_no_ring_is_told(bounds):
    with pytest.raises(ValueError, match=r"^lru_ring: `r_min` and `r_max` must satisfy 0 <= r_min"):
        refssm.lru_ring([0.5], [0.5], r_min=bounds[0], r_max=bounds[1])


def test_draws_of_different_shapes_are_told():
    with pytest.raises(ValueError, match=r"^lru_ring: `u2` has shape \(2,\), but `u1` has \(3,\)"):
        refssm.lru_ring([0.5] * 3, [0.5] * 2)
