from dataclasses import replace

import numpy as np

import refssm
from refssm.activations import gelu
from refssm.layers.gated.gss import GSS_LAYER, modes

U = 2.0**-53


def started(h=3, **sizes):
    return GSS_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def signal(l=7, h=3):
    return np.random.default_rng(1).standard_normal((l, h))


def test_its_parameters_are_those_of_published_code_without_norms_and_biases():
    h, m, e, n = 128, 32, 512, 64
    theirs = h * e + h * m + 2 * n + 2 * m * n + m + m * e + e * h
    found = started(h).arrays().values()
    assert sum(a.size * (1 + np.iscomplexobj(a)) for a in found) == theirs == 155808


def test_it_starts_at_random():
    p = started(64, n=4096)
    for a in (p.log_rate, p.log_phase):  # normal: mean and variance within five deviations
        assert abs(a.mean()) < 5 / 64
        assert abs(a.var() - 1) < 5 * np.sqrt(2) / 64
    assert abs((np.abs(p.C) ** 2).mean() * 4096 - 1) < 5 / np.sqrt(p.C.size)
    assert (p.C.shape, p.W_gate.shape) == ((16, 4096), (64, 256))
    assert started(5).W_u.shape == (5, 2)  # 5/4 channels, rounded up


def test_by_hand_an_impulse_alternates_where_the_mode_turns_by_half_a_turn():
    """e^w = −½ and C (e^w − 1)/w = 1. One channel carries the signal, another one opens the gate;
    GELU(32) = 32 and GELU(16) = 16."""
    w = -np.log(2) + 1j * np.pi
    one = np.ones((1, 1))
    p = replace(
        started(2, n=1, shrink=2, expand=1), log_rate=np.log(-w.real[None]),
        log_phase=np.log(w.imag[None]), C=(w / np.expm1(w)) * one, D=np.zeros(1),
        W_u=np.array([[1.0], [0.0]]), W_gate=np.array([[0.0], [1.0]]), W_wide=one,
        W_out=np.array([[1.0, 0.0]]),
    )  # fmt: skip
    u = np.array([[32.0, 16.0], [0.0, 16.0], [0.0, 16.0], [0.0, 0.0]])
    wanted = 512 * np.array([1, -1 / 2, 1 / 4, 0])  # at last the gate is closed
    y = GSS_LAYER.forward(refssm, p, u)
    assert np.abs(y[:, 0] - wanted).max() <= 64 * U * 512
    assert not y[:, 1].any()
    skipped = GSS_LAYER.forward(refssm, replace(p, D=np.ones(1)), u)
    assert np.abs(skipped[:, 0] - wanted - 512 * np.array([1, 0, 0, 0])).max() <= 64 * U * 512


def test_it_is_a_direct_convolution_between_its_maps():
    """The kernel is that of S4D with steps of 1 and no partners."""
    p, u = started(5, n=3), signal(h=5)
    K = refssm.diagonal_kernel_zoh(modes(p), np.ones(3) + 0j, p.C, np.ones(2), l=7).real
    x = gelu(u @ p.W_u)
    y = refssm.causal_convolution_direct(x.T, K).T + p.D * x
    gate = gelu(u @ p.W_gate)
    wanted = (gate * (y @ p.W_wide)) @ p.W_out
    size = (np.abs(gate) * (np.abs(y).max() * np.abs(p.W_wide).sum(0))) @ np.abs(p.W_out)
    # seven steps of some ten roundings, four maps of up to twenty numbers, a transform of 14
    bound = 32 * 10 * U * size.max()
    assert np.abs(GSS_LAYER.forward(refssm, p, u) - wanted).max() <= bound
    other = replace(p, log_phase=p.log_phase + 1)
    assert np.abs(GSS_LAYER.forward(refssm, other, u) - wanted).max() > bound


def test_all_channels_have_the_same_modes():
    """Channels with equal C and equal inputs are equal."""
    p = started(8, n=3)
    p = replace(p, C=np.repeat(p.C[:1], 2, 0), W_u=np.repeat(p.W_u[:, :1], 2, 1), D=0 * p.D)
    q = GSS_LAYER.prepared(refssm, p, 7)[0]
    assert np.array_equal(q.K[0], q.K[1])
    swapped = replace(p, W_wide=p.W_wide[::-1].copy())
    u = signal(h=8)
    one, two = (GSS_LAYER.forward(refssm, x, u) for x in (p, swapped))
    assert np.abs(one - two).max() <= 32 * U * np.abs(p.W_wide).sum() * np.abs(u).sum()


def test_it_knows_no_units_of_time():
    """Its step is 1: a system whose rates and phases are halved needs twice the steps."""
    p = started(4, n=3)
    slow = replace(p, log_rate=p.log_rate - np.log(2), log_phase=p.log_phase - np.log(2))
    a, b = np.exp(modes(p)), np.exp(modes(slow))
    assert np.abs(a - b**2).max() <= 64 * U
