"""Systems from inputs and outputs: exact without noise, 1/√l with it, and what is refused."""

import numpy as np
import pytest

import refssm
from refssm.hankel.identification import observed

U = 2.0**-53
RESPONSE = 20


def system(n, seed):
    """A random system whose largest eigenvalue has the modulus 0.9."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    return A, *rng.standard_normal((2, n)), rng.standard_normal()


def outputs(made, u, x):
    A, B, C, D = made
    y = []
    for u_k in u:
        y.append(C @ x + D * u_k)
        x = A @ x + B * u_k
    return np.array(y)


def response(made):
    """D, C B, C A B, …"""
    A, B, C, D = made
    return np.append(D, refssm.markov_parameters(A, B, C, l=RESPONSE))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_data_without_noise_give_the_response_to_rounding_errors(n, seed):
    made, rng = system(n, seed), np.random.default_rng(100 + seed)
    u, x = rng.standard_normal(300), rng.standard_normal(n)  # it does not begin at rest
    y, rows = outputs(made, u, x), 2 * n + 2
    sigma = observed(u, y, rows)[1]
    found, h = refssm.subspace_realization(u, y, n), response(made)
    # the subspace moves by u ‖data‖/σ_n; the triangular factor has 4 rows, one rounding each
    moved = 4 * rows * U * np.linalg.norm(y) * np.sqrt(rows) / sigma[n - 1]
    assert np.abs(response(found) - h).max() <= 16 * moved * np.abs(h).max()
    # and the transfer function, a sum of the responses while they fade with 0.9^k
    z = np.exp(1j * np.linspace(0, np.pi, 17))
    ours, theirs = (refssm.transfer_discrete(A, B, C, D, z) for A, B, C, D in (found, made))
    assert np.abs(ours - theirs).max() <= 16 * moved * np.abs(h).max() / (1 - 0.9) ** 2


def test_noise_makes_errors_that_fall_as_one_over_the_root_of_the_length():
    made, errors = system(3, 1), []
    for l in (500, 2000, 8000):
        found = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            u = rng.standard_normal(l)
            y = outputs(made, u, np.zeros(3))
            y += 0.1 * y.std() * rng.standard_normal(l)
            away = response(refssm.subspace_realization(u, y, 3)) - response(made)
            found.append((away**2).sum())
        errors.append(np.sqrt(np.mean(found)))
    # 8 sums of squares of 7 free numbers: their root has a deviation of 1/√(2·56), a tenth
    for longer, shorter in zip(errors[1:], errors[:-1], strict=True):
        assert abs(np.log2(shorter / longer) - 1) < 3 * 0.1 * np.sqrt(2) / np.log(2)


def test_fewer_states_than_there_are_give_another_system():
    made = system(4, 0)
    u = np.random.default_rng(0).standard_normal(400)
    smaller = refssm.subspace_realization(u, outputs(made, u, np.zeros(4)), 3)
    assert [part.shape for part in smaller] == [(3, 3), (3,), (3,), ()]
    assert np.abs(response(smaller) - response(made)).max() > 1e-6


def test_a_longer_past_gives_the_same_system():
    made = system(2, 2)
    u = np.random.default_rng(1).standard_normal(400)
    y = outputs(made, u, np.ones(2))
    one, other = (response(refssm.subspace_realization(u, y, 2, rows=r)) for r in (3, 20))
    sigma = min(observed(u, y, r)[1][1] for r in (3, 20))
    moved = 4 * 20 * U * np.linalg.norm(y) * np.sqrt(20) / sigma
    assert np.abs(one - other).max() <= 2 * 16 * moved * np.abs(response(made)).max()


NOISE = np.random.default_rng(0).standard_normal(100)
REFUSED = {
    "another length": ((NOISE, NOISE[1:], 1), {}, "`y` must have the length of `u`, 100, got 99"),
    "no signal": ((NOISE[None], NOISE, 1), {}, r"`u` must be a signal \(l\) of finite real"),
    "complex": ((NOISE, NOISE * 1j, 1), {}, "`y` must be a signal .* got complex128"),
    "NaN": ((NOISE, NOISE * np.nan, 1), {}, "`y` must be a signal"),
    "no order": ((NOISE, NOISE, 0), {}, "`order` must be an integer from 1 to rows − 1 = 1, got 0"),
    "order": ((NOISE, NOISE, 3), {"rows": 3}, "from 1 to rows − 1 = 2, got 3"),
    "half": ((NOISE, NOISE, 1.5), {}, "`order` must be an integer"),
    "short": ((NOISE[:22], NOISE[:22], 1), {}, "at least 6 rows − 1 = 23 samples, got 22"),
    "one frequency": ((np.cos(np.arange(100)), NOISE, 1), {}, "`u` must have at least 2 rows = 8"),
    "no state": ((NOISE, 3 * NOISE, 1), {}, "the outputs have fewer than 1 states"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_identifies_no_system_is_refused(what):
    arguments, keywords, told = REFUSED[what]
    with pytest.raises(ValueError, match=f"^subspace_realization: .*{told}"):
        refssm.subspace_realization(*arguments, **keywords)
