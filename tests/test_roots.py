# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
# (tracked arrays work through `__array_function__`)

import numpy as np
import pytest
from mpmath import mp

from refssm._numerics.elimination import eliminated
from refssm._numerics.powers import states, through_powers
from refssm._numerics.roots import roots_of_unity
from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.dplr.system import around_the_circle

U = 2.0**-24
PRECISIONS = [np.float32, np.float64]
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
lengths = pytest.mark.parametrize("l", [1, 2, 3, 4, 8, 12, 31, 360, 1023])


def exact_roots(l):
    """Cosine and minus sine of 2πj/l."""
    with mp.workdps(40):
        turns = [2 * mp.pi * j / l for j in range(l)]
        return [(mp.cos(t), -mp.sin(t)) for t in turns]


@lengths
@pytest.mark.parametrize("precision", PRECISIONS)
def test_roots_of_unity_are_right_to_a_rounding_in_each_part(l, precision):
    u = float(np.finfo(precision).eps) / 2
    for z, parts in zip(roots_of_unity(l, precision), exact_roots(l), strict=True):
        for got, wanted in zip((z.real, z.imag), parts, strict=True):
            if abs(wanted) < 1e-30:
                assert got == 0
            else:  # rounded to the type, after a rounding to the wider type
                assert abs(float((mp.mpf(float(got)) - wanted) / wanted)) <= u * (1 + 2.0**-6)


def test_the_roots_that_numbers_have_are_exact():
    assert roots_of_unity(8, np.float32)[[0, 2, 4, 6]].tolist() == [1, -1j, -1, 1j]
    twelfth = roots_of_unity(12, np.float64)
    assert twelfth[1].imag == twelfth[5].imag == twelfth[4].real == -0.5
    assert twelfth[2].real == twelfth[11].imag == 0.5


@lengths
def test_roots_come_in_exact_conjugate_pairs(l):
    z = roots_of_unity(l, np.float32)
    assert np.array_equal(z[1:], z[:0:-1].conj())


@lengths
@pytest.mark.parametrize("precision", PRECISIONS)
def test_one_plus_and_minus_a_node_are_right_to_three_roundings(l, precision):
    below, above = around_the_circle(l, np.ones((), precision))
    u = float(np.finfo(precision).eps) / 2
    for got, sign in ((below, -1), (above, 1)):
        for z, (c, s) in zip(got, exact_roots(l), strict=True):
            with mp.workdps(40):
                parts = (z.real, 1 + sign * c), (z.imag, sign * s)
            for part, wanted in parts:
                if abs(wanted) < 1e-30:
                    assert part == 0
                else:  # sine, cosine, their product
                    assert abs(float((mp.mpf(float(part)) - wanted) / wanted)) <= 3.1 * u


@each_role
def test_the_resolvent_of_a_half_at_four_nodes(role):
    k = RESOLVENT_AT_ROOTS.implementation(role)([3.0], [0.5], l=4)
    exact = 3 / (1 - 0.5 * np.array([1, -1j, -1, 1j]))
    assert judge(RESOLVENT_AT_ROOTS, lambda *_, l: exact, np.array([3.0]), np.array([0.5]), l=4).ok
    assert k[[0, 2]].tolist() == [6, 2]


@pytest.mark.parametrize("l", [1, 2, 5, 64])
def test_the_resolvent_is_the_transform_of_the_wrapped_powers(l):
    v, a = np.array([1.0, -2.0 + 1j]), np.array([0.9, 0.5j])
    wrapped = (v * a ** np.arange(l)[:, None] / (1 - a**l)).sum(-1)
    assert judge(RESOLVENT_AT_ROOTS, lambda *_, l: np.fft.fft(wrapped), v, a, l=l).ok


@each_role
def test_a_real_system_has_conjugate_values_at_conjugate_nodes(role):
    k = RESOLVENT_AT_ROOTS.implementation(role)([1.0, 2.0], [0.5, -0.75], l=7)
    assert k.dtype == complex
    assert np.array_equal(k[1:], k[:0:-1].conj())
    assert k[0].imag == 0


def test_a_pole_at_a_node_is_infinite_there_alone():
    k = RESOLVENT_AT_ROOTS.implementation("reference")([1.0], [-1.0], l=4)
    assert kind_of(k).tolist() == [0, 0, 1, 0]


@each_role
def test_a_pole_at_a_node_is_no_number_there_alone(role):
    k = RESOLVENT_AT_ROOTS.implementation(role)([1.0], [-1.0], l=4)
    assert np.isfinite(k).tolist() == [True, True, False, True]


@each_role
def test_the_gradient_of_a_resolvent_whose_pole_is_far_beyond_the_squares(role):
    dv, da = RESOLVENT_AT_ROOTS.vjp(role)([1.0], [1.0], [2.0**600], l=1)
    assert dv.tolist() == [-(2.0**-600)]
    assert da.tolist() == [0]


def normal(*shape, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("r", [0, 1, 2, 5])
def test_elimination_solves_batches_of_small_systems(r):
    M, N = normal(3, r, r), normal(1, r, 4, seed=2)
    X = eliminated(M, N)
    assert X.shape == (3, r, 4)
    # backward stable: the residual is n u (‖M‖ ‖X‖ + ‖N‖), with room for growth in small systems
    size = np.linalg.norm(M) * np.linalg.norm(X) + np.linalg.norm(N)
    assert np.linalg.norm(M @ X - N) <= 16 * 2.0**-53 * max(r, 1) * size


def test_elimination_exchanges_rows_where_a_pivot_is_zero():
    assert eliminated(np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([[2.0], [4.0]])).tolist() == [
        [1],
        [1],
    ]


def test_elimination_of_a_singular_system_is_not_finite():
    with np.errstate(all="ignore"):
        assert not np.isfinite(eliminated(np.zeros((1, 1)), np.ones((1, 1)))).any()


def contraction(n, seed):
    A = normal(n, n, seed=seed)
    return (A / np.linalg.norm(A, 2)).astype(np.complex64)


NODES = np.array([0, 2])


@pytest.mark.parametrize("l", [1, 2, 7, 64])
def test_powers_and_sums_by_doubling_are_those_one_by_one(l):
    A, b, c = contraction(4, 3).astype(complex), normal(4, seed=4), normal(4, seed=5)
    left, sums = through_powers(np.eye(4) - A, b, c, NODES % l, l)
    z = np.exp(-2j * np.pi * (NODES % l) / l)
    powers = [np.linalg.matrix_power(A, k) for k in range(l + 1)]
    wanted = [sum((z_j**k) * (p @ b) for k, p in enumerate(powers[:l])) for z_j in z]
    size = (
        64 * 2.0**-53 * l * np.linalg.norm(b) * np.linalg.norm(c)
    )  # 4 l roundings of 4 terms, twice
    assert np.abs(left - c @ (powers[0] - powers[l])).max() <= size
    assert np.abs(sums - np.array(wanted)).max() <= size * l


@pytest.mark.parametrize("seed", range(10))
def test_states_in_single_precision_stay_within_their_bounds(seed):
    A, u = contraction(5, seed), normal(64, 5, seed=20 + seed).astype(np.complex64)
    wide = A.astype(complex), u.astype(complex)
    with tracing(unit=U, floor=0.0):
        bound = states(*map(Tracked, wide)).errors[..., 0]
    assert (np.abs(states(A, u) - states(*wide)) <= U * bound).all()
    moved = A * np.float32(1 + 2 * U), u
    with tracing(unit=U, floor=0.0):
        errors = np.stack([0 * np.abs(wide[0]), 2 * np.abs(wide[0])], axis=-1)
        bound = states(Tracked(wide[0], errors), Tracked(wide[1])).errors[..., 1]
    assert (np.abs(states(*moved) - states(*wide)) <= U * bound).all()


@pytest.mark.parametrize("l", [1, 5, 64, 1000])
def test_a_transform_in_single_precision_stays_within_its_bounds(l):
    x = normal(l, seed=l).astype(np.complex64)
    with tracing(unit=U, floor=0.0):
        bound = np.fft.fft(Tracked(x.astype(complex))).errors[..., 0]
    assert (np.abs(np.fft.fft(x) - np.fft.fft(x.astype(complex))) <= U * bound).all()


def test_tracked_nodes_are_off_by_a_rounding_unless_they_are_exact():
    with tracing(unit=U, floor=0.0):
        for part in around_the_circle(8, Tracked(np.ones(()))):
            assert part.errors[:, 0].tolist() == [0, 1] * 4
