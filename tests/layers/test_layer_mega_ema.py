from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.activations import sigmoid, silu
from refssm.layers.gated.mega_ema import MEGA_EMA_LAYER

U = 2.0**-53


def started(h=3, **sizes):
    return MEGA_EMA_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def signal(l=7, h=3):
    return np.random.default_rng(1).standard_normal((l, h))


def of_one(delta, alpha, beta=1.0, gamma=1.0, omega=0.0):
    """One channel with one dimension."""
    p = started(1, n=1)
    given = {"delta": delta, "alpha": alpha, "beta": beta, "gamma": gamma, "omega": omega}
    return replace(p, **{name: 0 * getattr(p, name) + value for name, value in given.items()})


def test_its_parameters_are_those_of_the_published_layer():
    assert sum(a.size for a in started(128).arrays().values()) == 4 * 128 * 16 + 128 == 8320


def test_it_starts_as_its_published_code():
    """β is near 1, −1, 1, …; all numbers within five deviations."""
    p = started(256)
    signs = np.array([1.0, -1.0] * 8)
    for a, deviation in ((p.delta, 0.2), (p.alpha, 0.2), (p.beta - signs, 0.02), (p.gamma, 1.0)):
        assert abs(a.mean()) < 5 * deviation / np.sqrt(a.size)
        assert abs(a.std() / deviation - 1) < 5 / np.sqrt(2 * a.size)
    assert abs(p.omega.std() - 1) < 5 / np.sqrt(2 * 256)


def test_by_hand_an_impulse_fades_by_three_quarters():
    """δ = α = 0: p = ½ and q = 1 − ½ · ½."""
    y = MEGA_EMA_LAYER.forward(refssm, of_one(0.0, 0.0), np.array([[8.0], [0.0], [0.0]]))
    assert np.abs(y[:, 0] - silu(np.array([4.0, 3.0, 2.25]))).max() <= 64 * U


@pytest.mark.parametrize("delta", [-2.0, 0.0, 3.0])
def test_without_damping_it_is_the_exponential_average(delta):
    """σ(α) = 1: weights p and 1 − p, so a constant input of 1 gives 1 − (1 − p)^k."""
    y = MEGA_EMA_LAYER.forward(refssm, of_one(delta, 50.0), np.ones((9, 1)))
    average = 1 - (1 - sigmoid(np.array(delta))) ** np.arange(1, 10)
    assert np.abs(y[:, 0] - silu(average)).max() <= 9 * 16 * U


def test_damping_makes_the_answer_to_a_constant_larger_by_its_inverse():
    """Σ_k p q^k = (1 − q^l)/σ(α): each dimension adds β γ/(√n σ(α))."""
    p = started(2, n=3)
    damping = sigmoid(p.alpha)
    q = 1 - sigmoid(p.delta) * damping
    steps = np.arange(1, 10)[:, None, None]
    terms = p.beta * p.gamma / (np.sqrt(3) * damping) * (1 - q**steps)
    y = MEGA_EMA_LAYER.forward(refssm, p, np.ones((9, 2)))
    size = np.abs(terms).sum(-1).max() + np.abs(p.omega).max()
    assert np.abs(y - silu(terms.sum(-1) + p.omega)).max() <= 9 * 16 * U * size


def test_it_is_its_recurrence_written_out():
    p, u = started(n=4), signal()
    share, x, wanted = sigmoid(p.delta), np.zeros((3, 4)), []
    for row in u:
        x = (1 - share * sigmoid(p.alpha)) * x + share * p.beta * row[:, None]
        wanted.append(silu((p.gamma * x).sum(-1) / 2 + p.omega * row))
    size = np.abs(p.gamma * share * p.beta).sum(-1).max() * np.abs(u).sum(0).max()
    size += np.abs(p.omega).max() * np.abs(u).max()
    bound = 7 * 16 * U * size  # seven steps of at most sixteen roundings
    assert np.abs(MEGA_EMA_LAYER.forward(refssm, p, u) - np.array(wanted)).max() <= bound
    other = replace(p, alpha=p.delta, delta=p.alpha)
    assert np.abs(MEGA_EMA_LAYER.forward(refssm, other, u) - np.array(wanted)).max() > bound


def test_no_channel_reads_another_one():
    p, u = started(n=4), signal()
    y = MEGA_EMA_LAYER.forward(refssm, p, u)
    changed = u.copy()
    changed[:, 1] += 1
    other = MEGA_EMA_LAYER.forward(refssm, p, changed)
    assert np.array_equal(y[:, [0, 2]], other[:, [0, 2]])
    assert not np.array_equal(y[:, 1], other[:, 1])


def test_a_decay_that_rounds_to_zero_is_no_nan():
    """Published code takes its logarithm: 0 · log 0 at the newest input."""
    p = of_one(20.0, 20.0).map(lambda a: a.astype(np.float32))
    share = sigmoid(p.delta)
    q = 1 - share * sigmoid(p.alpha)
    assert q == 0
    with np.errstate(all="ignore"):
        assert np.isnan(0 * np.log(q)).all()
    u = np.array([[8.0], [0.0]], np.float32)
    assert np.array_equal(MEGA_EMA_LAYER.forward(refssm, p, u), silu(u))
