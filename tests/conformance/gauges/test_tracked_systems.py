"""The error rule of a solve by elimination: large enough, and not larger than necessary."""

# pyright: reportAttributeAccessIssue=false
# (a tracked array comes back where a tracked array went in, which pyright cannot see)

import numpy as np
import pytest

import refssm.conformance.gauges.hankel  # noqa: F401  # the rule registers itself
from refssm._numerics.elimination import solved
from refssm.conformance.gauges.tracked import Tracked, tracing

U = 2.0**-24
STEP = 2.0**-26  # first-order errors; second-order errors are κ STEP of them
SLACK = 1 + 2.0**-10
each_seed = pytest.mark.parametrize("seed", range(6))


def system(seed, n=6, m=2):
    """M, exact in single precision, and N."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n + m)) + 1j * rng.standard_normal((n, n + m))
    x = x.astype("c8").astype("c16")
    return x[:, :n], x[:, n:]


def bound(M, N):
    """The bound of each entry of M⁻¹ N, in the unit of the errors."""
    with tracing(unit=U, floor=0.0):
        return solved(M, N).errors[..., 0]


def tracked(x, errors):
    """x with an error of each entry equal to the modulus of `errors`."""
    return Tracked(x, np.stack([np.abs(errors)] * 2, axis=-1))


def worst(M, X):
    """E with ‖E‖_F = 1 that maximizes ‖M⁻¹ E x‖, x the first column of X."""
    left, _, _ = np.linalg.svd(M)
    x = X[:, 0] / np.linalg.norm(X[:, 0])
    return np.outer(left[:, -1], x.conj())


@each_seed
def test_a_solve_in_single_precision_stays_within_its_bound(seed):
    M, N = system(seed)
    away = np.abs(solved(M.astype("c8"), N.astype("c8")) - solved(M, N))
    allowed = U * bound(Tracked(M), Tracked(N))
    assert (away <= allowed).all()
    assert away.max() > 0  # even exact arguments have the charge of the solve


@each_seed
def test_the_charge_of_an_error_in_the_matrix_is_what_the_worst_one_comes_to(seed):
    M, N = system(seed, m=1)
    X, none = solved(M, N), bound(Tracked(M), Tracked(N))
    E = worst(M, X)
    away = np.linalg.norm(solved(M + STEP * E, N) - X)
    charge = (bound(tracked(M, E), Tracked(N)) - none).max() * STEP
    assert away <= SLACK * charge
    assert SLACK * away >= charge  # so a smaller bound would be exceeded


@each_seed
def test_the_charge_of_an_error_in_the_right_hand_side_is_what_the_worst_one_comes_to(seed):
    M, N = system(seed, m=1)
    X, none = solved(M, N), bound(Tracked(M), Tracked(N))
    E = np.linalg.svd(M)[0][:, -1:]
    away = np.linalg.norm(solved(M, N + STEP * E) - X)
    charge = (bound(Tracked(M), tracked(N, E)) - none).max() * STEP
    assert away <= SLACK * charge
    assert SLACK * away >= charge


def test_systems_of_a_batch_are_charged_one_by_one():
    pairs = [system(seed) for seed in range(3)]
    M, N = (np.stack(x) for x in zip(*pairs, strict=True))
    together = bound(Tracked(M), Tracked(N))
    for got, (one, other) in zip(together, pairs, strict=True):
        alone = bound(Tracked(one), Tracked(other))
        assert (np.abs(got - alone) <= 2.0**-40 * alone).all()  # a batch sums in another order


def test_a_singular_system_has_no_bound_and_raises_nothing():
    M = np.stack([np.ones((2, 2)), np.eye(2)])
    N = np.ones((2, 2, 1))
    with np.errstate(all="ignore"):
        errors = bound(Tracked(M), Tracked(N))
    assert not np.isfinite(errors[0]).any()
    assert np.isfinite(errors[1]).all()
