"""Model reduction, identification and norms: the statements of the theorems."""

import numpy as np
import pytest

import refssm

U = 2.0**-53


def system(n=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) - 4 * np.eye(n)
    return A, *rng.standard_normal((2, n))


def on_the_axis(A, B, C, D=0.0):
    """G on a grid of iω that extends beyond all resonances."""
    frequencies = np.concatenate([-np.logspace(-3, 3, 601), [0.0], np.logspace(-3, 3, 601)])
    return refssm.transfer(A, B, C, D, 1j * frequencies)


@pytest.mark.parametrize("order", range(1, 6))
def test_a_truncated_system_is_within_its_bound(order):
    A, B, C = system()
    reduced = refssm.balanced_truncation(A, B, C, order)
    away = np.abs(on_the_axis(A, B, C) - on_the_axis(*reduced)).max()
    sigma = refssm.hankel_singular_values(A, B, C)
    bound = refssm.balanced_truncation_bound(A, B, C, order)
    assert bound == 2 * sigma[order:].sum()
    assert sigma[order] <= away + np.sqrt(U) * sigma[0]  # no system of that order is nearer
    assert away <= bound + np.sqrt(U) * sigma[0]  # error of balancing: √u σ_1
    assert (np.linalg.eigvals(reduced[0]).real < 0).all()


def test_all_states_kept_are_the_same_system():
    A, B, C = system()
    same = on_the_axis(*refssm.balanced_truncation(A, B, C, 6))
    assert np.abs(same - on_the_axis(A, B, C)).max() <= np.sqrt(U) * np.abs(same).max()


def test_a_response_gives_back_its_system():
    A, B, C = system()
    A = A / 12
    h = refssm.markov_parameters(A, B, C, l=24)
    found = refssm.ho_kalman(h, 6)
    sigma = np.linalg.svd(refssm.hankel_matrix(h)[:12, :12])[1]
    again = refssm.markov_parameters(*found, l=24)
    # perturbed by u σ_1, divided by σ_6
    assert np.abs(again - h).max() <= 16 * 24 * U * sigma[0] ** 2 / sigma[5]


def test_a_batch_of_responses_is_identified_one_by_one():
    h = np.stack([0.5 ** np.arange(8), 3 * (-0.25) ** np.arange(8)])
    A, B, C = refssm.ho_kalman(h, 1)
    assert A.shape, B.shape == ((2, 1, 1), (2, 1))
    assert np.abs(A[:, 0, 0] - [0.5, -0.25]).max() <= 16 * 8 * U
    assert np.abs(B[:, 0] * C[:, 0] - [1, 3]).max() <= 16 * 8 * U * 3


def test_a_rank_counts_what_is_above_the_level():
    sigma = np.array([[4.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert refssm.numerical_rank(sigma, 0.25).tolist() == [2, 0]
    assert refssm.numerical_rank(sigma, 0.0).tolist() == [3, 0]
    assert refssm.numerical_rank(sigma, [0.6, 0.6]).tolist() == [1, 0]
    assert refssm.numerical_rank(np.zeros((2, 0)), 0.5).tolist() == [0, 0]


def test_the_largest_gain_of_a_slow_pole_is_at_zero_and_of_a_resonance_at_its_frequency():
    assert refssm.h_infinity_norm([[-0.5]], [2.0], [3.0], 1.0) == 13.0
    w = -1e-3 + 5j
    norm = refssm.h_infinity_norm([[w]], [1.0], [1.0], 0.0)
    assert abs(norm - 1e3) <= 16 * U * abs(w) / 1e-3 * 1e3  # iω − w cancels: 1e-3 remains of 5


def test_an_all_pass_has_the_norm_one():
    assert refssm.h_infinity_norm([[-1.0]], [1.0], [-2.0], 1.0) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_no_frequency_is_above_the_h_infinity_norm_and_some_reach_it(seed):
    A, B, C = system(seed=seed)
    norm, sigma = refssm.h_infinity_norm(A, B, C, 0.0), refssm.hankel_singular_values(A, B, C)
    on_grid = np.abs(on_the_axis(A, B, C)).max()
    # the grid steps are 2.3 %; |G| is smooth on the scale of the decay
    assert 0.99 * norm <= on_grid <= norm * (1 + np.sqrt(U))
    assert refssm.hankel_norm(A, B, C) == sigma[0]
    assert sigma[0] <= norm <= 2 * sigma.sum()


def test_mistakes_are_told_by_operator_argument_wanted_and_came():
    A, B, C = system()
    with pytest.raises(ValueError, match="`order` must be an integer from 1 to 6, got 7"):
        refssm.balanced_truncation(A, B, C, 7)
    with pytest.raises(ValueError, match="`order` must be an integer from 1 to 6, got 0"):
        refssm.balanced_truncation_bound(A, B, C, 0)
    with pytest.raises(ValueError, match=r"`order` must be .* from 1 to 4, half .*, got 1\.5"):
        refssm.ho_kalman(np.ones(8), 1.5)
    with pytest.raises(ValueError, match="rank below order=2"):
        refssm.ho_kalman([1.0, 0, 0, 0], 2)
    with pytest.raises(ValueError, match="left of the imaginary axis"):
        refssm.h_infinity_norm([[0.5]], [1.0], [1.0], 0.0)
    with pytest.raises(ValueError, match="`eps` must be at least 0, got -1"):
        refssm.numerical_rank([1.0], -1)


def test_python_control_reduces_to_the_same_system():
    control = pytest.importorskip("control")
    pytest.importorskip("slycot")
    A, B, C = system()
    whole = control.ss(A, B[:, None], C[None], 0)
    sigma = refssm.hankel_singular_values(A, B, C)
    for order in range(1, 5):
        ours = on_the_axis(*refssm.balanced_truncation(A, B, C, order))
        theirs = control.balred(whole, order, method="truncate")
        a, b, c = (np.asarray(x) for x in (theirs.A, theirs.B, theirs.C))
        # each of them balances to √u of the largest value
        assert np.abs(on_the_axis(a, b[:, 0], c[0]) - ours).max() <= 2 * np.sqrt(U) * sigma[0]
        # "matchdc" preserves the gain at 0 instead of infinity: another system, the same bound
        other = control.balred(whole, order, method="matchdc")
        a, b, c, d = (np.asarray(x) for x in (other.A, other.B, other.C, other.D))
        G = on_the_axis(a, b[:, 0], c[0], d[0, 0])
        away = np.abs(G - on_the_axis(A, B, C))
        assert (
            away.max() <= refssm.balanced_truncation_bound(A, B, C, order) + np.sqrt(U) * sigma[0]
        )
        assert away[601] <= np.sqrt(U) * sigma[0] < np.abs(G - ours).max()


def test_python_control_realizes_the_same_response():
    control = pytest.importorskip("control")
    pytest.importorskip("slycot")
    A, B, C = system()
    h = refssm.markov_parameters(A / 12, B, C, l=24)
    found, _ = control.eigensys_realization(np.concatenate([[0.5], h]), 6)  # theirs begins with D
    a, b, c = (np.asarray(x) for x in (found.A, found.B, found.C))
    sigma = np.linalg.svd(refssm.hankel_matrix(h)[:12, :12])[1]
    room = 16 * 24 * U * sigma[0] ** 2 / sigma[5]  # as for ours, above
    assert np.asarray(found.D).tolist() == [[0.5]]
    assert np.abs(refssm.markov_parameters(a, b[:, 0], c[0], l=24) - h).max() <= room


UNSTABLE = np.diag([1.0, -2.0]), np.ones(2), np.ones(2)
OF_STABLE_SYSTEMS = {
    "balanced_truncation": lambda A, B, C: refssm.balanced_truncation(A, B, C, 1),
    "balanced_truncation_bound": lambda A, B, C: refssm.balanced_truncation_bound(A, B, C, 1),
    "h_infinity_norm": lambda A, B, C: refssm.h_infinity_norm(A, B, C, 0.0),
    "hankel_norm": refssm.hankel_norm,
}


@pytest.mark.parametrize("name", OF_STABLE_SYSTEMS)
def test_an_unstable_or_infinite_or_misshapen_system_is_refused_by_the_name_called(name):
    function, (A, B, C) = OF_STABLE_SYSTEMS[name], UNSTABLE
    with pytest.raises(
        ValueError, match=rf"^{name}: `A` must have all eigenvalues left of .* got 1"
    ):
        function(A, B, C)
    with pytest.raises(ValueError, match=rf"^{name}: `A` must be finite"):
        function(np.full((2, 2), np.nan), B, C)
    with pytest.raises(ValueError, match=rf"^{name}: `B` has n=3"):
        function(-A @ A, np.ones(3), C)


def test_poles_on_the_axis_or_right_of_it_have_no_hankel_singular_values():
    sigma = refssm.hankel_singular_values_diagonal([[1j, -1], [2, -1], [-2, -1]], [1, 1], [1, 1])
    assert np.isnan(sigma[:2]).all()
    assert np.isfinite(sigma[2]).all()


def test_samples_that_cannot_identify_a_system_are_refused():
    with pytest.raises(
        ValueError, match=r"ho_kalman: `order` .* 1 to 2, half of the 5 values of `h`"
    ):
        refssm.ho_kalman([1.0, 0.5, 0.25, 0.125, 0.0625], 4)
    with pytest.raises(ValueError, match="ho_kalman: `h` must be finite"):
        refssm.ho_kalman([1.0, np.nan, 0.25, 0.125], 1)
