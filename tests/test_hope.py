"""Facts about HOPE's transfer function and kernels."""

import numpy as np
import pytest

import refssm
from refssm.conformance.judging.grading import judge
from refssm.conformance.planted.hope.transfer import published
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_TRANSFER
from refssm.hope.circle import all_pass, half_angles, slope
from refssm.hope.impulses import all_pass_responses

U = 2.0**-53
STEPS = [1e-4, 1e-3, 0.05, 0.5, 1.0, 3.0, 100.0]
LENGTHS = [1, 2, 3, 8, 31, 64]
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each_step = pytest.mark.parametrize("dt", STEPS)


def normal(n, seed=0, kind: type = float):
    """n normal numbers; complex ones with normal real and imaginary parts."""
    rng = np.random.default_rng(seed)
    h = rng.standard_normal(n)
    return h + 1j * rng.standard_normal(n) if kind is complex else h


@each_role
def test_a_step_of_one_leaves_the_parameters_one_step_late(role):
    K = HOPE_KERNEL.implementation(role)([3.0, 4.0], 1.0, l=5)
    assert K.tolist() == [0, 3, 4, 0, 0]
    assert HOPE_KERNEL.implementation(role)([3.0, 4.0], 1.0, l=2).tolist() == [0, 3]


@pytest.mark.parametrize("l", LENGTHS)
def test_a_step_of_one_gives_the_transform_of_the_parameters(l):
    h = normal(40)
    wrapped = np.zeros(-(-41 // l) * l)
    wrapped[1:41] = h
    wrapped = wrapped.reshape(-1, l).sum(0)
    dt = np.ones(())
    assert judge(HOPE_TRANSFER, lambda *_, l: np.fft.fft(wrapped), h, dt, l=l).ok
    assert judge(HOPE_KERNEL_ALIASED, lambda *_, l: wrapped, h, dt, l=l).ok


@each_step
@each_role
def test_no_step_moves_the_ends_of_the_circle(role, dt):
    G = HOPE_TRANSFER.implementation(role)([1.0, 4.0, 16.0], dt, l=6)
    assert G[0] == 21
    assert G[3] == -1 + 4 - 16


@pytest.mark.parametrize("l", [2, 6, 64, 8192])
def test_the_cosine_of_half_a_half_turn_is_zero(l):
    assert half_angles(l, np.float64(1))[0][l // 2] == 0


@pytest.mark.parametrize("l", LENGTHS)
def test_a_vanishing_step_sends_all_nodes_but_the_first_to_minus_one(l):
    p = all_pass(np.ones(1), np.array(2.0**-900), l)
    assert p[0] == 1
    assert abs(p[1:] + 1).max(initial=0) <= 4 * U  # a quotient of numbers that differ by 2⁻⁹⁰⁰


@each_role
def test_a_real_h_has_conjugate_values_at_conjugate_nodes(role):
    G = HOPE_TRANSFER.implementation(role)(normal(9), 0.2, l=7)
    # the same operations on conjugate numbers; powers by logarithms may round differently: n u Σ|h|
    assert abs(G[1:] - G[:0:-1].conj()).max() <= 9 * U * abs(normal(9)).sum()
    assert G[0].imag == 0


@each_role
@pytest.mark.parametrize("kind", [float, complex])
def test_single_precision_keeps_six_digits_where_the_published_code_keeps_two(role, kind):
    h, l, dt = normal(128, kind=kind), 8192, np.array(1e-3, np.float32)
    h = h.astype(np.complex64 if kind is complex else np.float32)
    exact = refssm.hope_transfer(h.astype(complex), float(dt), l=l)
    scale = abs(exact).max()
    G = HOPE_TRANSFER.implementation(role)(h, dt, l=l)
    assert G.dtype == np.complex64
    assert abs(G - exact).max() < 1e-6 * scale
    theirs = published(h, dt, l=l)
    assert abs(theirs - exact).max() > 5e-3 * scale
    assert judge(HOPE_TRANSFER, lambda *_, l: theirs, h, dt, l=l).verdict == "inaccurate"


@pytest.mark.parametrize("dt", [0.01, 0.25, 1.0, 4.0, 100.0])
def test_every_stage_is_an_all_pass(dt):
    l = int(50 / min(dt, 1 / dt))  # the rest of five stages is e^(−100) times a polynomial of 100
    s = all_pass_responses(np.float64(dt), 5, l)
    # the error of √Σs² is at most the 2-norm of the errors: one rounding per stage and entry, √l 5
    # u, if errors behave as in the judge's rule
    assert abs(np.sqrt((s**2).sum(-1)) - 1).max() <= 16 * 5 * l**0.5 * U


@each_role
def test_a_longer_kernel_begins_like_a_shorter_one(role):
    kernel = HOPE_KERNEL.implementation(role)
    h = normal(20)
    long = kernel(h, 0.03, l=100)
    assert all(np.array_equal(kernel(h, 0.03, l=l), long[:l]) for l in (0, 1, 7, 64))


@pytest.mark.parametrize("l", [1, 2, 16, 31])
@each_role
def test_the_aliased_kernel_is_the_true_one_folded(role, l):
    h, dt = normal(12, kind=complex), np.array(0.4)
    K = HOPE_KERNEL.implementation(role)(h, dt, l=256 * l)
    folded = K.reshape(-1, l).sum(0)
    assert judge(HOPE_KERNEL_ALIASED, lambda *_, l: folded, h, dt, l=l).ok


def test_how_much_comes_around_depends_on_the_length_and_the_step():
    h = normal(64)

    def around(dt, l):
        K, A = refssm.hope_kernel(h, dt, l=l), refssm.hope_kernel_aliased(h, dt, l=l)
        return np.linalg.norm(A - K) / np.linalg.norm(K)

    assert around(0.1, 1024) < 1e-13
    assert around(0.01, 1024) > 0.02
    assert around(0.001, 1024) > 0.02


@each_role
def test_a_gradient_of_the_step_where_it_is_known(role):
    # K_0 = −ρ h_0, K_1 = (1 − ρ²) h_0 and ρ = 0, ρ' = −½ at dt = 1
    for k, slope_of_k in ((0, 0.5), (1, 0.0)):
        dk = np.arange(2) == k
        dh, ddt = HOPE_KERNEL.vjp(role)(dk.astype(float), [3.0], 1.0, l=2)
        assert dh.tolist() == [float(k == 1)]
        assert ddt == 3 * slope_of_k


def test_the_slope_of_the_angle_is_that_of_its_formula():
    l, dt, step = 16, 0.3, 1e-6
    c, s = half_angles(l, np.float64(1))
    ahead, behind = (2 * np.arctan2(s, (dt + d) * c) for d in (step, -step))
    difference = (ahead - behind) / (2 * step)
    # the third derivative is at most 8/dt³; the values are rounded to π u
    bound = 8 / dt**3 * step**2 / 6 + 4 * np.pi * U / step
    assert abs(slope(np.float64(1), np.float64(dt), l) + difference).max() <= bound


def test_the_reference_answers_in_long_double_and_the_mirrors_refuse_it():
    h, dt = np.ones(2, np.longdouble), np.longdouble(0.5)
    assert refssm.hope_transfer(h, dt, l=3).dtype == np.clongdouble
    assert refssm.hope_kernel(h, dt, l=3).dtype == np.longdouble
    for op in (HOPE_TRANSFER, HOPE_KERNEL, HOPE_KERNEL_ALIASED):
        with pytest.raises(TypeError, match="`h` has dtype"):
            op.implementation("jit")(h, dt, l=3)


def test_a_complex_step_is_refused():
    with pytest.raises(TypeError, match="`dt`"):
        refssm.hope_transfer([1.0], 1j, l=3)
