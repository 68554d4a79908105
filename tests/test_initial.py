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
    allowed = 2 * n * 2.0**-53 * (np.abs(real) @ np.abs(V) @ np.abs(V).T)
    assert (np.abs(real - rng().standard_normal((512, n))) <= allowed).all()
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
    B, C = 2 * (V @ found["B"]).real, 2 * (found["C"] @ V.conj().T).real  # V Vᴴ B₀, C₀ V Vᴴ
    assert follows(B, normal(1 / m))
    assert follows(C, normal(1 / (2 * n)))
    drawn = rng()
    B0, C0 = drawn.standard_normal((2 * n, m)) / 16, drawn.standard_normal((p, 2 * n)) / 4
    # two products of n terms; the rows of |V| |V|ᵀ sum to less than 2n
    assert np.abs(B - B0).max() <= 2 * n * 2.0**-53 * 2 * n * np.abs(B0).max()
    assert np.abs(C - C0).max() <= 2 * n * 2.0**-53 * 2 * n * np.abs(C0).max()


POLES = (*initial.MATRICES, *initial.DIAGONAL)
UNIT = 2.0**-53


def drawn_modes(name, n=6, blocks=1):
    return initial.modes(rng(), name, n=n, blocks=blocks)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", POLES)
def test_modes_are_in_the_left_half_plane_one_of_each_pair_block_after_block(name, blocks):
    w, V, inverse = drawn_modes(name, blocks=blocks)
    assert (w.shape, V.shape, inverse.shape) == ((6,), (12, 6), (6, 12))
    assert (w.real < 0).all()
    assert (w.imag >= 0).all()
    size = 6 // blocks
    outside = np.kron(np.eye(blocks), np.ones((2 * size, size))) == 0
    assert (V[outside] == 0).all()
    assert (inverse.T[outside] == 0).all()
    # rows of an inverse: condition numbers here are below 2⁶, products have 12 terms
    assert np.abs(inverse @ V - np.eye(6)).max() <= 12 * 2**12 * UNIT


@pytest.mark.parametrize("name", POLES)
def test_modes_and_their_partners_are_those_of_a_real_matrix(name):
    w, V, inverse = drawn_modes(name)
    kept = (w.imag > 0) | (name != "random")  # a real pole of that matrix has no partner
    assert kept.sum() > 1
    w, V, inverse = w[kept], V[:, kept], inverse[kept]
    found = np.linalg.eigvals(2 * ((V * w) @ inverse).real)
    # ‖v‖‖v'‖ is the condition of an eigenvalue; the matrix is a sum of 2n terms of that size, which
    # rounds 2n times, and LAPACK's eigenvalues are those of a matrix as near as that
    condition = np.linalg.norm(V, axis=0) * np.linalg.norm(inverse, axis=1)
    error = 2 * 12 * UNIT * 2 * (np.abs(w) * condition).sum()
    for poles in (w, w.conj()):
        assert (np.abs(found - poles[:, None]).min(-1) <= condition * error).all()


def test_the_antisymmetric_matrix_is_one_of_normal_numbers_minus_a_half():
    n = 64
    w, V, inverse = drawn_modes("antisymmetric", n=n)
    A = 2 * ((V * w) @ inverse).real
    assert np.array_equal(inverse, V.conj().T)
    skew = A + np.eye(2 * n) / 2
    assert np.abs(skew + skew.T).max() <= 2**12 * UNIT * np.abs(w).max()
    assert follows(skew[np.triu_indices(2 * n, 1)], normal(1))
    assert (w.real == -0.5).all()


def test_the_random_matrix_fills_a_disc_and_unstable_poles_are_reflected():
    n = 128
    w, _, _ = drawn_modes("random", n=n)
    radius = np.abs(w) / np.sqrt(2 * n)
    # the circular law: |z|² is uniform in the limit; at 256 the edge is blurred by about 1/√256
    assert radius.max() <= 1 + 4 / np.sqrt(2 * n)
    assert abs((radius**2).mean() - 0.5) <= 4 / np.sqrt(2 * n)
    G = rng().standard_normal((2 * n, 2 * n))
    reflected = np.linalg.eigvals(G)
    for pole in w:
        near = np.abs(reflected.imag - pole.imag) + np.abs(np.abs(reflected.real) + pole.real)
        assert near.min() <= 2**20 * UNIT * np.sqrt(2 * n)
    assert (reflected.real > 0).any()


@pytest.mark.parametrize("name", initial.DIAGONAL)
def test_the_poles_of_s4d_are_blocks_of_two_rows(name):
    w, V, inverse = drawn_modes(name)
    assert np.array_equal(w, initial.diagonal(name, n=6)["w"])
    A = 2 * ((V * w) @ inverse).real
    want = np.kron(np.diag(w.real), np.eye(2)) + np.kron(np.diag(w.imag), [[0, -1], [1, 0]])
    assert np.abs(A - want).max() <= 16 * UNIT * np.abs(w).max()


def test_steps_are_one_for_each_state_or_one_for_all():
    vector, scalar = (initial.log_steps(rng(), 5, steps=s) for s in ("vector", "scalar"))
    assert np.array_equal(vector, np.log(initial.steps(rng(), 5)))
    assert (scalar == np.log(initial.steps(rng(), ()))).all()
    assert len(set(vector)) == 5
    with pytest.raises(ValueError, match="`steps` must be one of vector, scalar, got 'one'"):
        initial.log_steps(rng(), 5, steps="one")


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
