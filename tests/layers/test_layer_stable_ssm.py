from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.layers.diagonal.stable_ssm import (
    BEST,
    EXP,
    SOFTPLUS,
    STABLE_SSM_BEST_LAYER,
    STABLE_SSM_EXP_LAYER,
    STABLE_SSM_SOFTPLUS_LAYER,
)
from refssm.layers.s4d import S4D, S4D_LAYER

U = 2.0**-53
H, N, L = 2, 3, 8
LAYERS = {
    "exp": (STABLE_SSM_EXP_LAYER, EXP),
    "softplus": (STABLE_SSM_SOFTPLUS_LAYER, SOFTPLUS),
    "best": (STABLE_SSM_BEST_LAYER, BEST),
}
each = pytest.mark.parametrize(("layer", "rates"), LAYERS.values(), ids=[*LAYERS])
WEIGHTS = np.array([-20.0, -3.0, -0.5, 0.25, 1.0, 4.0, 20.0])


def drawn(layer):
    p = layer.init(np.random.default_rng(0), h=H, n=N)
    return p, np.random.default_rng(1).standard_normal((L, H))


def bound(p, u):
    """A kernel of about 30 roundings of its terms, which are below dt |C|, a transform of 20 of its
    norm; the slope of the gate is below |W| + 1."""
    terms = (np.exp(p.log_dt) * np.abs(p.C).sum(-1)).max()
    size = terms * np.abs(u).sum() + np.abs(p.D * u).max() + 1
    return 64 * U * size * (1 + np.abs(p.W).sum())


@each
def test_rates_start_at_equal_distances_up_to_one(layer, rates):
    p = drawn(layer)[0]
    wanted = np.arange(1, N + 1) / N
    assert np.abs(rates.rate(p.weight) - wanted).max() <= 16 * U


@each
def test_no_weight_makes_a_mode_grow(layer, rates):
    p = drawn(layer)[0]
    p = replace(p, weight=np.broadcast_to(WEIGHTS, (H, 7)).copy(), C=np.ones((H, 7)))
    K = layer.prepared(refssm, p, 50)[0].K
    assert (rates.rate(WEIGHTS) > 0).all()
    assert (np.diff(K) <= 0).all()
    assert (K >= 0).all()


def test_all_three_start_as_one_function():
    outputs = [layer.forward(refssm, *drawn(layer)) for layer, _ in LAYERS.values()]
    p, u = drawn(STABLE_SSM_EXP_LAYER)
    assert all(np.abs(y - outputs[0]).max() <= bound(p, u) for y in outputs)


def test_exp_is_s4d_without_frequencies_and_with_half_of_c():
    p, u = drawn(STABLE_SSM_EXP_LAYER)
    same = S4D(p.log_dt, p.weight, 0 * p.weight, p.C / 2 + 0j, p.D, p.W, p.b)
    found, wanted = STABLE_SSM_EXP_LAYER.forward(refssm, p, u), S4D_LAYER.forward(refssm, same, u)
    assert np.abs(found - wanted).max() <= bound(p, u)


@each
def test_one_mode_is_a_geometric_kernel(layer, rates):
    """K_k = C (1 − e^{−dt r})/r e^{−dt r k}."""
    p = layer.init(np.random.default_rng(0), h=H, n=1)
    dt, r, k = np.exp(p.log_dt)[:, None], rates.rate(p.weight), np.arange(L)
    wanted = p.C * -np.expm1(-dt * r) / r * np.exp(-dt * r * k)
    K = layer.prepared(refssm, p, L)[0].K
    assert np.abs(K - wanted).max() <= 64 * U * np.abs(p.C * dt).max()


def test_the_best_map_is_the_one_whose_gradient_over_rate_squared_is_twice_the_weight():
    """|f'(w)|/f(w)² = 2 |w| for f = −1/(w² + ½): the derivative of 1/f. The rate's own gradient is
    that of the memory 1/rate times rate²."""
    ratio = np.abs(BEST.slope(WEIGHTS)) / BEST.rate(WEIGHTS) ** 2
    assert (np.abs(ratio - 2 * np.abs(WEIGHTS)) <= 16 * U * ratio).all()


def test_the_other_maps_have_a_ratio_that_grows_exponentially_with_the_memory():
    """exp: 1/rate. softplus: for w → −∞ the same; at 0 it is ½/(log 2)²."""
    w = np.array([-20.0, -10.0, 0.0])
    of_exp = EXP.slope(w) / EXP.rate(w) ** 2
    of_softplus = SOFTPLUS.slope(w) / SOFTPLUS.rate(w) ** 2
    assert (np.abs(of_exp - np.exp(-w)) <= 16 * U * of_exp).all()
    assert abs(of_softplus[2] - 0.5 / np.log(2) ** 2) <= 16 * U * of_softplus[2]
    # log(1 + e) = e − e²/2 + … and σ = e − e² + …, so the ratio is (1 + e²/12 + …)/e, e = e^w
    assert (np.abs(of_softplus * np.exp(w) - 1)[:2] <= np.exp(2 * w[:2]) + 16 * U).all()


def test_the_best_rate_is_at_most_two_and_its_gradient_vanishes_there():
    zero = np.zeros(1)
    assert (BEST.rate(zero), BEST.slope(zero)) == (2, 0)
    assert (BEST.rate(WEIGHTS) < 2).all()
