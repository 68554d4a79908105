"""Facts of reconstruction from Fourier and Laguerre memories, and of the error bounds."""

import numpy as np
import pytest
from memories import fourier, lagt, legt
from mpmath import mp
from scipy.special import gamma

import refssm
from refssm._numerics.polynomials import laguerre, legendre, recurrence
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.gauges.linalg import two_norm
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C
from refssm.hippo import (
    HIPPO_PROJECT_LEGS,
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
)
from refssm.hippo.memory import exponential_states, held_input, held_states

U = 2.0**-53
RECONSTRUCTIONS = (
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_FOURIER,
)


def right(op, value, *arrays, **statics):
    """True if the judge accepts `value` as the output of the operator."""
    return judge(op, lambda *_, **__: value, *map(np.asarray, arrays), **statics).ok


def test_a_constant_comes_back_from_lagt_only_at_its_simplest():
    A, B = lagt(6)
    assert np.linalg.solve(-A, B).tolist() == [1, 0, 0, 0, 0, 0]  # the limit for a constant signal
    s = np.array([0.0, 0.5, 3.0])
    c = np.eye(6)[0]
    assert refssm.hippo_reconstruct_lagt(c, s).tolist() == [1, 1, 1]
    A, B = lagt(6, beta=2.0)
    y = refssm.hippo_reconstruct_lagt(np.linalg.solve(-A, B), s, beta=2.0)
    assert np.abs(y - 1).max() > 1e3 * U  # only 6 terms of an infinite series


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 1.0), (0.5, 1.0), (-0.5, 2.0), (0.25, 0.5)])
def test_what_lagt_gives_back_it_takes_for_the_same_states(alpha, beta):
    # the kernel of state i is its basis function p_i times the weight: ∫ kernel_i p_k = δ_ik
    n, times = 4, np.array([0.25, 1.0, 4.0])
    with mp.workdps(30):
        A, B = (mp.matrix(x.tolist()) for x in lagt(n, alpha, beta))
        kernels = np.array(
            [(mp.expm(mp.mpf(float(s)) * A) * B).T.tolist()[0] for s in times], float
        )
    weight = beta ** (1 - alpha) / gamma(1 - alpha) * times**-alpha * np.exp(-beta * times)
    p = (kernels / weight[:, None]).T
    assert right(HIPPO_RECONSTRUCT_LAGT, p, np.eye(n), times, alpha=alpha, beta=beta)


def test_fourier_waves_come_back_at_every_time():
    window, c = 2.0, np.array([1.0, 0.0, 0.5, -0.25, 0.0, 2.0])
    s = np.linspace(0, 2, 41)
    turns = 2 * np.pi * s / window
    y = 1 + np.sqrt(2) * (0.5 * np.cos(turns) - 0.25 * np.sin(turns) + 2 * np.sin(2 * turns))
    assert right(HIPPO_RECONSTRUCT_FOURIER, y, c, s, window=window)


@pytest.mark.parametrize("ends", [1, 2])
def test_a_wave_of_the_window_solves_both_fourier_equations(ends):
    # its coefficients rotate, x' = S x, and s = 0 and s = w have the same value: bᵀ x = u
    window, n = 2.0, 8
    c = np.random.default_rng(3).standard_normal(n)
    u = refssm.hippo_reconstruct_fourier(c, [0.0], window=window)
    A, B = fourier(n, window, ends)
    rotation = (refssm.hippo_fourier_diagonal(n=n)[0] + np.eye(n) / 2) / window
    size = (np.abs(A) + np.abs(rotation)) @ np.abs(c) + np.abs(B * u)
    assert (np.abs(A @ c + B * u - rotation @ c) <= C * (n + 2) * U * size).all()


@pytest.mark.parametrize("n", [8, 64])
def test_at_the_ends_of_the_window_fourier_gives_their_mean(n):
    # u(t − s) = s over [0, 1]: mean ½, sines −√2/2πk, no cosines
    k = np.arange(1, n // 2)
    c = np.zeros(n)
    c[0], c[3::2] = 0.5, -np.sqrt(2) / (2 * np.pi * k)
    y = refssm.hippo_reconstruct_fourier(c, [0.0, 0.5, 1.0])
    assert y[0] == 0.5
    assert right(HIPPO_RECONSTRUCT_FOURIER, np.full(3, 0.5), c, [0.0, 0.5, 1.0])


TABLE = {16: (0.24, 0.033), 64: (0.25, 0.0070), 256: (0.25, 0.0017)}


@pytest.mark.parametrize("n", TABLE)
def test_the_naive_fourier_window_is_stuck_and_the_midpoint_form_is_not(n):
    def u(t):
        return np.sin(1.4 * np.pi * t) + 0.3 * t

    l, s = 2048, np.linspace(0.05, 0.95, 2001)
    errors = []
    for ends in (1, 2):
        x = refssm.hippo_project(*fourier(n, 1.0, ends), u((np.arange(l) + 0.5) / l), 1 / l)[-1]
        y = refssm.hippo_reconstruct_fourier(x, s)
        errors.append(float(f"{np.sqrt(np.mean((y - u(1 - s)) ** 2)):.1e}"))
    assert tuple(errors) == TABLE[n]


@pytest.mark.parametrize("op", RECONSTRUCTIONS, ids=str)
def test_one_coefficient_alone_is_its_basis_function(op):
    s = np.array([0.0, 0.3, 1.0])
    firsts = {"fourier": 1.0, "lmu": 1.0}
    y = op.implementation("reference")(np.eye(4)[:1, :1] * 2.5, s)
    assert y.tolist() == [[2.5 * firsts.get(op.name.rpartition("_")[2], 1.0)] * 3]


@pytest.mark.parametrize("window", [0.0, -1.0, np.nan, np.inf, True, "1"])
def test_a_window_that_is_none_is_refused(window):
    with pytest.raises(ValueError, match="`window` must be a number above 0, got"):
        refssm.hippo_reconstruct_legt([1.0], [0.0], window=window)


@pytest.mark.parametrize("alpha", [-1.0, 1.0, np.nan])
def test_an_exponent_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="`alpha` must be a number above −1 and below 1"):
        refssm.hippo_reconstruct_lagt([1.0], [0.0], alpha=alpha)


def test_at_time_zero_the_laguerre_weight_is_zero_or_infinite():
    assert refssm.hippo_reconstruct_lagt([1.0], [0.0], alpha=0.5).tolist() == [0]
    assert refssm.hippo_reconstruct_lagt([1.0], [0.0], alpha=-0.5).tolist() == [np.inf]


@pytest.mark.parametrize("n", [2, 9, 64])
def test_the_bound_of_a_legendre_recurrence_holds_and_is_no_more_than_its_own_by_far(n):
    x = np.concatenate([np.linspace(-1, 1, 201), [0.999999, -0.999999]]).astype(np.float32)
    single = legendre(x, n).astype(float)
    wide = legendre(x.astype(float), n)
    (closed,) = gauges(lambda z: legendre(z, n), x, unit=2.0**-24)
    i = np.arange(n, dtype=float)
    (solved,) = gauges(
        lambda z: recurrence(z, (2 * i + 1) / (i + 1), 0 * i, i / (i + 1)), x, unit=U
    )
    assert (np.abs(single - wide) <= 2.0**-24 * closed.k0).all()
    assert (solved.k0 <= 1.01 * closed.k0 + 1).all()  # the closed form bounds the solved one
    assert n < 9 or (closed.k0 < (1 + np.sqrt(2)) ** n).all()  # the bound from moduli alone


def test_the_bound_of_a_laguerre_recurrence_holds():
    s = np.linspace(0, 30, 101).astype(np.float32)
    single, wide = laguerre(s, 40, 0.5).astype(float), laguerre(s.astype(float), 40, 0.5)
    (told,) = gauges(lambda z: laguerre(z, 40, 0.5), s, unit=2.0**-24)
    assert (np.abs(single - wide) <= 2.0**-24 * told.k0).all()
    assert (told.k0 < 1e4 * np.maximum(np.abs(wide).max(-1, keepdims=True), 1)).all()


@pytest.mark.parametrize("n", [1, 4, 12])
def test_the_bound_of_the_states_of_an_exponential_holds_and_does_not_grow_with_time(n):
    F, B = (x * 0.25 for x in legt(n))
    b = np.random.default_rng(1).standard_normal((200, 1)) * B
    wide = exponential_states(F, b)
    single = exponential_states(F.astype("f4"), b.astype("f4"))
    (told,) = gauges(exponential_states, F, b, unit=2.0**-24)
    errors = np.linalg.norm(single - wide, axis=-1)
    assert (errors <= 2.0**-24 * told.k1[:, 0]).all()  # the arguments are also rounded
    assert told.k0[100:].max() < 2 * told.k0[:100].max()


def test_the_bound_of_the_states_of_a_held_signal_holds():
    F, H = (x * 0.25 for x in legt(6))
    u = np.random.default_rng(2).standard_normal(100)
    (told,) = gauges(held_states, F, H, u, unit=2.0**-24)
    single = held_states(*(x.astype("f4") for x in (F, H, u)))
    errors = np.linalg.norm(single - held_states(F, H, u), axis=-1)
    assert (errors <= 2.0**-24 * told.k1[:, 0]).all()
    assert (told.k1 < 1e4 * np.abs(u).max()).all()  # some digits of single precision are required


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0, 4.0])
def test_the_bound_of_a_held_input_is_that_of_the_turns_it_went_through(turns):
    # φ₁ of a whole turn is 0, but it is computed from halves that are not 0
    F = 2 * np.pi * turns * np.array([[0.0, -1.0], [1.0, 0.0]])
    (told,) = gauges(held_input, F, np.ones(2), unit=2.0**-24)
    single = held_input(F.astype("f4"), np.ones(2, "f4"))
    error = np.linalg.norm(single - held_input(F, np.ones(2)))
    assert error <= 2.0**-24 * told.k1[0]
    assert told.k0[0] > 1


def test_a_contract_in_norm_gives_every_entry_of_a_state_the_same_bound():
    (gauge,) = expect(HIPPO_PROJECT_LEGS, [np.array([1.0, -2.0, 0.5])], {"n": 4})
    assert (gauge.k0 == gauge.k0[:, :1]).all()
    (entries,) = gauges(HIPPO_PROJECT_LEGS.reference, np.array([1.0, -2.0, 0.5]), n=4, unit=U)
    assert np.array_equal(gauge.k0[:, 0], two_norm(entries.k0)[:, 0])
    tiny = two_norm(np.full((1, 3), 1e-300))
    assert tiny[0, 0] > 1.7e-300  # their squares are zero
