"""DSS, Mega's average and the shift: limits, equalities, and the effect of epsilons."""

import numpy as np
import pytest

import refssm
import refssm.jit.diagonal as jit
from refssm import diagonal
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.planted.diagonal.other_kernels import published, row_epsilon
from refssm.diagonal import DSS_SOFTMAX_KERNEL, EMA_KERNEL, SHIFT_KERNEL

TYPES = ("float32", "float64", "complex64", "complex128")
roles = pytest.mark.parametrize("role", [diagonal, jit], ids=["reference", "jit"])
each_type = pytest.mark.parametrize("dtype", TYPES)
RNG = np.random.default_rng(3)
MODES = np.array([-0.5 + 3j, -0.3 - 20j, -2 + 0.1j, -1.0])


def right(op, value, *arrays):
    """True if the judge accepts `value` as the output of `op`."""
    arrays = [np.asarray(a) for a in arrays]
    return judge(op, lambda *_, **__: value, *arrays, l=value.shape[-1]).ok


def softmaxed(w, C, dt, l):
    """The definition in long double: each row divided by its sum."""
    z = np.longdouble(dt) * np.asarray(w).astype(np.clongdouble)
    s = z[:, None] * np.arange(l)
    E = np.exp(s - s.real.max(-1, keepdims=True))
    return ((C / np.asarray(w))[:, None] * E / E.sum(-1, keepdims=True)).sum(0).astype(complex)


@roles
@pytest.mark.parametrize("sign", [1, -1], ids=["falling", "rising"])
@pytest.mark.parametrize("l", [1, 2, 31, 64])
def test_a_softmax_kernel_is_its_definition_for_modes_of_either_sign(role, sign, l):
    w, C = sign * MODES, np.array([1.0, 2j, -3.0, 1 + 1j])
    for value in (softmaxed(w, C, 0.25, l), role.dss_softmax_kernel(w, C, 0.25, l=l)):
        assert right(DSS_SOFTMAX_KERNEL, value, w, C, 0.25)


@roles
def test_a_softmax_by_hand(role):
    log2 = np.log(2)
    for value in (role.dss_softmax_kernel([log2], [7 * log2], 1.0, l=3), np.array([1.0, 2, 4])):
        assert right(DSS_SOFTMAX_KERNEL, value, [log2], [7 * log2], 1.0)
    for value in (role.dss_softmax_kernel([-log2], [7 * log2], 1.0, l=3), -np.array([4.0, 2, 1])):
        assert right(DSS_SOFTMAX_KERNEL, value, [-log2], [7 * log2], 1.0)


@roles
@each_type
def test_modes_of_the_other_sign_run_backwards_bit_for_bit(role, dtype):
    kind = np.dtype(dtype)
    w = (MODES if kind.kind == "c" else np.real(MODES)).astype(kind)
    C = np.ones(4, kind)
    ahead, back = (role.dss_softmax_kernel(s * w, s * C, 0.25, l=50) for s in (1, -1))
    if role is diagonal:
        assert np.array_equal(ahead, back[::-1])
    assert right(
        DSS_SOFTMAX_KERNEL, back[::-1].copy(), w, C, np.asarray(0.25, np.finfo(kind).dtype)
    )


@pytest.mark.long
@roles
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_long_softmax_kernel_of_falling_modes_is_dss_exp_with_the_other_sign(role, dtype):
    w, C = MODES.astype(dtype), np.array([1, 2, 3j, 4], dtype)
    dt = np.asarray(0.25, np.finfo(dtype).dtype)
    l = 2000  # e^{l dt w} is 0: the sum is 1/(1 − e^{dt w})
    limit = -refssm.dss_exp_kernel(w, C, dt, l=l)
    for value in (limit, role.dss_softmax_kernel(w, C, dt, l=l)):
        assert right(DSS_SOFTMAX_KERNEL, value, w, C, dt)


@roles
def test_no_mode_that_rises_overflows_and_its_gradient_is_finite(role):
    for dtype in ("float32", "complex64"):
        w, C, dt = np.array([100, 3], dtype), np.ones(2, dtype), np.ones((), np.float32)
        k = role.dss_softmax_kernel(w, C, dt, l=1000)
        assert judge(DSS_SOFTMAX_KERNEL, role.dss_softmax_kernel, w, C, dt, l=1000).grade == "A"
        dk = np.ones_like(k)
        gradients = role.dss_softmax_kernel_vjp(dk, w, C, dt, l=1000)
        # Σ_k K_k = Σ C/w for every dt
        exact = (-C / w**2, 1 / w, np.zeros((), np.float32))
        gauges = expect(
            DSS_SOFTMAX_KERNEL, [dk, w, C, dt], {"l": 1000}, DSS_SOFTMAX_KERNEL.bare_vjp
        )
        for values in (gradients, exact):
            for value, gauge in zip(values, gauges, strict=True):
                assert compare(value, gauge, value.dtype).ok


@roles
@pytest.mark.parametrize("k", [1, 5, 31])
def test_beside_a_zero_of_the_sum_the_kernel_grows_as_one_over_the_distance(role, k):
    for distance in (1e-3, 1e-6, 1e-9):
        w = np.array([2j * np.pi * k / 64 - distance])
        for l in (64, 65):
            value = role.dss_softmax_kernel(w, [1.0], 1.0, l=l)
            assert right(DSS_SOFTMAX_KERNEL, value, w, [1.0], 1.0)


def off_by(kernel, w, dt, l):
    """Relative error of a kernel with one mode."""
    w, C, dt = np.array([w]), np.ones(1), np.asarray(dt)
    wanted = refssm.dss_softmax_kernel(w, C, dt, l=l)
    return float(np.abs(kernel(w, C, dt, l=l) / wanted - 1).max())


def test_the_published_epsilon_costs_a_fifth_of_a_slow_periodic_mode():
    # x = expm1(l dt w) w: |x| = 6.3e-4 at Re w = −1e-4, and 1e-7/(|x|² + 1e-7) = 0.2
    assert 0.19 < off_by(published, 2j * np.pi - 1e-4, 1 / 1024, 1024) < 0.21
    assert 0.9 < off_by(published, 2j * np.pi - 1e-5, 1 / 1024, 1024) < 1
    assert off_by(published, 2j * np.pi - 0.5, 1 / 1024, 1024) < 1e-7
    # the same epsilon on the sum, |expm1(l dt w)/expm1(dt w)| = 0.016: 1e-7/0.016²
    assert 3e-4 < off_by(row_epsilon, 2j * np.pi - 1e-4, 1 / 1024, 1024) < 4e-4
    # an alternating mode: |expm1(l dt w)/2| = 1.28e-4
    assert 0.85 < off_by(row_epsilon, 1j * np.pi - 1e-6, 1.0, 256) < 0.87


def test_the_published_reciprocal_of_dss_exp_halves_a_mode_of_modulus_2e_4():
    w = -2e-4
    biased = np.expm1(w) * w / max(w**2, 1e-7)
    assert 0.39 < biased / refssm.dss_exp_kernel([w], [1.0], 1.0, l=1)[0] < 0.41
    assert np.expm1(0.0) * 0.0 / 1e-7 == 0  # w = 0 gives 0, not an integrator
    assert refssm.dss_exp_kernel([0.0], [1.0], 1.0, l=1)[0] == 1


def logistic(x):
    return 1 / (1 + np.exp(-x))


@roles
@pytest.mark.parametrize("offset", [0, -9, 6], ids=["usual", "slow", "quick"])
def test_the_average_is_the_loop_over_the_steps(role, offset):
    delta, alpha, beta, gamma = RNG.standard_normal((4, 3))
    delta = delta + offset
    p = logistic(delta.astype(np.longdouble))
    q = 1 - p * logistic(alpha.astype(np.longdouble))
    h, y = np.zeros(3, np.longdouble), []
    for u in np.eye(1, 40)[0]:
        h = q * h + p * beta * u
        y.append((gamma * h).sum() / np.sqrt(np.longdouble(3)))
    loop = np.array(y).astype(float)
    for value in (loop, role.ema_kernel(delta, alpha, beta, gamma, l=40)):
        assert right(EMA_KERNEL, value, delta, alpha, beta, gamma)


@roles
def test_a_saturated_average_keeps_nothing_and_is_no_nan(role):
    for dtype in TYPES:
        real = np.finfo(dtype).dtype
        for far in (50, 1000):
            args = (
                np.full(1, far, real),
                np.full(1, far, real),
                np.full(1, 3, dtype),
                np.ones(1, dtype),
            )
            assert role.ema_kernel(*args, l=4).tolist() == [3, 0, 0, 0]
            gradients = role.ema_kernel_vjp(np.ones(4, dtype), *args, l=4)
            assert all(np.isfinite(g).all() for g in gradients)
            low = -args[0], *args[1:]
            assert np.abs(role.ema_kernel(*low, l=4)).max() <= 4 * np.exp(
                -float(far)
            )  # σ(−x) < e^{−x}


@roles
def test_an_average_that_hardly_forgets_keeps_its_digits(role):
    for delta in (-8, -12, -16):
        args = [np.array([x], np.float32) for x in (delta, 0, 1, 1)]
        assert judge(EMA_KERNEL, role.ema_kernel, *args, l=4096).grade == "A"


@roles
@each_type
@pytest.mark.parametrize("l", [1, 3, 5, 9])
def test_the_shift_kernel_has_the_markov_parameters_of_the_shift_matrix(role, dtype, l):
    drawn = RNG.integers(-9, 10, (2, 2, 5))
    B, C = (drawn[0] + 1j * drawn[1] if np.dtype(dtype).kind == "c" else drawn[0]).astype(dtype)
    S = np.eye(5, k=-1)
    wanted = [C @ np.linalg.matrix_power(S, k) @ B for k in range(l)]
    assert role.shift_kernel(B, C, l=l).tolist() == wanted


@roles
def test_the_shift_reads_what_was_written_n_steps_ago_and_nothing_older(role):
    C = np.arange(1.0, 5)
    assert role.shift_kernel([1.0, 0, 0, 0], C, l=7).tolist() == [1, 2, 3, 4, 0, 0, 0]
    assert role.shift_kernel([0.0, 0, 0, 1], C, l=7).tolist() == [4, 0, 0, 0, 0, 0, 0]
    u = np.array([2.0, 0, 0, 1, 0, 0, 5])
    y = refssm.causal_convolution_direct(u, role.shift_kernel([1.0, 0, 0, 0], C, l=7))
    assert y.tolist() == [2, 4, 6, 9, 2, 3, 9]


@roles
def test_nan_and_infinity_reach_what_is_within_reach(role):
    for special, wanted in ((np.nan, [True] * 2 + [False] * 3), (np.inf, [True] * 2 + [False] * 3)):
        k = role.shift_kernel([1.0, special, 1.0], [1.0, 2.0, 3.0], l=5)
        assert (~np.isfinite(k)).tolist() == wanted
        k = role.shift_kernel([1.0, 2.0, 3.0], [1.0, special, 1.0], l=5)
        assert (~np.isfinite(k)).tolist() == wanted


@roles
def test_the_gradient_of_the_shift_by_hand(role):
    dB, dC = role.shift_kernel_vjp([1.0, 10.0, 100.0], [2.0, 3.0], [5.0, 7.0], l=3)
    assert dB.tolist() == [1 * 5 + 10 * 7, 1 * 7]
    assert dC.tolist() == [1 * 2, 1 * 3 + 10 * 2]
    dB, _ = role.shift_kernel_vjp(np.array([1j]), [1.0], [1j], l=1)
    assert dB.tolist() == [1]
    assert SHIFT_KERNEL.traits >= {"linear:B", "linear:C"}
