from dataclasses import replace

import numpy as np

import refssm
from refssm.layers.diagonal.spectral_ssm import SPECTRAL_SSM_LAYER as LAYER
from refssm.layers.diagonal.spectral_ssm import _features, _filters, _rows
from refssm.training.loop import Plan
from refssm.training.setup import Setup

U = 2.0**-53
H, N, T, L = 2, 3, 5, 9


def drawn(n=N, t=T):
    p = LAYER.init(np.random.default_rng(0), h=H, n=n, t=t)
    return p, np.random.default_rng(1).standard_normal((L, H))


def mixed(p, y):
    first, second = np.split(refssm.gelu(y) @ p.W + p.b, 2, axis=-1)
    return first * refssm.sigmoid(second)


def bound(p, u):
    """A transform of 20 roundings of its norm, sums of 2n h products; the slope of the gate is
    below |W| + 1."""
    M = np.abs(p.M_plus).sum() + np.abs(p.M_minus).sum()
    size = np.abs(p.phi).sum() * M * np.abs(u).sum() + np.abs(p.D * u).max() + 1
    return 64 * U * size * (1 + np.abs(p.W).sum())


def test_its_filters_are_eigenvectors_whose_squares_are_roots_of_eigenvalues():
    """σ^{1/4} φ with |φ| = 1."""
    p = LAYER.init(np.random.default_rng(0), h=1, n=4, t=64)
    sigma = np.array([3.60393338e-01, 2.24522460e-02])  # nine digits, as on the operator's page
    squares = (p.phi**2).sum(-1)
    assert (np.abs(squares[:2] ** 2 - sigma) <= 2e-9 * sigma).all()
    gram = p.phi @ p.phi.T
    assert np.abs(gram - np.diag(squares)).max() <= 64 * 16 * U


def test_with_more_filters_than_taps_the_others_are_zero():
    p = drawn(n=8, t=3)[0]
    assert (p.phi[:3] != 0).all()
    assert (p.phi[3:] == 0).all()


def test_the_first_filters_hold_nearly_all_of_every_decaying_kernel():
    """Z = ∫ μ μᵀ dα over 0 … 1, μ_α(j) = (1 − α) α^j: what n filters miss of all μ is Σ_{i>n} σ_i.
    The integrand is a polynomial, so Gauss's rule is exact."""
    t, n = 8, 2
    sigma, phi = refssm.spectral_filters(l=t, k=t)
    x, weight = np.polynomial.legendre.leggauss(t + 1)
    alpha = (x[:, None] + 1) / 2
    mu = (1 - alpha) * alpha ** np.arange(t)
    missed = mu - mu @ phi[:n].T @ phi[:n]
    found = (weight / 2) @ (missed**2).sum(-1)
    assert abs(found - sigma[n:].sum()) <= 64 * t * U * sigma.sum()
    assert sigma[n:].sum() < 0.01 * sigma.sum()


def test_a_filter_of_one_tap_is_a_delay():
    """φ = e_0: y_k = u_k (M⁺ + M⁻); φ = e_1: y_k = u_{k−1} (M⁺ − M⁻), as (−1)^1 is −1."""
    p, u = drawn(n=1)
    late = np.concatenate([np.zeros((1, H)), u[:-1]])
    for lag, wanted in (
        (0, u @ (p.M_plus[0] + p.M_minus[0])),
        (1, late @ (p.M_plus[0] - p.M_minus[0])),
    ):
        q = replace(p, phi=np.eye(T)[lag : lag + 1])
        y = mixed(q, wanted + p.D * u)
        assert np.abs(LAYER.forward(refssm, q, u) - y).max() <= bound(q, u)


def test_it_is_a_sum_over_lags_filters_and_channels():
    p, u = drawn()
    wanted, size = p.D * u, bound(p, u)
    for k in range(L):
        for j in range(min(T, k + 1)):
            for i in range(N):
                M = p.M_plus[i] + (-1) ** j * p.M_minus[i]
                wanted[k] += p.phi[i, j] * (u[k - j] @ M)
    assert np.abs(LAYER.forward(refssm, p, u) - mixed(p, wanted)).max() <= size


def test_alternating_filters_are_the_filters_of_the_alternating_signal():
    """(φ⁻ * u)_k = (−1)^k (φ * v)_k, v_k = (−1)^k u_k: they hold poles from −1 to 0."""
    p, u = drawn()
    turns = (-1.0) ** np.arange(L)[:, None]
    found = (refssm.short_convolution(_rows(x), _filters(p)) for x in (u, turns * u))
    of = [_features(y).reshape(L, H, 2, N) for y in found]
    size = 64 * U * np.abs(p.phi).sum() * np.abs(u).sum()
    assert np.abs(of[0][:, :, 1] - turns[..., None] * of[1][:, :, 0]).max() <= size


def test_its_state_is_the_last_inputs_and_older_ones_are_forgotten():
    p, u = drawn()
    _, (s,) = LAYER.stateful(refssm, p, u, LAYER.rest(p))
    assert np.array_equal(s, u[-T:].T)
    other = u.copy()
    other[: L - T] += 1
    one, two = (LAYER.forward(refssm, p, x)[-1] for x in (u, other))
    assert np.abs(one - two).max() <= 2 * bound(p, other)


def test_training_leaves_its_filters_as_they_are_and_moves_all_else():
    plan = Plan(steps=2, batch=4, warm_up=1)
    setup = Setup("digits", "spectral_ssm", plan=plan, h=4, depth=1)
    trainer = setup.trainer()
    begin = state = trainer.start()
    for _ in range(plan.steps):
        state, _ = trainer.step(state)
    same = {n for n, a in begin.parameters.items() if np.array_equal(a, state.parameters[n])}
    assert same == {"blocks.0.layer.phi"}
