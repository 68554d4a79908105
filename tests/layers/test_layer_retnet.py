from dataclasses import replace

import numpy as np
from scipy.special import expit

import refssm
from refssm.layers.attention.retnet import RETNET_LAYER, angles, decays, retained

U = 2.0**-53


def drawn(g, l, n, p):
    """Complex queries and keys, and values, of g heads."""
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, g, l, n)) + 1j * rng.standard_normal((2, g, l, n))
    return q, k, rng.standard_normal((g, l, p))


def normal(y):
    centred = y - y.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def test_its_parameters_are_those_of_the_published_layer():
    """h² for q and k, twice as many for v, gate and out, if the keys of all heads are h numbers."""
    p = RETNET_LAYER.init(np.random.default_rng(0), h=128, heads=4, n=16)
    numbers = sum(a.size * (1 + np.iscomplexobj(a)) for a in p.arrays().values())
    assert numbers == (1 + 1 + 2 + 2 + 2) * 128 * 128


def test_its_heads_forget_at_the_rates_of_the_paper_and_turn_as_the_published_code():
    gamma = np.array([31 / 32, 63 / 64, 127 / 128, 255 / 256])
    assert np.abs(np.exp(decays(4)) - gamma).max() <= 4 * U
    assert np.abs(angles(3) - [1, 1e-2, 1e-4]).max() <= 4 * U


def test_without_decay_and_turns_it_is_linear_attention_without_features_and_normaliser():
    """y_t = Σ_{s≤t} Re(q_t k_s*) v_s: with the real numbers of a pair, an inner product."""
    q, k, v = drawn(2, 6, 3, 4)
    y, _ = retained(refssm, q, k, v, np.zeros(2), np.zeros(3))
    as_real = (x.view(np.float64) for x in (q, k))
    scores = np.einsum("gtn,gsn->gts", *as_real)
    wanted = np.tril(scores) @ v
    size = (np.abs(q).sum(-1).max() * np.abs(k).sum(-1).max()) * np.abs(v).sum(-2).max()
    assert np.abs(y - wanted).max() <= 16 * U * size
    ones = np.zeros((2, 6, 6))  # and it is that operator, with a gate of 1
    q, k = (x.view(np.float64) for x in (q, k))
    assert np.abs(refssm.gated_linear_recurrence(q, k, v, ones) - wanted).max() <= 16 * U * size


def test_it_is_a_sum_over_pairs_of_steps_with_keys_that_are_turned():
    """The paper's parallel form, in its published layout: rotations of pairs of real numbers."""
    p = RETNET_LAYER.init(np.random.default_rng(0), h=3, heads=2, n=2)
    u, l = np.random.default_rng(1).standard_normal((6, 3)), 6
    wanted, size = np.zeros((6, 3)), 0.0
    for i in range(2):
        q, k = ((u @ W[i]).view(np.float64) for W in (p.W_q, p.W_k))  # pairs side by side
        v, z = u @ p.W_v[i], u @ p.W_gate[i]
        turned = []
        for x in (q, k / 2):
            angle = np.arange(l)[:, None] * np.array([1, 1e-4])
            cos, sin = np.repeat(np.cos(angle), 2, -1), np.repeat(np.sin(angle), 2, -1)
            other = np.stack([-x[:, 1::2], x[:, ::2]], axis=-1).reshape(x.shape)
            turned.append(x * cos + other * sin)
        distance = np.subtract.outer(np.arange(l), np.arange(l))
        decay = np.where(distance >= 0, (1 - 2.0 ** (-5 - i)) ** np.maximum(distance, 0), 0)
        y = (turned[0] @ turned[1].T * decay) @ v
        wanted += normal(y) * (z * expit(z)) @ p.W_out[i]
        terms = (np.abs(turned[0]) @ np.abs(turned[1]).T * decay) @ np.abs(v)
        size += (terms.max() * 1e-5**-0.5 + 1) * np.abs(z).max() * np.abs(p.W_out[i]).sum()
    # turns by at most six radians, six steps of about ten roundings; ε bounds what the norm adds
    assert np.abs(RETNET_LAYER.forward(refssm, p, u) - wanted).max() <= 6 * 64 * U * size


def test_the_scale_of_its_values_does_not_count_where_it_is_large():
    """A norm follows: twice the values give the same output, but for ε."""
    p = RETNET_LAYER.init(np.random.default_rng(0), h=3, heads=2, n=2)
    u = np.random.default_rng(1).standard_normal((6, 3))
    scaled = (replace(p, W_v=2.0**i * p.W_v) for i in (20, 21))
    one, two = (RETNET_LAYER.forward(refssm, other, u) for other in scaled)
    # ε in units of the variance: at 2^40 times the values' own it is below 2^-24 of it
    assert np.abs(one - two).max() <= 2.0**-24 * np.abs(one).max()
