import numpy as np

import refssm
from refssm.layers.hippo_rnn import HIPPO_RNN_LAYER, HippoRNN
from refssm.layers.rnn import RNN, RNN_LAYER

U = 2.0**-53


def test_its_parameters_are_counted():
    h, d, n = 128, 64, 32
    p = HIPPO_RNN_LAYER.init(np.random.default_rng(0), h=h, d=d, n=n)
    cell = (h + d + n) * d + d + d + 1
    assert sum(a.size for a in p.arrays().values()) == cell + d * h + h == 22785


def test_one_unit_with_one_coefficient_is_a_recurrence_written_out():
    """LegT with n = 1 is c' = −c + f over the window of 1."""
    one, first = np.ones((1, 1)), np.ones(1)
    p = HippoRNN(0.5 * one, -1.0 * one, 2.0 * one, 0.25 * first, 3.0 * first,
                 np.array(np.log(0.5)), 1.0 * one, 0.0 * first)  # fmt: skip
    x, c, wanted = 0.0, 0.0, []
    for u in (1.0, -1.0, 0.5, 0.0):
        x = np.tanh(0.5 * u - x + 2 * c + 0.25)
        c = np.exp(-0.5) * c - np.expm1(-0.5) * 3 * x
        wanted.append(x)
    got = HIPPO_RNN_LAYER.forward(refssm, p, np.array([[1.0], [-1.0], [0.5], [0.0]]))[:, 0]
    # every step adds about 10 roundings and carries at most 1 + 2 · 3 · 0.4 times the error
    assert np.abs(got - wanted).max() <= 10 * 3.4**4 * U


def test_without_its_memory_it_is_the_plain_network():
    p = HIPPO_RNN_LAYER.init(np.random.default_rng(0), h=2, d=3, n=4)
    p = HippoRNN(**(p.arrays() | {"W_c": 0 * p.W_c}))
    u = np.random.default_rng(1).standard_normal((6, 2))
    wanted = RNN_LAYER.forward(refssm, RNN(p.W_u, p.W_x, p.b_x, p.W, p.b), u)
    assert np.array_equal(HIPPO_RNN_LAYER.forward(refssm, p, u), wanted)


def test_its_memory_projects_a_constant_onto_the_first_polynomial():
    """With f = 1 for more than a window, c = (1, 0, …, 0): the constant is the Legendre P₀.

    LegT is stable but forgets no faster than its slowest eigenvalue, so we wait ten windows.
    """
    n, dt = 4, 1 / 16
    A, B = refssm.hippo_legt(n=n)
    A_bar, B_bar = refssm.discretize_zoh(A, B[:, None], dt)
    c = np.zeros(n)
    for _ in range(160):
        c = A_bar @ c + B_bar[:, 0]
    slowest = np.linalg.norm(np.linalg.matrix_power(A_bar, 160))
    rest = np.linalg.solve(A, -B)  # the state that a constant input keeps
    assert np.abs(c - rest).max() <= slowest * np.linalg.norm(rest) + 160 * n * U
    assert np.abs(rest - np.eye(n)[0]).max() <= 16 * n * U * np.linalg.cond(A)
