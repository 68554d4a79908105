import numpy as np
import pytest

import refssm
from refssm.layers.rnn import RNN, RNN_LAYER

U = 2.0**-53


def test_its_parameters_are_counted():
    """PyTorch's RNN(h, n) has n more: two biases where one does."""
    h, n = 128, 64
    p = RNN_LAYER.init(np.random.default_rng(0), h=h, n=n)
    cell = h * n + n * n + n
    assert sum(a.size for a in p.arrays().values()) == cell + n * h + h == 20672


def test_one_unit_is_a_recurrence_written_out():
    one = np.ones((1, 1))
    p = RNN(0.5 * one, -2.0 * one, 0.25 * one[0], 3.0 * one, 1.0 * one[0])
    x, wanted = 0.0, []
    for u in (1.0, -1.0, 0.5):
        x = np.tanh(0.5 * u - 2 * x + 0.25)
        wanted.append(3 * x + 1)
    got = RNN_LAYER.forward(refssm, p, np.array([[1.0], [-1.0], [0.5]]))[:, 0]
    # tanh errs by 4 u; each step carries the error of x twice and adds seven more
    assert np.abs(got - wanted).max() <= 3 * 7 * (1 + 2 + 4) * U


def test_without_recurrence_it_is_a_network_of_one_hidden_layer():
    p = RNN_LAYER.init(np.random.default_rng(0), h=2, n=5)
    p = RNN(**(p.arrays() | {"W_x": np.zeros((5, 5))}))
    u = np.random.default_rng(1).standard_normal((4, 2))
    wanted = np.tanh(u @ p.W_u + p.b_x) @ p.W + p.b
    assert np.abs(RNN_LAYER.forward(refssm, p, u) - wanted).max() <= 32 * U


def test_with_hippo_and_no_tanh_it_remembers_as_legs_does():
    """Small signals: tanh x = x − x³/3, and the state is that of the linear system Ā."""
    p = RNN_LAYER.init(np.random.default_rng(0), h=1, n=8, recurrence="hippo")
    A, _ = refssm.hippo_legs(n=8)
    A_bar, _ = refssm.discretize_bilinear(A, np.ones((8, 1)), 0.01)
    assert np.array_equal(p.W_x, A_bar.T)
    p = RNN(**(p.arrays() | {"b_x": np.zeros(8), "W": np.eye(8)[:, :1], "b": np.zeros(1)}))
    u = 2.0**-12 * np.random.default_rng(1).standard_normal((5, 1))
    x = refssm.dense_scan(A_bar, u * p.W_u[0])
    y = RNN_LAYER.forward(refssm, p, u)[:, 0]
    assert np.abs(y - x[:, 0]).max() <= 5 * np.abs(x).max() ** 3  # five steps of a third each
    assert np.abs(y).max() > 0


def test_the_matrix_of_hippo_is_that_of_two_states_by_hand():
    """A = (−1 0; −√3 −2): I + A dt/2 and I − A dt/2 are triangular, Ā too."""
    p = RNN_LAYER.init(np.random.default_rng(0), h=1, n=2, recurrence="hippo")
    first, second = 0.995 / 1.005, 0.99 / 1.01
    below = -np.sqrt(3) * 0.005 * (1 + first) / 1.01
    assert np.abs(p.W_x - [[first, below], [0, second]]).max() <= 8 * U


@pytest.mark.parametrize("n", [1, 8, 64])
def test_no_state_grows_by_the_matrix_of_hippo(n):
    p = RNN_LAYER.init(np.random.default_rng(0), h=1, n=n, recurrence="hippo")
    assert np.linalg.norm(p.W_x, 2) <= 1 + 8 * n * U


def test_an_unknown_recurrence_is_refused():
    with pytest.raises(ValueError, match="`recurrence` must be one of uniform, hippo, got 'lru'"):
        RNN_LAYER.init(np.random.default_rng(0), h=1, recurrence="lru")
