import numpy as np

import refssm
from refssm import initial
from refssm.layers._parts import bank
from refssm.layers.hope import HOPE, HOPE_LAYER
from refssm.layers.hope_bidirectional import HOPE_BIDIRECTIONAL_LAYER

U = 2.0**-53


def test_its_parameters_are_counted():
    """n numbers of a channel, where a diagonal system has four: two of w, two of C."""
    h, n = 128, 64
    p = HOPE_LAYER.init(np.random.default_rng(0), h=h, n=n)
    assert sum(a.size for a in p.arrays().values()) == h + h * n + h + 2 * h * (h + 1) == 41472


def test_at_a_step_of_one_it_is_a_filter_of_n_taps_one_step_late():
    p = HOPE_LAYER.init(np.random.default_rng(0), h=1, n=3)
    p = HOPE(**(p.arrays() | {"log_dt": np.zeros(1)}))
    u = np.random.default_rng(1).standard_normal((7, 1))
    late = np.convolve(np.concatenate([[0.0], p.markov[0]]), u[:, 0])[:7]
    wanted = bank.mixed(refssm, p, (late + p.D * u[:, 0])[:, None])
    got = HOPE_LAYER.forward(refssm, p, u)
    size = np.abs(p.markov).sum() * np.abs(u).sum() + np.abs(p.D * u).max()
    assert np.abs(got - wanted).max() <= 64 * U * size * (1 + np.abs(p.W).sum())


def test_its_first_kernels_have_a_norm_of_one_on_average():
    """All-pass filters keep the norm of an impulse, so E Σ_k K_k² = Σ_j E h_j² = 1."""
    h, n = 256, 8
    markov = initial.markov(np.random.default_rng(0), (h, n))
    K = refssm.hope_kernel(markov, np.full(h, 0.2), l=256)  # ρ = 2/3: nothing is left at l
    norms = (K**2).sum(-1)
    # one kernel's norm is a quadratic form of n normal numbers: it varies by at most √2
    assert abs(norms.mean() - 1) <= 5 * np.sqrt(2 / h)


def test_a_recency_bias_gives_the_first_numbers_a_power_of_their_place():
    for layer in (HOPE_LAYER, HOPE_BIDIRECTIONAL_LAYER):
        plain, biased = (
            layer.init(np.random.default_rng(0), h=2, n=4, gamma=g).arrays() for g in (0.0, -0.5)
        )
        for name, x in plain.items():
            power = np.arange(1, 5) ** -0.5 if name.startswith("markov") else 1.0
            assert np.abs(biased[name] - x * power).max() <= 4 * U * np.abs(x).max()
