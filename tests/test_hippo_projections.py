"""States that are projections of a known past change as A x + B u states.

The projections are mpmath integrals with analytic derivatives, so nothing here shares a formula
with the references [gu2020hippo].
"""

import mpmath
import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm.conformance.standard import C

U = 2.0**-53
TIMES = (mpmath.mpf("0.35"), mpmath.mpf("0.9"))


def slip(A, B, x, rate, u):
    """|rate − (A x + B u)| in units of u·(|A||x| + |B||u|), rate and x exact."""
    n = len(B)
    worst = mp.mpf(0)
    for i in range(n):
        terms = [mp.mpf(A[i, k]) * x[k] for k in range(n)] + [mp.mpf(B[i]) * u]
        error = abs(rate[i] - mp.fsum(terms))
        worst = max(worst, error / (U * (mp.fsum(map(abs, terms)) + mp.mpf(10) ** -25)))
    return worst


def projected(u, p, density, ends):
    """∫ u(s) p(s) ω(s) ds."""
    return mp.quad(lambda s: u(s) * p(s) * density(s), ends)


def moving(n, basis, density, ends, u, t):
    """Coefficients at t and their rates, from `u` and its analytic derivative."""
    x = [projected(lambda s: u(t - s), lambda s, i=i: basis(i, s), density, ends) for i in range(n)]
    rate = [
        projected(lambda s: mp.diff(u, t - s), lambda s, i=i: basis(i, s), density, ends)
        for i in range(n)
    ]
    return x, rate


@pytest.mark.parametrize("name", ["legt", "lmu"])
@pytest.mark.parametrize("t", TIMES, ids=str)
def test_polynomials_in_a_window_move_as_legt_and_lmu_say(name, t):
    n, w = 4, mp.mpf(0.75)
    A, B = getattr(refssm, f"hippo_{name}")(n=n, window=0.75)
    scale = {
        "legt": lambda i: mp.sqrt(2 * i + 1),
        "lmu": lambda i: (-1) ** i * (2 * i + 1),
    }[name]
    with mp.workdps(25):
        x, rate = moving(
            n, lambda i, s: scale(i) * mp.legendre(i, 1 - 2 * s / w), lambda s: 1 / w, [0, w],
            lambda t: 1 - 3 * t + t**3, t,
        )  # fmt: skip
        assert slip(A, B, x, rate, 1 - 3 * t + t**3) <= 4


@pytest.mark.parametrize("t", TIMES, ids=str)
def test_any_past_moves_as_legs_says(t):
    A, B = refssm.hippo_legs(n=4)
    with mp.workdps(25):

        def coefficient(i, t):
            scale = mp.sqrt(2 * i + 1)
            return mp.quad(lambda s: mp.cos(3 * t * s) * scale * mp.legendre(i, 2 * s - 1), [0, 1])

        x = [coefficient(i, t) for i in range(4)]
        rate = [t * mp.diff(lambda t, i=i: coefficient(i, t), t) for i in range(4)]
        assert slip(A, B, x, rate, mp.cos(3 * t)) <= 4


@pytest.mark.long
@pytest.mark.parametrize(("alpha", "beta"), [(0, 1), (0.5, 0.5), (-0.75, 3)], ids=str)
def test_any_past_moves_as_lagt_says(alpha, beta):
    n, t = 4, TIMES[0]
    A, B = refssm.hippo_lagt(n=n, alpha=alpha, beta=beta)
    with mp.workdps(25):
        a, b = mp.mpf(alpha), mp.mpf(beta)
        total = mp.gamma(1 - a) * b ** (a - 1)
        L = [mp.sqrt(mp.gamma(i + a + 1) / mp.factorial(i)) for i in range(n)]

        # p_i ω: the powers of s and half of the exponentials are combined
        def weighted(i, s):
            tilt = mp.exp(-(1 + b) / 2 * s)
            return mp.laguerre(i, a, s) * tilt / (L[i] * mp.sqrt(total))

        x, rate = moving(n, weighted, lambda s: 1, [0, 5, 20, mp.inf], mp.sin, t)
        assert slip(A, B, x, rate, mp.sin(t)) <= 8


@pytest.mark.parametrize("t", TIMES, ids=str)
def test_what_begins_in_the_window_moves_as_chebt_says(t):
    n, w = 5, 2
    A, B = refssm.hippo_chebt(n=n, window=2.0)
    with mp.workdps(25):

        def coefficient(i, t):
            scale = 2 * mp.sqrt(2) / (mp.pi * w) * (mp.sqrt(2) if i else 1)
            polynomial = lambda s: mp.exp(t - s) * mp.chebyt(i, 1 - 2 * s / w)  # noqa: E731
            return scale * mp.quad(polynomial, [0, t])

        x = [coefficient(i, t) for i in range(n)]
        rate = [mp.diff(lambda t, i=i: coefficient(i, t), t) for i in range(n)]
        assert slip(A, B, x, rate, mp.exp(t)) <= 4


RAMP = (0.5, 2.0)


@pytest.mark.parametrize("w", RAMP, ids=str)
@pytest.mark.parametrize(("name", "share"), [("fourier", 1), ("fourier_naive", 0.5)])
def test_a_ramp_rises_at_its_own_rate_with_the_factor_two_and_at_half_of_it_without(name, share, w):
    """u = t: x_0 = t − w/2; the sines −(t−s → w√2/(2πk)) are constant; x_0' should be 1."""
    n, t = 16, 3.0
    A, B = getattr(refssm, f"hippo_{name}")(n=n, window=w)
    k = np.arange(1, n // 2)
    x = np.zeros(n)
    x[0], x[3::2] = t - w / 2, w * np.sqrt(2) / (2 * np.pi * k)
    rate = A @ x + B * t
    allowed = C * U * (np.abs(A) @ np.abs(x) + np.abs(B) * t)
    cosines = 0 if name == "fourier" else -np.sqrt(0.5)  # rates where all should be 0
    wanted = np.array([share, 0] + [cosines, 0] * (n // 2 - 1))
    assert (np.abs(rate - wanted) <= allowed).all()


def test_a_wave_of_the_window_turns_in_all_fourier_forms():
    w, k, t = 2.0, 3, 0.4
    turn = 2 * np.pi * k / w
    x, rate = np.zeros((2, 16))
    x[6:8] = np.sqrt(0.5) * np.array([np.cos(turn * t), np.sin(turn * t)])  # u = cos(turn·t)
    rate[6:8] = np.sqrt(0.5) * turn * np.array([-np.sin(turn * t), np.cos(turn * t)])
    for made in (refssm.hippo_fourier, refssm.hippo_fourier_naive):
        A, B = made(n=16, window=w)
        allowed = C * U * (np.abs(A) @ np.abs(x) + np.abs(B))
        assert (np.abs(A @ x + B * np.cos(turn * t) - rate) <= allowed).all()
