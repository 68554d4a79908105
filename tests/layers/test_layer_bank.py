"""Layers whose output is a gate over D u: what is left when the system is silent."""

import numpy as np
import pytest
from scipy.special import expit

import refssm
from refssm.activations import gelu
from refssm.layers.catalog import NAMED

H = 3


def silent(name):
    """The layer with C = 0 (HOPE: all Markov parameters 0)."""
    p = NAMED[name].init(np.random.default_rng(0), h=H, n=4)
    outputs = [n for n in p.arrays() if n == "C" or n.startswith("markov")]
    return NAMED[name], type(p)(**p.arrays() | {n: 0 * getattr(p, n) for n in outputs})


@pytest.mark.parametrize("name", ["s4", "s4d", "s4d_bilinear", "lru", "hope", "hope_bidirectional"])
def test_without_its_system_a_bank_is_a_gated_gelu(name):
    layer, p = silent(name)
    u = np.random.default_rng(1).standard_normal((5, H))
    mixed = gelu(p.D * u) @ p.W + p.b
    wanted = mixed[:, :H] * expit(mixed[:, H:])  # the first half is gated by the second
    # zeros are exact, also those of an FFT; the gate has a few roundings of numbers below 4
    assert np.abs(wanted).max() < 4
    assert np.abs(layer.forward(refssm, p, u) - wanted).max() <= 4 * 8 * 2.0**-53


@pytest.mark.parametrize("name", ["s5", "s5_bidirectional"])
def test_without_its_system_s5_gates_its_gelu_by_itself(name):
    layer, p = silent(name)
    u = np.random.default_rng(1).standard_normal((5, H))
    g = gelu(p.D * u)
    assert np.abs(layer.forward(refssm, p, u) - g * expit(g @ p.W + p.b)).max() <= 2.0**-50
