"""Hankel singular values of diagonal and dense systems: accuracy, edge cases, other libraries."""

import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm import oracle
from refssm.conformance.judging.grading import judge
from refssm.hankel import GRAMIANS, HANKEL_SINGULAR_VALUES, HANKEL_SINGULAR_VALUES_DIAGONAL

U = 2.0**-53
DIGITS = 1e-8  # of every value, however small: the required accuracy
values = refssm.hankel_singular_values_diagonal


def exact(w, B, C):
    """The oracle's values, as mpmath numbers."""
    arguments = [[mp.mpmathify(x) for x in a.tolist()] for a in (w, B, C)]
    return HANKEL_SINGULAR_VALUES_DIAGONAL.implementation("oracle")(*arguments)


def ones(n):
    return np.ones(n), np.ones(n)


def systems():
    """Poles that are separate, in a ladder, crowded, and initial poles of models."""
    rng, k = np.random.default_rng(0), np.arange(16)
    phases = np.exp(2j * np.pi * rng.random((2, 16)))
    return {
        "falling": (-(1 + 0.3 * k), *ones(16)),
        "signs": (-(1 + 0.3 * k), *ones(16)[:1], (-1.0) ** k),
        "ladder": (-0.5 + 1j * np.pi * k, *ones(16)),
        "inverse": (-0.5 + 16j / np.pi * (16 / (2 * k + 1) - 1), *ones(16)),
        "crowded": (-1 - 1e-4 * rng.random(16) + 1e-4j * rng.random(16), *phases),
        "wide": (-(10.0 ** rng.uniform(-2, 2, 16)) + 1j * k, *phases),
        "unbalanced": (-(1 + 0.3 * k), 10.0 ** rng.uniform(-3, 3, 16), 10.0 ** (k / 4 - 2)),
    }


@pytest.mark.parametrize("name", systems())
def test_every_value_keeps_eight_digits_however_small(name):
    system = systems()[name]
    for got, want in zip(values(*system).tolist(), exact(*system), strict=True):
        assert abs(got - want) <= DIGITS * want


def test_of_sixteen_poles_the_smallest_value_is_5e_26_and_the_usual_route_returns_noise():
    w, B, C = systems()["falling"]
    sigma, usual = values(w, B, C), refssm.hankel_singular_values(np.diag(w), B, C)
    assert f"{sigma[-1]:.1e}" == "5.3e-26"
    wanted = np.array([float(x) for x in exact(w, B, C)])
    assert abs(usual[-1] - wanted[-1]) > 1e3 * DIGITS * wanted[-1]
    assert (np.abs(usual - wanted)[:5] <= DIGITS * wanted[:5]).all()


def test_the_initialisations_of_models_have_the_values_that_are_known():
    k, (B, C) = np.arange(64), ones(64)
    told = {
        "S4D-Lin": (-0.5 + 1j * np.pi * k, ("1.2", "0.85")),
        "LegS": (refssm.nplr_legs(n=64)[0], ("1.9", "0.026")),
        "S4D-Inv": (-0.5 + 64j / np.pi * (64 / (2 * k + 1) - 1), ("7.2", "5.1e-07")),
    }
    for w, ends in told.values():
        sigma = values(w, B, C)
        assert (f"{sigma[0]:.2g}", f"{sigma[-1]:.2g}") == ends


def test_one_pole_has_the_value_of_its_residue_over_twice_its_decay():
    assert values([-0.5], [2.0], [3.0]).tolist() == [6.0]
    (turned,) = values([-0.25 + 7j], [2j], [3.0])
    assert abs(turned - 12) <= 16 * U * 12  # a quotient of complex numbers rounds


def test_a_mode_that_is_not_reached_has_the_value_zero():
    sigma = values([-1.0, -2.0, -5.0], [1.0, 0.0, 1.0], [1.0, 3.0, 1.0])
    assert sigma[2] == 0
    # without the mode: the same operations on the others, except sums with exact zeros
    assert sigma[:2].tolist() == values([-1.0, -5.0], [1.0, 1.0], [1.0, 1.0]).tolist()


def test_two_equal_poles_are_one():
    first, second = values([-1.0, -1.0], [1.0, 1.0], [2.0, 1.0])
    assert abs(first - 1.5) <= 16 * U * 1.5
    assert second == 0
    cancelled = values([-1.0, -1.0], [1.0, 1.0], [2.0, -2.0])
    assert (cancelled <= 16 * U * 2).all()  # each of the two residues has a rounding error


def test_values_below_the_smallest_number_are_zero_or_subnormal():
    w = (-1 - 1e-3 * np.random.default_rng(1).random(16)).astype(np.float32)
    sigma = values(w, *(x.astype(np.float32) for x in ones(16)))
    assert sigma.dtype == np.float32
    assert sigma[-1] < np.finfo(np.float32).tiny
    assert (np.diff(sigma) <= 0).all()


def test_nan_in_one_system_leaves_the_others_their_digits():
    w = np.stack([systems()["wide"][0]] * 2)
    B, C = systems()["wide"][1:]
    broken = w.copy()
    broken[0, 3] = np.nan
    sigma = values(broken, B, C)
    assert np.isnan(sigma[0]).all()
    assert (np.abs(sigma[1] - values(w[1], B, C)) <= DIGITS * sigma[1]).all()


def test_single_precision_keeps_the_digits_of_single_precision():
    system = [x.astype("c8") for x in systems()["ladder"]]
    assert judge(HANKEL_SINGULAR_VALUES_DIAGONAL, values, *system).grade == "A"


def test_a_dense_diagonal_system_has_the_values_of_the_diagonal_one():
    rng = np.random.default_rng(2)
    w = -(0.5 + rng.random(5))
    B, C = rng.standard_normal((2, 5))

    def of_the_diagonal(A, B, C):
        return values(np.diagonal(A), B, C)

    assert judge(HANKEL_SINGULAR_VALUES, of_the_diagonal, np.diag(w), B, C).grade == "A"


def test_the_squares_add_up_to_the_trace_of_p_q():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((4, 4)) - 4 * np.eye(4)
    B, C = rng.standard_normal((2, 4))
    P, Q = refssm.gramians(A, B, C)
    sigma = refssm.hankel_singular_values(A, B, C)
    size = np.linalg.norm(P) * np.linalg.norm(Q)
    assert abs((sigma**2).sum() - np.trace(P @ Q)) <= 16 * 4**2 * 2.0**-53 * size  # n² products


def test_no_states_have_no_values_and_the_norm_zero():
    empty = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    assert refssm.hankel_singular_values(*empty).shape == (0,)
    assert values(*(np.zeros(0),) * 3).shape == (0,)
    assert refssm.hankel_norm(*empty) == 0


def test_the_oracle_agrees_with_a_value_known_in_closed_form():
    # P = [[1/2, 1/3], [1/3, 1/4]] = Q: σ are its eigenvalues
    w, B, C = np.array([-1.0, -2.0]), *ones(2)
    (sigma,) = oracle.evaluate(HANKEL_SINGULAR_VALUES_DIAGONAL, w, B, C)
    with mp.workdps(oracle.VALUE_DIGITS):
        root = mp.sqrt(mp.mpf(1) / 64 + mp.mpf(1) / 9)
        for got, sign in zip(sigma, (1, -1), strict=True):
            want = mp.mpf(3) / 8 + sign * root
            assert abs(mp.mpf(float(got)) - want) <= U * want  # one rounding to double precision


def test_python_control_agrees_where_it_has_digits():
    control = pytest.importorskip("control")
    pytest.importorskip("slycot")
    w, B, C = systems()["falling"]
    with np.errstate(invalid="ignore"):
        theirs = control.hsvd(control.ss(np.diag(w), B[:, None], C[None], 0))
    ours = values(w, B, C)
    # they use the square root of the spectrum of P Q: the squares have errors of some u σ_1²
    bound = 16 * 16**2 * 2.0**-53 * ours[0] ** 2
    theirs = np.sort(np.nan_to_num(theirs))[::-1]  # NaN for some values near 0
    assert (np.abs(theirs**2 - ours**2) <= bound).all()
    assert theirs[-1] < 0.5 * ours[-1] or theirs[-1] > 2 * ours[-1]  # no digit is correct


def test_python_control_has_nan_for_a_value_of_zero():
    # if this test fails, docs/findings.md is out of date
    control = pytest.importorskip("control")
    pytest.importorskip("slycot")
    # which of the systems fails depends on the processor
    B, C = np.array([1.0, 0.0]), np.ones(2)  # C is a left eigenvector of A, to −(k + 1)/32
    answers = {}
    for k in range(2, 100):
        A = -np.array([[k, 1.0], [1.0, k]]) / 32
        with np.errstate(invalid="ignore"):
            answers[k] = np.asarray(control.hsvd(control.ss(A, B[:, None], C[None], 0)))
    k, theirs = next((k, x) for k, x in answers.items() if np.isnan(x[0]))
    A, exact = -np.array([[k, 1.0], [1.0, k]]) / 32, np.array([16 / (k + 1), 0.0])
    assert judge(HANKEL_SINGULAR_VALUES, lambda *_: exact, A, B, C).ok
    assert judge(HANKEL_SINGULAR_VALUES, refssm.hankel_singular_values, A, B, C).ok
    assert not judge(HANKEL_SINGULAR_VALUES, lambda *_: theirs, A, B, C).ok


def test_the_oracle_refuses_modes_that_grow():
    A = np.array([[-0.125, 0.25], [0.25, -0.0625]])
    for op in (HANKEL_SINGULAR_VALUES, GRAMIANS):
        with pytest.raises(ValueError, match="no gramian: want an A whose modes all decay"):
            oracle.evaluate(op, A, np.ones(2), np.ones(2))
