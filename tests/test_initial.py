"""What models start from: distributions by a Kolmogorov-Smirnov test, systems by their parts."""

import numpy as np
import pytest
from scipy import stats

import refssm
from refssm import initial

COUNT = 4096
LEVEL = 1e-6  # a right sampler fails with this probability; the seeds are fixed


def rng():
    return np.random.default_rng(0)


def follows(sample, cdf):
    """Whether the largest distance from the distribution function is below its critical value."""
    sample = np.ravel(sample)
    return stats.kstest(sample, cdf).statistic <= stats.kstwo.isf(LEVEL, len(sample))


def normal(variance):
    return stats.norm(scale=np.sqrt(variance)).cdf


def uniform(low, high):
    return stats.uniform(low, high - low).cdf


def test_the_distance_finds_a_wrong_variance_and_a_wrong_scale():
    x = rng().standard_normal(COUNT)
    assert follows(x, normal(1))
    assert not follows(x, normal(2))
    assert not follows(rng().uniform(1e-3, 1e-1, COUNT), stats.loguniform(1e-3, 1e-1).cdf)


# ---- steps


def test_the_log_of_a_step_is_uniform_between_its_bounds():
    dt = initial.steps(rng(), COUNT)
    assert follows(np.log(dt), uniform(np.log(1e-3), np.log(1e-1)))
    assert dt.min() >= 1e-3 * (1 - 2**-50)  # exp of a rounded logarithm
    assert dt.max() <= 1e-1 * (1 + 2**-50)
    assert follows(initial.steps(rng(), COUNT, dt_min=2, dt_max=3), stats.loguniform(2, 3).cdf)


def test_the_softplus_of_a_step_bias_is_the_step():
    dt, bias = initial.steps(rng(), COUNT), initial.step_biases(rng(), COUNT)
    # softplus' = 1 − e^{−dt} ≤ dt: 4 roundings of a bias near log dt move dt by 4 u |bias| dt
    error = np.abs(np.logaddexp(0, bias) - dt)
    assert (error <= 2.0**-53 * (4 * np.abs(bias) + 4) * dt).all()


def test_a_step_bias_is_not_below_that_of_1e_4():
    bias = initial.step_biases(rng(), COUNT, dt_min=1e-6, dt_max=1e-3)
    floor = np.log(np.expm1(1e-4))
    assert bias.min() == pytest.approx(floor, rel=2**-50)
    share = (bias <= bias.min()).mean()  # log-uniform: two of three decades lie below
    assert abs(share - 2 / 3) <= 5 * np.sqrt(2 / 9 / COUNT)  # five standard deviations


# ---- normal numbers and linear maps


def test_complex_normal_numbers_have_independent_halves_and_unit_second_moment():
    z = initial.complex_normal(rng(), (COUNT,))
    assert follows(z.real, normal(0.5))
    assert follows(z.imag, normal(0.5))
    assert follows(np.abs(z) ** 2, stats.expon.cdf)
    assert follows(np.angle(z), uniform(-np.pi, np.pi))


def test_a_linear_map_is_uniform_between_one_over_the_root_of_its_inputs():
    W, b = initial.linear(rng(), 16, 256)
    assert (W.shape, b.shape) == ((16, 256), (256,))
    assert follows(W, uniform(-0.25, 0.25))
    assert follows(b, uniform(-0.25, 0.25))


def test_markov_parameters_are_normal_and_their_squares_sum_to_one_on_average():
    h = initial.markov(rng(), (64, 64))
    assert follows(h, normal(1 / 64))
    assert abs((h**2).sum(-1).mean() - 1) <= 5 * np.sqrt(2 / 64 / 64)  # Var Σh² = 2/n, 64 sums


# ---- systems


@pytest.mark.parametrize("measure", ["legs", "legt", "lagt", "fourier"])
def test_a_dplr_system_is_the_constructors(measure):
    found = initial.dplr(measure, n=6)
    built = getattr(refssm, f"nplr_{measure}")(n=6)
    assert [*found] == ["w", "P", "B", "V"]
    for got, wanted in zip(found.values(), built, strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("measure", ["legs", "legt", "lagt", "fourier"])
def test_the_outputs_of_a_dplr_system_are_those_of_a_real_system(measure):
    n, V = 8, initial.dplr(measure, n=8)["V"]
    C = initial.real_outputs(rng(), V, 512)
    real = C @ V.conj().T
    # two products of n terms: each is off by n u times the sum of its moduli
    assert (np.abs(real.imag) <= 2 * n * 2.0**-53 * (np.abs(real) @ np.abs(V) @ np.abs(V).T)).all()
    assert follows(real.real, normal(1))
    assert abs((np.abs(C) ** 2).mean() - 1) <= 5 * np.sqrt(2 / C.size)


def test_rates_are_those_of_the_poles_and_at_least_1e_4():
    assert initial.rates_of(refssm.nplr_legs(n=4)[0]).tolist() == [0.5] * 4
    assert initial.rates_of(refssm.nplr_legt(n=4)[0]).tolist() == [1e-4] * 4


@pytest.mark.parametrize("name", ["lin", "inv", "quad", "real", "legs"])
def test_a_diagonal_system_is_the_constructors_and_has_ones_as_input(name):
    found = initial.diagonal(name, n=5)
    assert np.array_equal(found["w"], getattr(refssm, f"s4d_{name}")(n=5))
    assert found["B"].tolist() == [1] * 5


def test_s5_has_one_pole_of_each_pair_of_its_blocks():
    w = initial.s5(rng(), n=6, m=1, p=1, blocks=3)["w"]
    block = refssm.nplr_legs(n=4)[0][2:]
    assert (block.imag > 0).all()
    assert np.array_equal(w, np.tile(block, 3))


def test_s5_starts_as_a_real_system_of_normal_numbers():
    n, m, p = 8, 256, 256
    found = initial.s5(rng(), n=n, m=m, p=p, blocks=2)
    w, V = refssm.block_diagonal(n=2 * n, blocks=2)
    V = V[:, w.imag > 0]
    assert follows(2 * (V @ found["B"]).real, normal(1 / m))  # the pairs add up to V Vᴴ B₀ = B₀
    assert follows(2 * (found["C"] @ V.conj().T).real, normal(1 / (2 * n)))


def test_the_lru_starts_uniform_on_its_ring_with_inputs_and_states_of_unit_size():
    n, m, p = 1024, 4, 4
    found = initial.lru(rng(), n=n, m=m, p=p, r_min=0.5, r_max=0.9, max_phase=3.0)
    a = found["a"]
    assert follows(np.abs(a) ** 2, uniform(0.25, 0.81))
    assert follows(np.angle(a), uniform(0, 3))
    # 1 − |a|² from a rounded |a|² of at most 0.81: at least 0.19, so an error of 8 u is one of 42 u
    assert np.abs(found["gamma"] ** 2 / (1 - np.abs(a) ** 2) - 1).max() <= 42 * 2.0**-53
    assert follows(found["B"].real, normal(1 / (2 * m)))
    assert follows(found["C"].imag, normal(1 / n))


def test_mambas_rates_are_whole_numbers():
    assert initial.rates(n=4).tolist() == [-1, -2, -3, -4]


# ---- messages


def test_unknown_names_and_sizes_are_said_with_the_known_ones():
    with pytest.raises(
        ValueError, match="`measure` must be one of legs, legt, lagt, fourier, got 'l"
    ):
        initial.dplr("lmu", n=4)
    with pytest.raises(
        ValueError, match="`poles` must be one of lin, inv, quad, real, legs, got 'x'"
    ):
        initial.diagonal("x", n=4)
    with pytest.raises(ValueError, match="s5: `blocks` must divide n=3, got 2"):
        initial.s5(rng(), n=3, m=1, p=1, blocks=2)
