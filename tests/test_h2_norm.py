"""Facts of H2 norms: closed forms, both gramians, the integral, digits that cancel."""

import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm import oracle
from refssm.conformance.judging.grading import judge
from refssm.hankel import H2_NORM, H2_NORM_DIAGONAL

U = 2.0**-53
ROOM = 16  # u times the size of the terms, as the judge allows


def system(n=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n)) - 4 * np.eye(n), *rng.standard_normal((2, n))


def test_one_pole_has_the_energy_of_an_exponential():
    # ∫ 36 e^{−t} dt = 36
    assert refssm.h2_norm([[-0.5]], [2.0], [3.0]) == 6.0
    assert refssm.h2_norm_diagonal([-0.5], [2.0], [3.0]) == 6.0


def test_a_damped_oscillator_has_its_closed_form():
    # 1/(s² + 2 z s + 1): ‖G‖₂² = 1/(4 z)
    for z in (0.5, 0.125, 2.0**-7):
        A, B, C = np.array([[0.0, 1.0], [-1.0, -2 * z]]), np.array([0.0, 1.0]), np.array([1.0, 0.0])
        # the solution for the identity has a norm of about 1/z; entries are about 1
        assert abs(refssm.h2_norm(A, B, C) - (4 * z) ** -0.5) <= ROOM * 4 * U * z**-1.5


@pytest.mark.parametrize("seed", range(5))
def test_both_gramians_give_the_norm_and_the_judge_agrees(seed):
    A, B, C = system(seed=seed)
    P, Q = refssm.gramians(A, B, C)
    for energy in (C @ P @ C, B @ Q @ B):
        assert judge(H2_NORM, lambda *_, e=energy: np.asarray(np.sqrt(e)), A, B, C).ok
    w, V = np.linalg.eig(A)
    response = np.linalg.solve(V, B.astype(complex)) * (C @ V)
    of_poles = refssm.h2_norm_diagonal(w, response, np.ones(5))
    size = np.linalg.cond(V) ** 2 * np.linalg.norm(B) * np.linalg.norm(C)
    assert abs(of_poles - refssm.h2_norm(A, B, C)) <= ROOM * 5 * U * size


def test_the_norm_is_the_integral_of_the_squared_response():
    w, B, C = np.array([-1 + 2j, -1 - 2j, -3.0]), np.ones(3), np.array([1 - 1j, 1 + 1j, 0.5])
    with mp.workdps(30):
        v = [mp.mpmathify(x) for x in (B * C).tolist()]
        poles = [mp.mpmathify(x) for x in w.tolist()]

        def squared(t):
            return abs(mp.fsum(a * mp.exp(z * t) for a, z in zip(v, poles, strict=True))) ** 2

        want = mp.sqrt(mp.quad(squared, mp.linspace(0, 60, 61)))  # e^{−60} is below u
        for op, arguments in ((H2_NORM_DIAGONAL, (w, B, C)), (H2_NORM, (np.diag(w), B, C))):
            (got,) = oracle.evaluate(op, *arguments)
            assert abs(mp.mpf(float(got)) - want) <= U * want  # one rounding


def test_opposite_residues_at_close_poles_lose_the_digits_of_their_terms():
    w, B, C = np.array([-1.0, -1.0 - 2.0**-20]), np.ones(2), np.array([1.0, -1.0])
    (exact,) = (float(h) for h in oracle.evaluate(H2_NORM_DIAGONAL, w, B, C))
    d = 2.0**-20  # ∫ (e^{−t} − e^{−(1+d)t})² dt = d²/(2 (1 + d)(2 + d))
    assert abs(exact - d / np.sqrt(2 * (1 + d) * (2 + d))) <= 4 * U * exact
    away = abs(refssm.h2_norm_diagonal(w, B, C) - exact)
    # the four terms of the energy are ½ each, and the root divides by 2 h
    assert away <= ROOM * 4 * U * 0.5 / (2 * exact)
    assert judge(H2_NORM_DIAGONAL, refssm.h2_norm_diagonal, w, B, C).ok


def test_the_norm_is_the_standard_deviation_for_white_noise():
    A, B, C = system(3, seed=7)
    dt, steps = 2.0**-6, 4096
    A_bar, _ = refssm.discretize_zoh(A, B[:, None], dt)
    h = refssm.markov_parameters(A_bar, B, C, l=steps) * dt  # intensity 1: variance 1/dt
    deviation = np.sqrt((h**2).sum() / dt)
    # a rectangle rule with h_0 whole: off by half of its first term, at most
    assert abs(deviation**2 - refssm.h2_norm(A, B, C) ** 2) <= dt * (C @ B) ** 2


def test_without_states_or_inputs_the_norm_and_its_gradients_are_zero():
    assert refssm.h2_norm(np.zeros((0, 0)), np.zeros(0), np.zeros(0)) == 0
    assert refssm.h2_norm_diagonal(*(np.zeros(0),) * 3) == 0
    A, _, C = system(3)
    assert refssm.h2_norm(A, np.zeros(3), C) == 0
    assert all((g == 0).all() for g in refssm.h2_norm_vjp(1.0, A, np.zeros(3), C))


def test_poles_on_the_axis_or_right_of_it_have_no_norm():
    h = refssm.h2_norm_diagonal([[1j, -1], [2, -1], [-2, -1]], [1, 1], [1, 1])
    assert np.isnan(h[:2]).all()
    assert np.isfinite(h[2])


def test_mistakes_are_told_by_operator_argument_wanted_and_came():
    A, B, _ = system(3)
    with pytest.raises(ValueError, match="h2_norm: `C` has n=2, but earlier arguments have n=3"):
        refssm.h2_norm(A, B, [1.0, 2.0])
