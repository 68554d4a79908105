"""Layers whose output is a gate over D u: what is left when the system is silent."""

import numpy as np
import pytest
from scipy.special import expit

import refssm
from refssm.activations import gelu
from refssm.layers.catalog import NAMED

H = 3


def silent(name):
    """The layer with C = 0 (HOPE: markov = 0) and D = 1."""
    p = NAMED[name].init(np.random.default_rng(0), h=H, n=4)
    output = "markov" if name == "hope" else "C"
    zero = p.arrays() | {output: 0 * getattr(p, output), "D": np.ones(H)}
    return NAMED[name], type(p)(**zero)


@pytest.mark.parametrize("name", ["s4", "s4d", "lru", "hope"])
def test_without_its_system_a_bank_is_a_gated_gelu(name):
    layer, p = silent(name)
    u = np.random.default_rng(1).standard_normal((5, H))
    mixed = gelu(u) @ p.W + p.b
    wanted = mixed[:, :H] * expit(mixed[:, H:])  # the first half is gated by the second
    # the convolution with zeros by FFT gives zeros
    assert np.array_equal(layer.forward(refssm, p, u), wanted)


def test_without_its_system_s5_gates_its_gelu_by_itself():
    layer, p = silent("s5")
    u = np.random.default_rng(1).standard_normal((5, H))
    assert np.array_equal(layer.forward(refssm, p, u), gelu(u) * expit(gelu(u) @ p.W + p.b))
