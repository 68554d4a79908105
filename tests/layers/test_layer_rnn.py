import numpy as np

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
