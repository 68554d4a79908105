"""Facts of Kalman filters and smoothers: by hand, in the steady state, as one joint Gaussian."""

import numpy as np
import pytest
from scipy import linalg
from scipy.stats import multivariate_normal

import refssm
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.judging.grading import judge
from refssm.kalman import KALMAN_FILTER, KALMAN_SMOOTHER

U = 2.0**-53
ROOM = 16 * U  # times a size: as the judge allows


def covariance(rng, n):
    X = rng.standard_normal((n, n))
    return X @ X.T + np.eye(n)


def case(seed=0, n=3, p=2, l=6):
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((n, n)) / (2 * n), rng.standard_normal((p, n))
    Q, R, P0 = covariance(rng, n), covariance(rng, p), covariance(rng, n)
    return A, C, Q, R, rng.standard_normal((l, p)), rng.standard_normal(n), P0


def joint(A, C, Q, R, y, m0, P0):
    """Means and covariances of all x and all y, stacked: x = F (x_{−1}, w), y = H x + v."""
    n, p, l = len(m0), len(R), len(y)
    powers = [np.linalg.matrix_power(A, k) for k in range(l + 1)]
    none = np.zeros((n, n))
    F = np.block([[powers[i + 1], *(powers[i - j] if j <= i else none for j in range(l))]
                  for i in range(l)])  # fmt: skip
    start = np.concatenate([m0, np.zeros(l * n)])
    spread = F @ linalg.block_diag(P0, *[Q] * l) @ F.T
    H = np.kron(np.eye(l), C)
    return F @ start, spread, H, H @ spread @ H.T + np.kron(np.eye(l), R), n, p


def given(arguments, count):
    """Mean and covariance of all x, given the first `count` steps."""
    mean, spread, H, S, n, p = joint(*arguments)
    H, S = H[: count * p], S[: count * p, : count * p]
    K = np.linalg.solve(S, H @ spread).T
    mean = mean + K @ (arguments[4][:count].ravel() - H @ mean)
    return mean.reshape(-1, n), (spread - K @ H @ spread).reshape(len(mean) // n, n, -1, n)


def test_one_step_of_one_number_is_a_weighted_mean():
    # prior N(1, 1), A = 2: N(2, 4 + 4); R = 8: the gain is ½
    m, P, logp = refssm.kalman_filter([[2.0]], [[1.0]], [[4.0]], [[8.0]], [[10.0]], [1.0], [[1.0]])
    assert (m.tolist(), P.tolist()) == ([[6.0]], [[[4.0]]])
    exact = -(np.log(2 * np.pi * 16) + 64 / 16) / 2
    assert abs(logp - exact) <= ROOM * abs(exact)


def test_the_variance_of_a_random_walk_tends_to_the_golden_ratio():
    # A = C = Q = R = 1: P⁻ = P + 1 and P = P⁻/(P⁻ + 1), so P² + P − 1 = 0
    one = [[1.0]]
    _, P, _ = refssm.kalman_filter(one, one, one, one, np.zeros((64, 1)), [0.0], [[5.0]])
    golden = (np.sqrt(5) - 1) / 2
    # each step divides an error by 1 / (1 + P⁻)² = 0.146: none of 64 steps are left of the start
    assert abs(P[-1, 0, 0] - golden) <= ROOM
    A, Q, R = 0.75, 2.0, 0.5
    _, P, _ = refssm.kalman_filter([[A]], one, [[Q]], [[R]], np.zeros((64, 1)), [0.0], one)
    # P⁻ = A² P⁻ R/(P⁻ + R) + Q: a quadratic for P⁻
    b = Q + R * (A * A - 1)
    ahead = (b + np.sqrt(b * b + 4 * Q * R)) / 2
    assert abs(P[-1, 0, 0] - ahead * R / (ahead + R)) <= ROOM


def test_the_steady_covariance_solves_riccatis_equation():
    A, C, Q, R, _, m0, P0 = case()
    _, P, _ = refssm.kalman_filter(A, C, Q, R, np.zeros((64, 2)), m0, P0)
    ahead = linalg.solve_discrete_are(A.T, C.T, Q, R)
    K = np.linalg.solve(C @ ahead @ C.T + R, C @ ahead).T
    wanted = ahead - K @ C @ ahead
    # Schur's method errs by n u ‖P⁻‖ times the condition of a solve with S
    room = ROOM * 3 * np.linalg.norm(ahead) * np.linalg.cond(C @ ahead @ C.T + R)
    assert np.abs(P[-1] - wanted).max() <= room


@pytest.mark.parametrize("seed", range(4))
def test_the_log_likelihood_is_the_joint_density_of_all_measurements(seed):
    arguments = case(seed)
    mean, _, H, S, *_ = joint(*arguments)
    y = arguments[4].ravel()
    density = multivariate_normal(H @ mean, S).logpdf(y)
    # SciPy takes eigenvectors: n u cond(S) of the square, and 4 u of each logarithm
    square = (y - H @ mean) @ np.linalg.solve(S, y - H @ mean)
    room = ROOM * len(y) * (np.linalg.cond(S) * square + len(y) * 4)
    assert abs(refssm.kalman_filter(*arguments)[2] - density) <= room


@pytest.mark.parametrize("seed", range(4))
def test_the_filter_and_the_smoother_are_conditional_means_of_the_joint_gaussian(seed):
    arguments = case(seed)
    l = len(arguments[4])
    for k in range(l):
        means, spreads = given(arguments, k + 1)
        if not k:
            of_filter = [], []
        of_filter[0].append(means[k])
        of_filter[1].append(spreads[k, :, k])
    means, spreads = given(arguments, l)
    of_smoother = means, np.stack([spreads[k, :, k] for k in range(l)])
    logp = refssm.kalman_filter(*arguments)[2]
    made = (*map(np.stack, of_filter), logp)
    assert judge(KALMAN_FILTER, lambda *_: made, *arguments).ok
    assert judge(KALMAN_SMOOTHER, lambda *_: of_smoother, *arguments).ok


@pytest.mark.parametrize("l", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("name", ["sequential", "hillis_steele", "blelloch"])
def test_the_parallel_forms_equal_the_sequential_ones_within_the_bound(l, name):
    arguments, schedule = case(l, l=l), getattr(refssm.associative, name)

    def in_parallel(function):
        return lambda *given: function(*given, schedule=schedule)

    assert judge(KALMAN_FILTER, in_parallel(refssm.kalman_filter_parallel), *arguments).ok
    assert judge(KALMAN_SMOOTHER, in_parallel(refssm.kalman_smoother_parallel), *arguments).ok


def test_the_parallel_forms_take_batches_and_no_steps():
    A, C, Q, R, y, m0, P0 = case()
    series = np.stack([y, 2 * y, -y])
    for one, other in (
        (refssm.kalman_filter, refssm.kalman_filter_parallel),
        (refssm.kalman_smoother, refssm.kalman_smoother_parallel),
    ):
        for measured in (series, series[:, :0]):
            found = [f(A, C, Q, R, measured, m0, P0) for f in (one, other)]
            for a, b in zip(*found, strict=True):
                assert a.shape == b.shape
                # both are within the judge's bounds of the truth (above); here shapes are compared
                assert np.abs(a - b).max(initial=0) <= 2**10 * U * np.abs(a).max(initial=1)


def test_a_filter_goes_on_from_the_last_mean_and_covariance_bit_by_bit():
    A, C, Q, R, y, m0, P0 = case()
    m, P, logp = refssm.kalman_filter(A, C, Q, R, y, m0, P0)
    first = refssm.kalman_filter(A, C, Q, R, y[:4], m0, P0)
    rest = refssm.kalman_filter(A, C, Q, R, y[4:], first[0][-1], first[1][-1])
    assert np.array_equal(np.concatenate([first[0], rest[0]]), m)
    assert np.array_equal(np.concatenate([first[1], rest[1]]), P)
    assert abs(first[2] + rest[2] - logp) <= ROOM * (abs(first[2]) + abs(rest[2]))


def test_the_last_smoothed_state_is_the_filters_and_no_variance_grows():
    arguments = case(5)
    m, P, _ = refssm.kalman_filter(*arguments)
    smooth, spread = refssm.kalman_smoother(*arguments)
    assert np.array_equal(smooth[-1], m[-1])
    assert np.array_equal(spread[-1], P[-1])
    least = np.linalg.eigvalsh(P - spread).min()
    assert least >= -ROOM * 3 * np.linalg.norm(P)


def test_covariances_are_symmetric_exactly_and_only_symmetric_parts_count():
    A, C, Q, R, y, m0, P0 = case(6)
    skew = np.triu(np.ones((3, 3)), 1) - np.tril(np.ones((3, 3)), -1)
    for function in (refssm.kalman_filter, refssm.kalman_smoother):
        P = function(A, C, Q, R, y, m0, P0)[1]
        assert np.array_equal(P, P.swapaxes(-1, -2))
        # 2^40 has no bits in common with the skew part that a sum would round away
        exact = np.round(Q * 2**20) / 2**20
        one, other = (function(A, C, X, R, y, m0, P0) for X in (exact, exact + skew))
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_nan_in_a_measurement_reaches_what_knows_it_and_nothing_else():
    A, C, Q, R, y, m0, P0 = case(7)
    y[3, 1] = np.nan
    m, P, logp = refssm.kalman_filter(A, C, Q, R, y, m0, P0)
    assert np.isfinite(m[:3]).all()
    assert np.isnan(m[3:]).all()
    assert np.isfinite(P).all()
    assert np.isnan(logp)
    assert np.isnan(refssm.kalman_smoother(A, C, Q, R, y, m0, P0)[0]).all()


def test_without_measured_numbers_the_filter_only_predicts():
    A, _, Q, _, _, m0, P0 = case(8)
    m, P, logp = refssm.kalman_filter(
        A, np.zeros((0, 3)), Q, np.zeros((0, 0)), np.zeros((2, 0)), m0, P0
    )
    assert np.array_equal(m[0], (A @ m0[:, None])[:, 0])
    assert np.abs(P[0] - (A @ P0 @ A.T + Q)).max() <= ROOM * 3 * np.abs(P[0]).max()
    assert logp == 0


def test_a_steady_step_along_the_gradient_makes_the_measurements_more_likely():
    arguments = case(9)
    m, P, logp = refssm.kalman_filter(*arguments)
    none = np.zeros_like(m), np.zeros_like(P)
    dA = refssm.kalman_filter_vjp(*none, 1.0, *arguments)[0]
    step = 1e-4 / np.linalg.norm(dA)
    more = refssm.kalman_filter(arguments[0] + step * dA, *arguments[1:])[2]
    # to first order the gain is step ‖dA‖², the second order is 1e-4 of it
    assert 0.99 <= (more - logp) / (step * np.sum(dA**2)) <= 1.01


def test_mistakes_are_told_by_function_argument_wanted_and_came():
    A, C, Q, R, _, m0, P0 = case()
    for name in ("kalman_filter", "kalman_smoother", "kalman_filter_parallel",
                 "kalman_smoother_parallel"):  # fmt: skip
        with pytest.raises(ValueError, match=rf"^{name}: `y` has p=3, but earlier .* have p=2"):
            getattr(refssm, name)(A, C, Q, R, np.ones((6, 3)), m0, P0)


@pytest.mark.parametrize("l", [1, 20, 200])
def test_the_bound_of_a_filter_holds_in_single_precision_and_does_not_grow_with_the_length(l):
    op, rng = KALMAN_FILTER, np.random.default_rng(l)
    A = np.linalg.qr(rng.standard_normal((3, 3)))[0] * 0.95
    arrays = [A, rng.standard_normal((2, 3)), np.eye(3), np.eye(2), rng.standard_normal((l, 2)),
              rng.standard_normal(3), np.eye(3)]  # fmt: skip
    arrays = [a.astype(np.float32) for a in arrays]
    wanted = op.reference(*(a.astype(float) for a in arrays))
    gauges = bounds(op, arrays, {}, None, unit=2.0**-24, floor=1e-38)
    for y, right, gauge in zip(op.reference(*arrays), wanted, gauges, strict=True):
        assert (np.abs(y - right) <= 16 * 2.0**-24 * gauge.k0).all()
    assert gauges[0].k0.max() < 1e4  # entry by entry, 200 steps would give 1e100
