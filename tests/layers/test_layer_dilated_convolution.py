from dataclasses import replace

import numpy as np
from scipy.special import expit

import refssm
from refssm.layers.convolutions.dilated_convolution import (
    DILATED_CONVOLUTION_LAYER,
    DILATIONS,
    DilatedConvolution,
)

U = 2.0**-53


def started(h=2):
    return DILATED_CONVOLUTION_LAYER.init(np.random.default_rng(0), h=h)


def only(p, i):
    """The parameters with all units silent but i."""
    kept = (np.arange(3) == i)[:, None, None]
    return replace(p, W_out=p.W_out * kept)


def late(u, d):
    return np.concatenate([np.zeros((d, u.shape[-1])), u])[: len(u)]


def test_its_parameters_are_counted():
    """In each unit two taps and a bias to 2h numbers, and a map from h to h."""
    p = started(h=128)
    assert sum(a.size for a in p.arrays().values()) == 3 * (2 * 2 * 128**2 + 2 * 128 + 128**2)


def test_one_unit_is_a_gated_convolution_of_two_taps():
    """Silent units before it leave u as it is."""
    u = np.random.default_rng(1).standard_normal((20, 2))
    for i, d in enumerate(DILATIONS):
        p = only(started(), i)
        a, c = np.split(u @ p.W_now[i] + late(u, d) @ p.W_past[i] + p.b[i], 2, axis=-1)
        wanted = (np.tanh(a) * expit(c)) @ p.W_out[i]
        size = np.abs(p.W_out[i]).sum() * (1 + np.abs(u).max() * np.abs(p.W_now[i]).sum() * 2)
        y = DILATED_CONVOLUTION_LAYER.forward(refssm, p, u)
        assert np.abs(y - wanted).max() <= 32 * U * size


def test_taps_of_one_channel_each_with_dilation_one_are_a_short_convolution():
    """Diagonal matrices: tanh of `short_convolution`, and of `causal_conv1d` before its SiLU."""
    u = np.random.default_rng(1).standard_normal((9, 2))
    p = only(started(), 0)
    now, past, open_ = np.array([0.5, -1.0]), np.array([0.25, 2.0]), 40.0  # σ(40) = 1 − 4e-18
    W_now, W_past = p.W_now.copy(), p.W_past.copy()
    W_now[0], W_past[0] = (np.concatenate([np.diag(k), 0 * np.diag(k)], 1) for k in (now, past))
    b = np.zeros((3, 4))
    b[0, 2:] = open_
    p = DilatedConvolution(W_now, W_past, b, np.stack([np.eye(2), *np.zeros((2, 2, 2))]))
    y = DILATED_CONVOLUTION_LAYER.forward(refssm, p, u)
    k = np.stack([now, past], axis=-1)
    filtered = refssm.short_convolution(u.T, k).T
    assert np.abs(y - np.tanh(filtered)).max() <= 16 * U * (1 + np.abs(filtered).max())
    activated = refssm.causal_conv1d(u.T, k, np.zeros(2)).T
    assert np.abs(activated - filtered * expit(filtered)).max() <= 16 * U * np.abs(filtered).max()


def test_an_output_reads_eight_steps():
    """The gradient of the last output says which inputs it depends on."""
    p, u = started(), np.random.default_rng(1).standard_normal((20, 2))
    dy = np.zeros((20, 2))
    dy[-1] = 1
    _, du = DILATED_CONVOLUTION_LAYER.vjp(refssm, dy, p, u)
    assert np.array_equal(du.any(axis=-1), np.arange(20) >= 12)
    assert sum(DILATIONS) + 1 == 8


def test_its_output_is_what_the_units_add():
    """Two units: the second reads u and what the first adds."""
    p, u = started(), np.random.default_rng(1).standard_normal((9, 2))
    p = replace(p, W_out=p.W_out * (np.arange(3) < 2)[:, None, None])
    first = DILATED_CONVOLUTION_LAYER.forward(refssm, only(p, 0), u)
    second = DILATED_CONVOLUTION_LAYER.forward(refssm, only(p, 1), u + first)
    y = DILATED_CONVOLUTION_LAYER.forward(refssm, p, u)
    assert np.abs(y - (first + second)).max() <= 64 * U * (np.abs(first) + np.abs(second)).max()


def test_its_states_are_the_last_rows_that_each_unit_read():
    p, u = started(), np.random.default_rng(1).standard_normal((9, 2))
    rest = DILATED_CONVOLUTION_LAYER.rest(p)
    assert [s.shape for s in rest] == [(1, 2), (2, 2), (4, 2)]
    _, states = DILATED_CONVOLUTION_LAYER.stateful(refssm, p, u, rest)
    assert np.array_equal(states[0], u[-1:])
    first = DILATED_CONVOLUTION_LAYER.forward(refssm, only(p, 0), u)
    assert np.abs(states[1] - (u + first)[-2:]).max() <= 16 * U * np.abs(u).max()
