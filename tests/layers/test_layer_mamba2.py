from dataclasses import replace

import numpy as np
from scipy.special import expit

import refssm
from refssm.layers.attention.mamba2 import MAMBA2_LAYER

U = 2.0**-53


def started(h=3, **sizes):
    return MAMBA2_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def moved(p):
    """No number is 0 or 1 any more."""
    rng = np.random.default_rng(2)
    return p.map(lambda a: a + 0.1 * rng.standard_normal(a.shape))


def silu(x):
    return x * expit(x)


def filtered(u, W, k, bias):
    """silu(Σ_j k_j (u W)_{i−j} + bias), in plain sums."""
    x = u @ W
    past = [np.concatenate([np.zeros_like(x[:j]), x[: len(x) - j]]) for j in range(k.shape[-1])]
    return silu(sum(k[:, j] * shifted for j, shifted in enumerate(past)) + bias)


def normal(y):
    return y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-5)


def test_its_parameters_are_those_of_the_published_layer():
    """in_proj, conv1d with bias, dt_bias, A_log, D, norm and out_proj of `Mamba2Simple`."""
    h, e, n, g, t = 128, 256, 16, 16, 4
    p = started(h)
    theirs = h * (2 * e + 2 * n + g) + (e + 2 * n) * (t + 1) + 3 * g + e + e * h
    assert sum(a.size for a in p.arrays().values()) == theirs == 106192


def test_it_starts_as_its_published_code():
    p = started(64)
    rates, dt = np.exp(p.log_rate), np.logaddexp(0, p.dt_bias)
    assert 1 <= rates.min() <= rates.max() <= 16
    assert 1e-3 * (1 - 2**-40) <= dt.min() <= dt.max() <= 1e-1 * (1 + 2**-40)
    assert np.array_equal(p.D, np.ones(8))
    assert np.array_equal(p.scale, np.ones((8, 16)))
    assert np.abs(p.k_x).max() <= 4**-0.5


def test_with_one_head_and_no_skip_it_is_ssd_between_filters_gate_and_norm():
    """g = 1 and D = 0: `ssd_recurrent` of Δ x and Δ A."""
    p = moved(started(n=2, p=6))
    p = replace(p, D=0 * p.D)
    u = np.random.default_rng(1).standard_normal((7, 3))
    x = filtered(u, p.W_x[0], p.k_x[0], p.bias_x[0])
    B, C = filtered(u, p.W_B, p.k_B, p.bias_B), filtered(u, p.W_C, p.k_C, p.bias_C)
    dt = np.logaddexp(0, u @ p.W_dt[:, 0] + p.dt_bias[0])
    y = refssm.ssd_recurrent(dt[:, None] * x, -np.exp(p.log_rate[0]) * dt, B, C)
    gated = y * silu(u @ p.W_z[0])
    wanted = normal(gated) * p.scale[0] @ p.W_out[0]
    got = MAMBA2_LAYER.forward(refssm, p, u)
    # seven steps of some thirty roundings; the norm multiplies errors by at most 1/√ε
    size = np.abs(gated).max() / np.sqrt(1e-5) * np.abs(p.scale).max() * np.abs(p.W_out).sum()
    assert np.abs(got - wanted).max() <= 7 * 30 * U * size


def test_it_is_its_recurrence_written_out_with_heads_that_share_B_and_C():
    p = moved(started(n=2, p=2))
    u = np.random.default_rng(1).standard_normal((7, 3))
    B, C = filtered(u, p.W_B, p.k_B, p.bias_B), filtered(u, p.W_C, p.k_C, p.bias_C)
    heads = []
    for i in range(3):
        x, S = filtered(u, p.W_x[i], p.k_x[i], p.bias_x[i]), np.zeros((2, 2))
        dt, z = np.logaddexp(0, u @ p.W_dt[:, i] + p.dt_bias[i]), u @ p.W_z[i]
        for t in range(7):
            S = np.exp(-np.exp(p.log_rate[i]) * dt[t]) * S + dt[t] * np.outer(x[t], B[t])
            heads.append((S @ C[t] + p.D[i] * x[t]) * silu(z[t]))
    y = np.array(heads).reshape(3, 7, 2).swapaxes(0, 1).reshape(7, 6)
    wanted = normal(y) * p.scale.ravel() @ p.W_out.reshape(6, 3)
    size = np.abs(y).max() / np.sqrt(1e-5) * np.abs(p.scale).max() * np.abs(p.W_out).sum()
    got = MAMBA2_LAYER.forward(refssm, p, u)
    assert np.abs(got - wanted).max() <= 7 * 30 * U * size
    other = replace(p, W_B=p.W_C, W_C=p.W_B)
    assert np.abs(MAMBA2_LAYER.forward(refssm, other, u) - wanted).max() > 7 * 30 * U * size


def test_without_its_state_it_is_a_gated_short_convolution():
    p = moved(started(n=2, p=6))
    p = replace(p, W_C=0 * p.W_C, bias_C=0 * p.bias_C)
    u = np.random.default_rng(1).standard_normal((7, 3))
    gated = p.D[0] * filtered(u, p.W_x[0], p.k_x[0], p.bias_x[0]) * silu(u @ p.W_z[0])
    wanted = normal(gated) * p.scale[0] @ p.W_out[0]
    size = np.abs(gated).max() / np.sqrt(1e-5) * np.abs(p.scale).max() * np.abs(p.W_out).sum()
    assert np.abs(MAMBA2_LAYER.forward(refssm, p, u) - wanted).max() <= 64 * U * size
