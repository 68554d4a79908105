"""(A, B) of a measure by quadrature, and the messages for invalid measures."""

import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm.conformance.standard import C

U = 2.0**-53
long_double = pytest.mark.skipif(
    bool(np.finfo(float).eps <= np.finfo(np.longdouble).eps), reason="no long double here"
)
ONES = np.ones_like


def legendre(k, x):
    """P_k(x) by its recurrence, in the precision of x."""
    before, P = 0 * x, 0 * x + 1
    for j in range(k):
        before, P = P, ((2 * j + 1) * x * P - j * before) / (j + 1)
    return P


def laguerre(k, s):
    """L_k(s) by its recurrence, in the precision of s."""
    before, L = 0 * s, 0 * s + 1
    for j in range(k):
        before, L = L, ((2 * j + 1 - s) * L - j * before) / (j + 1)
    return L


def in_window(w):
    """√(2k+1) P_k(1 − 2s/w)."""
    return lambda k, s: np.sqrt(np.longdouble(2 * k + 1)) * legendre(k, 1 - 2 * s / w)


def waves(w):
    """1, 0, √2 cos, √2 sin, …"""
    turn, root = 8 * np.arctan(np.longdouble(1)) / w, np.sqrt(np.longdouble(2))

    def wave(k, s):
        angle = turn * (k // 2) * s
        return root * np.sin(angle) if k % 2 else root * np.cos(angle) if k else 1

    return wave


def same(made, closed):
    """Equal up to the rounding errors of the closed form, relative to the largest entry."""
    told = zip(made, closed, strict=True)
    return all(np.abs(y - z).max() <= C * U * np.abs(z).max() for y, z in told)


@long_double
@pytest.mark.parametrize("n", [1, 2, 7, 32])
@pytest.mark.parametrize("w", [1.0, 0.75, 20.0])
def test_the_uniform_window_gives_legt(n, w):
    weight = (lambda s: ONES(s) / w, w)
    made = refssm.hippo_from_measure(n=n, basis=in_window(w), weight=weight)
    assert same(made, refssm.hippo_legt(n=n, window=w))


@long_double
@pytest.mark.parametrize("n", [1, 2, 7, 32])
def test_the_uniform_past_gives_legs(n):
    made = refssm.hippo_from_measure_scaled(n=n, basis=in_window(1), weight=(ONES, 1))
    assert same(made, refssm.hippo_legs(n=n))


@long_double
@pytest.mark.parametrize("n", [1, 2, 7, 32])
def test_the_exponential_gives_lagt(n):
    weight = (lambda s: np.exp(-s), np.inf)
    made = refssm.hippo_from_measure(n=n, basis=laguerre, weight=weight)
    assert same(made, refssm.hippo_lagt(n=n))


@long_double
@pytest.mark.parametrize("beta", [0.25, 3.0])
def test_a_tilted_exponential_gives_lagt_of_another_rate(beta):
    def tilted(k, s):
        return laguerre(k, s) * np.exp(-(1 - beta) / 2 * s) / np.sqrt(np.longdouble(beta))

    weight = (lambda s: beta * np.exp(-beta * s), np.inf)
    made = refssm.hippo_from_measure(n=6, basis=tilted, weight=weight)
    assert same(made, refssm.hippo_lagt(n=6, beta=beta))


@long_double
@pytest.mark.parametrize("n", [2, 8, 32])
@pytest.mark.parametrize("w", [1.0, 0.75])
def test_waves_give_the_naive_fourier_window(n, w):
    weight = (lambda s: ONES(s) / w, w)
    made = refssm.hippo_from_measure(n=n, basis=waves(w), weight=weight)
    assert same(made, refssm.hippo_fourier_naive(n=n, window=w))


@long_double
@pytest.mark.parametrize("n", [1, 2, 7, 32])
def test_legs_run_as_it_is_remembers_with_an_exponential_weight(n):
    def warped(k, s):
        return np.sqrt(np.longdouble(2 * k + 1)) * legendre(k, 2 * np.exp(-s) - 1)

    weight = (lambda s: np.exp(-s), np.inf)
    made = refssm.hippo_from_measure(n=n, basis=warped, weight=weight)
    assert same(made, refssm.hippo_legs(n=n))


@long_double
@pytest.mark.parametrize("q", [2, 3], ids=["square", "cube"])
def test_a_power_of_time_scales_legs(q):
    """A measure uniform in σ = (t/T)^q, so t = T σ^p with p = 1/q, has A/p and B/p."""

    def warped(k, s):
        return np.sqrt(np.longdouble(2 * k + 1)) * legendre(k, 2 * (1 - s) ** q - 1)

    weight = (lambda s: q * (1 - s) ** (q - 1), 1)
    made = refssm.hippo_from_measure_scaled(n=8, basis=warped, weight=weight)
    assert same(made, [q * y for y in refssm.hippo_legs(n=8)])


def test_the_square_of_the_memory_time_scales_legs_by_a_half():
    """p = 2: the weight is infinite at the far end; mpmath's quadrature can integrate it."""
    A, B = refssm.hippo_legs(n=4)
    with mp.workdps(20):

        def p(k, r):  # r = √(fraction of the elapsed time): t = T r²
            return mp.sqrt(2 * k + 1) * mp.legendre(k, 2 * r - 1)

        for i in range(4):
            assert abs(p(i, 1) / 2 - B[i] / 2) <= 2 * U * B[i]  # p_i(0) ω(0), ω(0) = ½
            for k in range(4):
                # with s = 1 − r²: ds = −2r dr, ω ds = dr, (1 − s) p_k' = −(r/2) dp_k/dr
                D = mp.quad(lambda r, i=i, k=k: p(i, r) * r / 2 * mp.diff(lambda q: p(k, q), r),
                            [0, 1])  # fmt: skip
                entry = D - p(i, 1) * p(k, 1) / 2
                assert abs(entry - A[i, k] / 2) <= 4 * U * abs(A).max()


FORMS = pytest.mark.parametrize(
    "made", [refssm.hippo_from_measure, refssm.hippo_from_measure_scaled], ids=["plain", "scaled"]
)


@FORMS
def test_a_weight_of_zero_or_infinity_at_the_present_is_told(made):
    for density in (lambda s: s, lambda s: 1 / np.sqrt(s + 0.0)):
        with (
            np.errstate(divide="ignore"),
            pytest.raises(
                ValueError,
                match=f"^{made.__name__}: `weight` must be positive and finite at 0, got",
            ),
        ):
            made(n=2, basis=in_window(1), weight=(density, 1))


@FORMS
@pytest.mark.parametrize("beyond", [-1.0, np.nan, np.inf], ids=str)
def test_a_weight_that_is_none_is_told(made, beyond):
    weight = (lambda s: np.where(s < 0.7, 1, beyond), 1)
    with pytest.raises(ValueError, match=f"^{made.__name__}: `weight` must be finite and not neg"):
        made(n=2, basis=in_window(1), weight=weight)


@FORMS
def test_a_basis_of_another_scale_is_told(made):
    told = f"^{made.__name__}: `basis` must be orthonormal under `weight`, the product of 1 and 1"
    with pytest.raises(ValueError, match=told):
        made(n=2, basis=lambda k, s: legendre(k, 1 - 2 * s), weight=(ONES, 1))


@FORMS
def test_a_basis_that_drops_imaginary_parts_is_told(made):
    told = f"^{made.__name__}: `basis` must keep the imaginary part of s, k=1 is real"
    with pytest.raises(ValueError, match=told):
        made(n=2, basis=lambda k, s: in_window(1)(k, s.real), weight=(ONES, 1))


@FORMS
def test_what_is_no_size_or_support_is_told(made):
    for n in (0, 1.5, True):
        with pytest.raises(ValueError, match=f"^{made.__name__}: `n` must be an integer >= 1"):
            made(n=n, basis=in_window(1), weight=(ONES, 1))
    for end in (0, -1.0, np.nan):
        with pytest.raises(ValueError, match=f"^{made.__name__}: `weight` must end a"):
            made(n=1, basis=in_window(1), weight=(ONES, end))


def test_integrals_that_do_not_settle_are_told():
    steep = lambda s: np.where(s < 1 / 3, 1.5, 0.75)  # noqa: E731
    basis = lambda k, s: [1 + 0 * s, (s - 0.5)][k]  # noqa: E731
    with pytest.raises(ValueError, match=r"^hippo_from_measure: the integrals of `basis` under"):
        refssm.hippo_from_measure(n=2, basis=basis, weight=(steep, 1))
