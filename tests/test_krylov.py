"""Facts of the Krylov kernel."""

from math import comb

import numpy as np
import pytest
from judging import judged
from recurrences import drawn, each_role, each_type, integers, random
from scipy.signal import dimpulse

import refssm
import refssm.jit.krylov as jit
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.kinds.presets import OfPresets
from refssm.conformance.cases.sampling import Choices
from refssm.conformance.checks.special_values import poisons
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT
from refssm.krylov import KRYLOV_KERNEL
from refssm.presets.catalog import presets_of
from refssm.scan import DENSE_SCAN
from refssm.vandermonde import VANDERMONDE_KERNEL

SHIFT = np.eye(5, k=-1)  # nilpotent


def kernel_of(role):
    return KRYLOV_KERNEL.implementation(role)


def right(value, A, B, C):
    """True if the judge accepts `value` as the kernel of A, B and C."""
    return judge(KRYLOV_KERNEL, lambda *_, **__: value, A, B, C, l=value.shape[-1]).ok


@each_role
def test_the_example_of_the_docstring(role):
    system = [[0.5, 1.0], [0.0, 0.5]], [0.0, 1.0], [1.0, 0.0]
    assert kernel_of(role)(*system, l=4).tolist() == [0, 1, 1, 0.75]


@each_role
def test_the_entries_are_the_powers_of_the_matrix_between_c_and_b(role):
    A, B, C = integers(1, (3, 3), (3,), (3,))
    exact = [C @ np.linalg.matrix_power(A.astype(object), j) @ B for j in range(20)]
    assert kernel_of(role)(A, B, C, l=20).tolist() == exact


@each_role
def test_a_nilpotent_matrix_has_a_finite_kernel_any_one_in_fact(role):
    taps = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    assert kernel_of(role)(SHIFT, np.eye(5)[0], taps, l=9).tolist() == [*taps, 0, 0, 0, 0]


@each_role
def test_a_companion_matrix_counts_fibonaccis_rabbits(role):
    rabbits = [1, 1]
    while len(rabbits) < 78:
        rabbits.append(rabbits[-1] + rabbits[-2])
    assert rabbits[-1] < 2**53
    assert (
        kernel_of(role)([[1.0, 1.0], [1.0, 0.0]], [1.0, 0.0], [1.0, 0.0], l=78).tolist() == rabbits
    )


@each_role
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_jordan_block_gives_binomial_coefficients(role, n):
    A = np.eye(n) + np.eye(n, k=1)
    K = kernel_of(role)(A, np.eye(n)[-1], np.eye(n)[0], l=40)
    assert K.tolist() == [comb(j, n - 1) for j in range(40)]


@each_role
def test_the_characteristic_polynomial_is_its_recurrence(role):
    A, B, C = integers(2, (3, 3), (3,), (3,))
    s = np.trace(A), (np.trace(A) ** 2 - np.trace(A @ A)) / 2, round(np.linalg.det(A))
    K = kernel_of(role)(A, B, C, l=15)
    assert K.any()
    assert np.array_equal(K[3:], s[0] * K[2:-1] - s[1] * K[1:-2] + s[2] * K[:-3])


@each_role
@pytest.mark.parametrize("n", [1, 3, 31, 64])
def test_a_cycle_returns_after_n_steps_and_never_drifts(role, n):
    (taps,) = random(3, (n,))
    A = np.roll(np.eye(n), 1, axis=0)
    A[0] *= -1  # the sign changes after each round
    K = kernel_of(role)(A, np.eye(n)[0], taps, l=4097)
    assert np.array_equal(K, np.resize([*taps, *-taps], 4097))


@each_role
@each_type
def test_it_is_the_scan_of_an_impulse_read_by_c(role, dtype):
    for draw in (integers, random):
        A, B, C = drawn(KRYLOV_KERNEL, 4, draw, dtype)
        b = np.zeros((9, 3), dtype)
        b[0] = B
        x = DENSE_SCAN.implementation(role)(A, b)
        assert right(x @ C, A, B, C)
        assert draw is random or np.array_equal(x @ C, kernel_of(role)(A, B, C, l=9))


@each_role
def test_convolved_with_the_input_it_is_the_output_of_the_system(role):
    A, B, C, u = integers(5, (3, 3), (3,), (3,), (8,))
    y = DENSE_SCAN.implementation(role)(A, u[:, None] * B) @ C
    K = kernel_of(role)(A, B, C, l=8)
    assert np.array_equal(CAUSAL_CONVOLUTION_DIRECT.implementation(role)(u, K), y)
    assert judge(CAUSAL_CONVOLUTION, lambda *_: y, u, K).ok


@each_role
@each_type
def test_a_diagonal_matrix_gives_a_vandermonde_kernel_of_the_logarithms(role, dtype):
    B, C = random(6, (4,), (4,), dtype=dtype)
    turns = np.array([0, 1j, -2j, 0.5j]) if np.dtype(dtype).kind == "c" else np.zeros(4)
    x = (np.log([0.9, 0.5, 0.99, 1.0]) + turns).astype(dtype)
    k = VANDERMONDE_KERNEL.implementation(role)(C * B, x, l=65)
    A = np.diag(np.exp(x.astype(np.result_type(x, np.float64)))).astype(dtype)
    K = kernel_of(role)(A, B, C, l=65)
    # an a rounded once has the error u, so a^j has j u: K1 covers that for rounded inputs
    assert right(k, A, B, C)
    assert right(K, A, B, C)


@each_role
def test_a_double_integrator_under_a_hold_answers_with_a_ramp(role):
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    A_bar, B_bar = refssm.discretize_zoh(A, B, 0.5)
    K = kernel_of(role)(A_bar, B_bar[:, 0], [1.0, 0.0], l=30)
    assert np.array_equal(K, 0.25 * (np.arange(30) + 0.5))


@each_role
def test_scipys_impulse_response_comes_one_step_later(role):
    A, B, C = random(7, (3, 3), (3,), (3,))
    A = A / 4
    system = A, B[:, None], C[None], [[0.0]], 1.0
    y = np.squeeze(dimpulse(system, n=21)[1])  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert y[0] == 0
    assert right(y[1:], A, B, C)
    assert right(kernel_of(role)(A, B, C, l=20), A, B, C)


@each_role
def test_b_and_c_change_places_with_the_transposed_matrix(role):
    A, B, C = integers(8, (3, 3), (3,), (3,), dtype="complex128")
    K = kernel_of(role)(A, B, C, l=12)
    assert K.imag.any()
    assert np.array_equal(K, kernel_of(role)(A.T, C, B, l=12))


@each_role
def test_another_basis_is_the_same_system(role):
    A, B, C = integers(9, (3, 3), (3,), (3,))
    T = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]])
    back = np.round(np.linalg.inv(T))
    assert np.array_equal(T @ back, np.eye(3))
    changed = kernel_of(role)(T @ A @ back, T @ B, C @ back, l=10)
    assert np.array_equal(changed, kernel_of(role)(A, B, C, l=10))


@each_role
def test_a_longer_kernel_begins_with_the_shorter_ones(role):
    A, B, C = integers(10, (3, 3), (3,), (3,))
    longest = kernel_of(role)(A, B, C, l=17)
    for l in range(18):
        assert np.array_equal(kernel_of(role)(A, B, C, l=l), longest[:l])


@pytest.mark.parametrize("n", [2, 16])
def test_hippos_matrix_is_judged_right_by_doubling_and_not_in_its_eigenbasis(n):
    # the eigenvectors of HiPPO-LegS have a condition number of 8e10 at n = 16
    i = np.arange(n)
    A = -np.tril(np.sqrt(np.outer(2 * i + 1, 2 * i + 1)), -1) - np.diag(i + 1.0)
    A_bar, B_bar = refssm.discretize_bilinear(A, np.sqrt(2 * i + 1)[:, None], 0.01)
    system, C = (A_bar, B_bar[:, 0]), np.cos(i)
    assert judge(KRYLOV_KERNEL, jit.krylov_kernel, *system, C, l=100).grade == "A"
    a, V = np.linalg.eig(A_bar)
    k = VANDERMONDE_KERNEL.reference((C @ V) * np.linalg.solve(V, B_bar[:, 0]), np.log(a), l=100)
    assert right(np.real(k).copy(), *system, C) == (n == 2)


@each_role
def test_nan_in_the_matrix_spares_the_first_entry_of_its_member(role):
    A, B, C = random(11, (2, 3, 3), (3,), (3,))
    A[0, 1, 2] = np.nan
    assert kind_of(kernel_of(role)(A, B, C, l=5)).tolist() == [[0, 2, 2, 2, 2], [0] * 5]


@each_role
def test_nan_in_b_or_c_reaches_every_entry_past_all_zeros(role):
    A, number = np.zeros((3, 3)), np.array([1.0, np.nan, 1.0])
    for B, C in ((number, np.ones(3)), (np.ones(3), number)):
        assert np.isnan(kernel_of(role)(A, B, C, l=4)).all()


def test_an_infinity_meets_the_zeros_of_the_matrix_in_one_order_only():
    # so the judge does not require it: A B contains 0·∞, C A does not
    A, B, C = np.eye(2), np.array([np.inf, 1.0]), np.ones(2)
    assert kind_of(refssm.krylov_kernel(A, B, C, l=3)).tolist() == [1, 2, 2]
    assert kind_of(refssm.krylov_kernel(A, C, B, l=3)).tolist() == [1, 1, 1]


def test_the_judge_puts_nan_into_every_argument_and_infinity_into_none():
    told = [what for _, what, _ in poisons(KRYLOV_KERNEL, ordinary_case(KRYLOV_KERNEL, "float32"))]
    assert [(what[0], what.rpartition(" ")[2]) for what in told] == [(n, "NaN") for n in "ABC"]


def test_a_nan_that_shows_one_step_late_is_refused():
    def late(A, B, C, *, l):
        K = KRYLOV_KERNEL.reference(A, B, C, l=l)
        K[..., 1:2] = np.where(np.isnan(A).any((-2, -1))[..., None], 1, K[..., 1:2])
        return K

    (line,) = judged("krylov_kernel", late, "nan", types=("float32",))
    assert line.verdict == "wrong"
    assert "with A[" in line.message


@each_role
@pytest.mark.parametrize("length", [-1, 2.0, True, None, "3"], ids=repr)
def test_what_is_no_length_is_told(role, length):
    with pytest.raises(ValueError, match=r"^krylov_kernel: `l` must be an integer >= 0, got "):
        kernel_of(role)([[1.0]], [1.0], [1.0], l=length)


@each_role
def test_a_matrix_that_is_not_square_or_of_another_size_is_told(role):
    with pytest.raises(
        ValueError, match=r"^krylov_kernel: `A` has n=3, but n=2 along another axis"
    ):
        kernel_of(role)(np.ones((2, 3)), np.ones(2), np.ones(2), l=3)
    with pytest.raises(
        ValueError, match=r"^krylov_kernel: `C` has n=3, but earlier arguments have n=2"
    ):
        kernel_of(role)(np.ones((2, 2)), np.ones(2), np.ones(3), l=3)


def powers_that_stop(A, B, C, *, l):
    """The kernel by doubling, but A is squared up to 512 columns only."""
    X = B[..., None]
    while X.shape[-1] < l:
        X = np.concatenate([X, A @ X], -1)
        A = A @ A if X.shape[-1] <= 512 else A
    return (C[..., None, :] @ X[..., :l])[..., 0, :]


def test_a_long_preset_is_still_there_at_its_end_and_shows_a_stale_power():
    (slow,) = [p for p in presets_of(KRYLOV_KERNEL) if p.name == "legs-slow-64"]
    l = 3001
    drawn = slow.draw(np.random.default_rng(0), {"n": 64, "l": l})
    arrays = [drawn[name].astype(np.float32) for name in "ABC"]
    assert judge(KRYLOV_KERNEL, powers_that_stop, *arrays, l=512).grade in ("A", "B")
    assert judge(KRYLOV_KERNEL, powers_that_stop, *arrays, l=l).grade == "F"
    assert judge(KRYLOV_KERNEL, KRYLOV_KERNEL.reference, *arrays, l=l).grade == "A"


def test_each_default_run_has_that_preset_among_its_long_cases():
    of_presets = OfPresets(2**14)
    _, long = of_presets.samplers(KRYLOV_KERNEL, np.dtype("float32"))
    assert "legs-slow-64" in {f"{sampler(Choices()).preset}" for sampler in long}
