from dataclasses import replace

import numpy as np
from scipy.special import expit

import refssm
from refssm.conformance.gauges import contracts
from refssm.conformance.gauges.gauge import as_input
from refssm.conformance.gauges.tracked import tracing
from refssm.layers._namespaces import bare
from refssm.layers.attention.gated_deltanet import GATED_DELTANET_LAYER

U = 2.0**-53


def started(h=3, **sizes):
    return GATED_DELTANET_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def moved(p):
    """No number is 0 or 1 any more."""
    rng = np.random.default_rng(2)
    return p.map(lambda a: a + 0.1 * rng.standard_normal(a.shape))


def silu(x):
    return x * expit(x)


def filtered(u, W, k):
    """silu(Σ_j k_j (u W)_{i−j}), in plain sums."""
    x = u @ W
    past = [np.concatenate([np.zeros_like(x[:j]), x[: len(x) - j]]) for j in range(k.shape[-1])]
    return silu(sum(k[:, j] * shifted for j, shifted in enumerate(past)))


def unit(x):
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)


def written_out(p, u, corrected=True):
    """Head by head and step by step; without corrections k vᵀ is only added."""
    n, out, largest = p.W_q.shape[-1], np.zeros_like(u), 0.0
    for i in range(len(p.W_q)):
        q, k = (unit(filtered(u, W[i], t[i])) for W, t in ((p.W_q, p.k_q), (p.W_k, p.k_k)))
        v, S = filtered(u, p.W_v[i], p.k_v[i]), np.zeros((n, p.W_v.shape[-1]))
        step = np.logaddexp(0, u @ p.W_a[:, i] + p.dt_bias[i])
        g, beta = np.exp(-np.exp(p.log_rate[i]) * step), expit(u @ p.W_b[:, i])
        for t in range(len(u)):
            S = g[t] * S
            S = S + beta[t] * np.outer(k[t], v[t] - corrected * (S.T @ k[t]))
            y = S.T @ q[t] / np.sqrt(n)
            gated = y / np.sqrt((y**2).mean() + 1e-5) * p.scale * silu(u[t] @ p.W_gate[i])
            out[t] += gated @ p.W_out[i]
            largest = max(largest, np.abs(gated).max())
    return out, largest / np.sqrt(1e-5) * np.abs(p.W_out).sum()


def test_its_parameters_are_those_of_the_published_layer():
    """`GatedDeltaNet`: maps of q, k, v, a, b, gate and out, filters, A_log, dt_bias and norm."""
    h, g, n, p, t = 128, 4, 16, 16, 4
    theirs = h * g * (2 * n + 3 * p + 2) + g * (2 * n + p) * t + 2 * g + p
    assert sum(a.size for a in started(h).arrays().values()) == theirs == 42776


def test_it_is_its_recurrence_written_out():
    p, u = moved(started(heads=2, n=3, p=2)), np.random.default_rng(1).standard_normal((6, 3))
    wanted, size = written_out(p, u)
    got = GATED_DELTANET_LAYER.forward(refssm, p, u)
    assert np.abs(got - wanted).max() <= 6 * 40 * U * size  # the norm divides by √ε at least
    plain, _ = written_out(p, u, corrected=False)
    assert np.abs(plain - wanted).max() > 6 * 40 * U * size


def test_with_one_key_it_is_a_gated_average_of_values():
    """n = 1 and large keys: k̂ = ±1, so S ← (1 − β) g S + β k̂ v."""
    p, u = moved(started(heads=1, n=1, p=2)), np.random.default_rng(1).standard_normal((6, 3))
    k, v = unit(filtered(u, p.W_k[0], p.k_k[0])), filtered(u, p.W_v[0], p.k_v[0])
    step = np.logaddexp(0, u @ p.W_a[:, 0] + p.dt_bias[0])
    g, beta = np.exp(-np.exp(p.log_rate[0]) * step), expit(u @ p.W_b[:, 0])
    decays = (1 - beta * k[:, 0] ** 2) * g
    S = refssm.linear_scan(np.stack([decays] * 2, -1), beta[:, None] * k * v)
    y = S * unit(filtered(u, p.W_q[0], p.k_q[0]))
    normal = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-5)
    gated = normal * p.scale * silu(u @ p.W_gate[0])
    size = np.abs(gated).max() / np.sqrt(1e-5) * np.abs(p.W_out).sum()
    got = GATED_DELTANET_LAYER.forward(refssm, p, u)
    assert np.abs(got - gated @ p.W_out[0]).max() <= 6 * 40 * U * size


def test_the_scale_of_keys_does_not_count_where_they_are_large():
    """Filters of 2^30 give keys of length 1 either way: the convolution is inside SiLU, so signs
    stay; ε is below half a unit of Σ x²."""
    p = moved(started(heads=2, n=3, p=2))
    u = np.random.default_rng(1).standard_normal((6, 3))
    one, two = (
        GATED_DELTANET_LAYER.forward(refssm, replace(p, k_q=2.0**i * p.k_q), u) for i in (30, 31)
    )
    assert np.abs(one - two).max() <= 6 * 40 * U * written_out(p, u)[1]


def test_its_bound_stays_finite_over_many_steps():
    """Moduli of products of I − β k kᵀ overflow within 128 steps; columns do not."""
    p, u = started(h=8), np.random.default_rng(1).standard_normal((256, 8))
    assert contracts.CHAIN in contracts.BOUNDS  # its module registers the rule
    with tracing(U, 0.0):
        y = GATED_DELTANET_LAYER.forward(bare(), p.map(as_input), as_input(u))
    assert y.errors.max() * U <= np.abs(y.value).max() * 2.0**-26  # half of the digits
