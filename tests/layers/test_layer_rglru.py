from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.activations import gelu, sigmoid, softplus
from refssm.layers.gated.rglru import RGLRU_LAYER

U = 2.0**-53


def started(h=3, **sizes):
    return RGLRU_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def moved(p):
    """No number is 0 any more."""
    rng = np.random.default_rng(2)
    return p.map(lambda a: a + 0.1 * rng.standard_normal(a.shape))


def signal(l=7, h=3):
    return np.random.default_rng(1).standard_normal((l, h))


def far(p):
    """Whatever the signal: both gates are ½, and the gate's branch is GELU(20) = 20."""
    none = {name: 0 * getattr(p, name) for name in ("W_r", "b_r", "W_i", "b_i", "W_gate")}
    return replace(p, **none, b_gate=0 * p.b_gate + 20)


def test_its_parameters_are_those_of_the_published_block():
    """Two maps, the filter, two gates of blocks, the rates and the last map, each with a bias."""
    h, g, p, t = 128, 16, 8, 4
    theirs = 2 * (h * h + h) + (t + 1) * h + 2 * g * (p * p + p) + h + h * h + h
    assert sum(a.size for a in started(h).arrays().values()) == theirs == 52608


def test_it_starts_with_decays_that_are_uniform_where_the_gate_is_open():
    """a^c, c = 8, is uniform from 0.9 to 0.999, as the paper says."""
    a = np.exp(-8 * softplus(started(4096).a_param)).ravel()
    assert 0.9 * (1 - 16 * U) <= a.min() < 0.901
    assert 0.998 < a.max() <= 0.999 * (1 + 16 * U)
    # a mean of 4096 uniform numbers: three deviations
    assert abs(a.mean() - 0.9495) < 3 * 0.099 / np.sqrt(12 * 4096)


def test_its_maps_start_with_a_variance_of_one_over_their_inputs():
    p = started(256)
    for name, inputs in (("W_gate", 256), ("W_u", 256), ("W_r", 8), ("W_i", 8), ("W_out", 256)):
        W = getattr(p, name)
        assert abs(W.var() * inputs - 1) < 5 * np.sqrt(2 / W.size)  # five deviations
    assert abs(p.k.var() * 400 - 1) < 5 * np.sqrt(2 / p.k.size)  # 0.01 over four taps
    for name in ("b_gate", "b_u", "k_bias", "b_r", "b_i", "b_out"):
        assert not getattr(p, name).any()


def test_it_is_its_recurrence_written_out():
    p = moved(started(p=2, t=3))
    u, wanted, size = signal(), np.zeros((7, 3)) + p.b_out, np.abs(p.b_out).max()
    for i in range(2):
        inner, x = u @ p.W_u[i] + p.b_u[i], np.zeros(2)
        for t in range(7):
            v = sum(p.k[i, :, j] * inner[t - j] for j in range(min(3, t + 1))) + p.k_bias[i]
            r, gate = (sigmoid(v @ W[i] + b[i]) for W, b in ((p.W_r, p.b_r), (p.W_i, p.b_i)))
            log_a = -8 * softplus(p.a_param[i]) * r
            x = np.exp(log_a) * x + np.sqrt(-np.expm1(2 * log_a)) * gate * v
            opened = gelu(u[t] @ p.W_gate[i] + p.b_gate[i])
            wanted[t] += (opened * x) @ p.W_out[i]
            size += np.abs(opened * x).max() * np.abs(p.W_out[i]).sum() / 7
    # seven steps of some thirty roundings; a root of a number near 0 has half of its digits' error
    got = RGLRU_LAYER.forward(refssm, p, u)
    assert np.abs(got - wanted).max() <= 7 * 30 * U * 8 * size


def test_by_hand_an_impulse_fades_by_the_decay_of_a_gate_that_is_half_open():
    """a_param such that softplus is log 4/4: log a = −8 · log 4/4 · ½ = −log 4, so a = ¼, the root
    is √15/4, and the gate of the input is ½."""
    p = far(started(1, p=1, t=2))
    one = np.ones((1, 1, 1))
    p = replace(p, W_u=one, W_out=one, k=np.array([[[1.0, 0.0]]]), b_u=0 * p.b_u,
                a_param=np.full((1, 1), np.log(np.sqrt(2) - 1)))  # fmt: skip
    y = RGLRU_LAYER.forward(refssm, p, np.array([[1.0], [0.0], [0.0]]))
    wanted = 20 * np.sqrt(15) / 8 * np.array([1, 1 / 4, 1 / 16])
    assert np.abs(y[:, 0] - wanted).max() <= 64 * U * 20
    with_other_tap = replace(p, k=np.array([[[0.0, 1.0]]]))
    late = RGLRU_LAYER.forward(refssm, with_other_tap, np.array([[1.0], [0.0], [0.0]]))
    assert late[0, 0] == 0
    assert np.abs(late[1:, 0] - wanted[:2]).max() <= 64 * U * 20


def test_the_gates_of_a_head_read_that_head_only():
    p = moved(started(4, p=2))
    u = signal(h=4)
    W_out = p.W_out.copy()
    W_out[1] = 0  # the output of the first head alone
    p = replace(p, W_out=W_out)
    y = RGLRU_LAYER.forward(refssm, p, u)
    for name in ("W_r", "W_i", "b_r", "b_i", "a_param", "W_u"):
        a = getattr(p, name).copy()
        a[1] += 1
        assert np.array_equal(RGLRU_LAYER.forward(refssm, replace(p, **{name: a}), u), y)
        a[0] += 1
        assert not np.array_equal(RGLRU_LAYER.forward(refssm, replace(p, **{name: a}), u), y)


@pytest.mark.parametrize("scale", [1.0, 2.0**40])
def test_where_decays_are_zero_it_is_a_gated_short_convolution(scale):
    """a_param large: a = 0 and the root 1, so nothing is remembered but the filter's inputs."""
    p = far(moved(started(p=3)))
    p = replace(p, a_param=0 * p.a_param + 200 * scale)
    u = signal()
    inner = u @ p.W_u[0] + p.b_u[0]
    past = [np.concatenate([np.zeros((j, 3)), inner[: 7 - j]]) for j in range(4)]
    v = sum(p.k[0, :, j] * x for j, x in enumerate(past)) + p.k_bias[0]
    wanted = (20 * v / 2) @ p.W_out[0] + p.b_out
    size = np.abs(v).max() * 10 * np.abs(p.W_out).sum() + np.abs(p.b_out).max()
    assert np.abs(RGLRU_LAYER.forward(refssm, p, u) - wanted).max() <= 64 * U * size


def test_published_decays_at_the_start_are_eighth_powers_of_these():
    """Their a, not their a^c, lies between 0.9 and 0.999: with an open gate 0.43 to 0.992."""
    a = np.array([0.9, 0.999])
    published = np.log(np.expm1(-np.log(a)))  # rnn_param_init inverts the softplus of −log a
    decays = np.exp(-8 * softplus(published))
    assert np.abs(decays - a**8).max() <= 64 * U
    assert decays.round(3).tolist() == [0.43, 0.992]


def test_a_piece_without_inputs_leaves_the_states():
    p = moved(started(p=2))
    _, state = RGLRU_LAYER.stateful(refssm, p, signal(), RGLRU_LAYER.rest(p))
    y, after = RGLRU_LAYER.stateful(refssm, p, signal(0), state)
    assert y.shape == (0, 3)
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))


def test_without_heads_it_is_its_last_bias():
    p = started()
    none = p.map(lambda a: a[:0] if a.shape != (3,) else a + 2)
    y = RGLRU_LAYER.forward(refssm, none, signal())
    assert np.array_equal(y, np.full((7, 3), 2.0))
    assert not RGLRU_LAYER.vjp(refssm, y, none, signal())[1].any()
