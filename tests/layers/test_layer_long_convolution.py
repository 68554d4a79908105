from dataclasses import replace

import numpy as np

import refssm
from refssm.layers._parts import bank
from refssm.layers.convolutions.long_convolution import LONG_CONVOLUTION_LAYER, LongConvolution
from refssm.layers.hope import HOPE_LAYER

U = 2.0**-53


def started(h=2, t=4):
    return LONG_CONVOLUTION_LAYER.init(np.random.default_rng(0), h=h, t=t)


def drawn(l=9, h=2):
    return np.random.default_rng(1).standard_normal((l, h))


def error(p, u, y):
    """Of the layer against GLU(GELU(y) W + b), in units of u times the size of all terms."""
    wanted = bank.mixed(refssm, p, y)
    size = (1 + np.abs(y).max()) * np.abs(p.W).sum() + np.abs(p.b).max()
    return np.abs(LONG_CONVOLUTION_LAYER.forward(refssm, p, u) - wanted).max() / (U * size)


def test_its_parameters_are_counted():
    p = started(h=128, t=64)
    assert sum(a.size for a in p.arrays().values()) == 128 * (64 + 1 + 256 + 2)


def test_the_kernel_of_an_impulse_is_the_identity():
    p = started()
    p = replace(p, k=np.eye(1, 4).repeat(2, 0), D=np.zeros(2))
    assert error(p, drawn(), drawn()) <= 64


def test_the_kernel_of_a_late_impulse_is_a_delay():
    p = started()
    p = replace(p, k=np.eye(1, 4, 3).repeat(2, 0), D=np.zeros(2))
    late = np.concatenate([np.zeros((3, 2)), drawn()[:-3]])
    assert error(p, drawn(), late) <= 64


def test_the_kernel_of_ones_is_a_moving_sum_of_t_inputs():
    p = replace(started(t=3), k=np.ones((2, 3)), D=np.zeros(2))
    u = drawn()
    sums = np.stack([u[max(0, i - 2) : i + 1].sum(0) for i in range(len(u))])
    assert error(p, u, sums) <= 256  # a transform of 18 points


def test_a_short_signal_meets_the_first_numbers_of_the_kernel_only():
    p, u = started(t=9), drawn(l=3)
    cut = replace(p, k=np.concatenate([p.k[:, :3], 100 + p.k[:, 3:]], axis=-1))
    one, two = (LONG_CONVOLUTION_LAYER.forward(refssm, q, u) for q in (p, cut))
    assert np.array_equal(one, two)
    dp, _ = LONG_CONVOLUTION_LAYER.vjp(refssm, np.ones((3, 2)), p, u)
    assert not dp.k[:, 3:].any()
    assert dp.k[:, :3].all()


def test_with_steps_of_one_hope_is_this_layer():
    """At dt = 1 HOPE's all-passes are delays: the kernel is 0, then its Markov parameters."""
    p = HOPE_LAYER.init(np.random.default_rng(0), h=2, n=4)
    p = replace(p, log_dt=np.zeros(2))
    kernel = np.pad(p.markov, ((0, 0), (1, 0)))
    own = LongConvolution(kernel, p.D, p.W, p.b)
    u = drawn()
    one, two = HOPE_LAYER.forward(refssm, p, u), LONG_CONVOLUTION_LAYER.forward(refssm, own, u)
    size = (1 + np.abs(u).max() * np.abs(kernel).sum()) * np.abs(p.W).sum() + np.abs(p.b).max()
    assert np.abs(one - two).max() <= 256 * U * size


def test_its_state_is_the_last_inputs():
    p, u = started(t=4), drawn()
    _, (s,) = LONG_CONVOLUTION_LAYER.stateful(refssm, p, u, LONG_CONVOLUTION_LAYER.rest(p))
    assert np.array_equal(s, u[-4:].T)
