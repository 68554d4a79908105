"""Experiments about claims that train nothing: the fact of each table, and each sentence."""

import numpy as np
import pytest

import refssm

pytest.importorskip("matplotlib")

from refssm.experiments import (
    catalog,
    cost,
    hankel_exponents,
    initialisation,
    memory,
    perturbation,
    perturbation_noise,
    resolution,
    systems,
)
from refssm.experiments.claims import Claim, Finding
from refssm.layers import operators

u = 2.0**-53


@pytest.fixture(scope="module", params=[0, 1, 2], ids=["seed 0", "seed 1", "seed 2"])
def found(request):
    """The result of an experiment by its module, computed once."""
    held = {}

    def of(module):
        if module not in held:
            held[module] = module.measured(seed=request.param, quick=True)
        return held[module]

    return of


CLAIMED = [n for n in catalog.EXPERIMENTS if hasattr(catalog.module_of(n), "CLAIM")]


@pytest.mark.parametrize("name", CLAIMED)
def test_each_claim_has_sentences_with_numbers(found, name):
    module = catalog.module_of(name)
    assert isinstance(module.CLAIM, Claim)
    sentences = module.findings(found(module))
    assert len({sentence.told for sentence in sentences}) == len(sentences) > 0
    for sentence in sentences:
        assert isinstance(sentence, Finding)
        assert type(sentence.held) is bool
        assert any(letter.isdigit() for letter in sentence.told)


# ranks by the radial law of the poles


def test_poles_near_the_circle_count_more_by_an_absolute_epsilon_only(found):
    result = found(hankel_exponents)
    few, many = ("α = 4", "α = 0.5")
    last = {key: ranks[-1].mean() for key, ranks in result.ranks.items()}
    assert last[many, "absolute"] > 4 * last[few, "absolute"]
    # σ₁ of the pole nearest to the circle hides most of them
    assert last[many, "relative"] < last[many, "absolute"] / 2
    assert last[hankel_exponents.RING, "absolute"] > last["α = 1", "absolute"]


def ranked(powers, ring=10.0):
    """Made-up ranks: exact powers of n, the relative ones all alike."""
    sizes, draws = (16, 32, 64, 128), 4
    n = np.array(sizes, float)[:, None] + np.zeros(draws)
    named = dict(zip(hankel_exponents.LAWS, powers, strict=True))
    ranks = {(name, "absolute"): n**power for name, power in named.items()}
    ranks |= {(name, "relative"): n**0.5 for name in named}
    ranks |= {(hankel_exponents.RING, kind): ring * n**0.5 for kind in hankel_exponents.KINDS}
    return hankel_exponents.Growths(sizes, ranks)


def test_an_exponent_that_is_not_above_the_power_that_was_said_is_held():
    powers = [hankel_exponents.said(alpha) - 2.0**-10 for alpha in hankel_exponents.ALPHAS]
    held = [finding.held for finding in hankel_exponents.findings(ranked(powers))]
    assert held == [True, True, True, True, True, False, True]  # relative: no order
    powers[1] += 0.01
    held = [finding.held for finding in hankel_exponents.findings(ranked(powers, ring=1.0))]
    assert held == [True, False, True, True, True, False, False]
    sentence = hankel_exponents.findings(ranked(powers))[1].told
    assert sentence.startswith(
        "α = 1, absolute ε: n^0.51 with a standard error of 0.00; said n^0.5"
    )


def test_the_logarithm_adds_to_the_power_and_less_for_larger_sizes():
    for alpha in hankel_exponents.ALPHAS:
        said = hankel_exponents.said(alpha)
        here = hankel_exponents.with_logarithm((64, 2048), alpha)
        far = hankel_exponents.with_logarithm((10**30, 10**60), alpha)
        assert here > far > said
        assert far - said < (here - said) / 4


def test_radial_poles_have_their_law_and_are_mapped_with_their_transfer_function():
    n, alpha = 5, 0.5
    w, v = systems.radial(np.random.default_rng(1), n, alpha)
    rng = np.random.default_rng(1)
    gap, angle = rng.random(n) ** 2, 2 * np.pi * rng.random(n)
    a, r = (1 - gap) * np.exp(1j * angle), systems.normal(rng, n)
    z = np.exp(1j * np.array([0.3, 1.7]))[:, None]
    s = (z - 1) / (z + 1)
    discrete, continuous = (r / (z - a)).sum(-1), (v / (s - w)).sum(-1)
    # they differ by a constant; roundings as in the test of the poles of the disc
    lost = (np.abs(r) / (np.abs(z - a) ** 2 * np.abs(1 + a) ** 2)).sum()
    assert np.abs(np.diff(discrete - continuous)) <= 64 * u * lost
    # a = (1 + w)/(1 − w), and P(gap ≤ r) = r^α: gap^α is uniform, its mean over 10000 is ½ within
    # 4 deviations of √(1/12)/100
    w, _ = systems.radial(np.random.default_rng(2), 10000, 4.0)
    gap = 1 - np.abs((1 + w) / (1 - w))
    assert abs((gap**4).mean() - 0.5) < 4 * np.sqrt(1 / 12) / 100


# noise


def test_noise_moves_no_value_beyond_its_bound_and_long_memories_most(found):
    result = found(perturbation_noise)
    assert all(r.change <= r.bound for runs in result.noisy.values() for r in runs)
    last = {name: result.noisy[name, result.sizes[-1]] for name in perturbation_noise.NAMES}
    slow = min(r.change for r in last.pop("S4D-Lin, slower"))
    assert slow > 100 * max(r.change for runs in last.values() for r in runs)
    # of HOPE nothing but Δ and n counts: ‖H̃ − H‖ ≤ n Δ
    rounding = 1 + 64 * result.sizes[-1] * u
    assert max(r.bound for r in last["HOPE"]) <= perturbation_noise.DELTA * 16 * rounding


def test_the_value_of_one_pole_moves_by_what_its_formula_says():
    name, delta = "random, on a line", perturbation_noise.DELTA
    noisy = perturbation_noise.one(name, np.random.default_rng(3), 1)
    rng = np.random.default_rng(3)
    (w,), (v,) = systems.line(rng, 1)
    moved = w + delta * np.exp(2j * np.pi * rng.random())
    before, after = (abs(v) / (2 * abs(x.real)) for x in (w, moved))
    assert abs(noisy.first - before) <= 16 * u * before  # a few quotients, roots, a 1 × 1 SVD
    assert abs(noisy.change - abs(after - before)) <= 32 * u * before
    assert noisy.bound >= noisy.change
    assert noisy.share == 0


def noise(of_diagonal, change_of_hope, reached=1.0):
    """Made-up effects: changes of all diagonal systems, and of HOPE, with σ₁ = 1."""
    delta, noisy = perturbation_noise.DELTA, {}
    for name in perturbation_noise.NAMES:
        change = delta * (change_of_hope if name == "HOPE" else of_diagonal)
        for n in (4, 16):
            noisy[name, n] = [perturbation_noise.Noisy(1.0, change, 1.0, 0.0)] * 3
    worst = [
        perturbation.Moved("HOPE", "Markov parameters", n, 0.01, 1.0, 0.01 * n, 0.01, 0.01,
                           0.01 * n * reached)
        for n in (4, 16)
    ]  # fmt: skip
    return perturbation_noise.NoiseEffects((4, 16), noisy, worst)


def test_a_sentence_about_noise_is_held_or_not_by_the_changes():
    assert all(f.held for f in perturbation_noise.findings(noise(2.0, 1.0)))
    told = [f.told for f in perturbation_noise.findings(noise(1.0, 2.0)) if not f.held]
    assert len(told) == 2 * len(perturbation_noise.DIAGONAL)
    assert told[0] == "values of S4D-Lin move by 1 Δ, of HOPE by 2 Δ"
    (too_far,) = [f for f in perturbation_noise.findings(noise(1001.0, 1.0)) if not f.held]
    assert too_far.told == "no value moves by more than its bound: at most by 1.001 of it"
    (missed,) = [f for f in perturbation_noise.findings(noise(2.0, 1.0, 0.9)) if not f.held]
    assert missed.told.endswith("moved alike: n^1.00, 0.9 of the bound for every n")


# what n coefficients keep of a signal


def test_longer_signals_need_more_coefficients_and_a_window_keeps_its_resolution(found):
    result = found(resolution)
    for T in result.lengths:
        assert 2 * T < resolution.needed(result, "LegS", T) <= 4 * T
        least = {name: result.errors[name, T][-1].mean() for name in resolution.NAMES}
        assert min(least, key=lambda name: least[name]) == "LegS"
        assert max(least, key=lambda name: least[name]) == "LagT"
    # LagT needs more than these sizes for either length, so its sentence says nothing here
    sentences = [f for f in resolution.findings(result) if not f.told.startswith("LagT")]
    assert len(sentences) == 6
    assert all(finding.held for finding in sentences)


def test_fewer_coefficients_of_legs_and_lagt_are_the_first_of_many():
    signal = resolution.waves(np.random.default_rng(0), 1)
    few, many = (refssm.hippo_project_legs(signal, n=n)[-1] for n in (4, 8))
    assert few.tolist() == many[:4].tolist()
    (few, B), (many, longer) = (refssm.hippo_lagt(n=n) for n in (4, 8))
    assert few.tolist() == many[:4, :4].tolist()
    assert B.tolist() == longer[:4].tolist()
    assert (np.triu(many, 1) == 0).all()  # so the first states do not read the others


def test_a_constant_signal_is_remembered_by_one_coefficient_of_legs():
    ones = np.ones((1, 2 * resolution.RATE))
    errors = resolution.of_whole("LegS", ones, 2, (1, 2, 4))
    # sums of 64 products with weights of sum 1, then at most four products
    assert errors.max() <= 2 * 68 * 4 * u


def test_a_line_is_remembered_by_two_coefficients_of_lagt_at_its_rate():
    T, rate = 8, 4  # after 32 time constants the start counts e^−32
    time = (np.arange(T * resolution.RATE) + 0.5) / resolution.RATE
    error = resolution._lagt(time[None], time[::-1], (2,), rate)
    # a held sample is off by half a step at most, and a line through two moments of the last time
    # constant is off by so much for each of the 32 before; with another rate its slope is another
    half = 1 / (2 * resolution.RATE)
    assert error.max() <= 32 * half / np.sqrt((time**2).mean())


def read(of_legs, recent):
    """Made-up errors: those of LegS with n = 2T and 4T; all others as LegS."""
    lengths, sizes = (8, 16), (16, 32, 64)
    errors = {}
    for name in resolution.NAMES:
        errors[name, 8] = np.array([[of_legs[0]], [of_legs[1]], [0.01]]) * np.ones(3)
        errors[name, 16] = np.array([[0.5], [of_legs[0]], [of_legs[1]]]) * np.ones(3)
    ends = {("LegS", T): np.full(3, e) for T, e in zip(lengths, recent, strict=True)}
    ends |= {("LegT", T): np.full(3, 0.01) for T in lengths}
    return resolution.KeptSignals(lengths, sizes, errors, ends)


def test_a_sentence_about_resolution_is_held_or_not_by_the_errors():
    assert all(f.held for f in resolution.findings(read((0.5, 0.05), (0.01, 0.2))))
    (no,) = [f for f in resolution.findings(read((0.5, 0.05), (0.2, 0.2))) if not f.held]
    assert no.told == "n = 32, LegS: the error of the last 4 units is 0.2 after T = 8 and 0.2 " \
                      "after T = 16"  # fmt: skip
    (no,) = [f for f in resolution.findings(read((0.05, 0.05), (0.01, 0.2))) if not f.held]
    assert no.told == "LegS: n = 2T leaves errors of at least 0.05 for every T, n = 4T of at " \
                      "most 0.05"  # fmt: skip
    more = read((0.5, 0.5), (0.01, 0.2))
    assert [resolution.needed(more, "LagT", T) for T in more.lengths] == [64, None]
    assert resolution.findings(more)[2].told == "LagT needs n = 64, > 64 for T = 8, 16"


# what layers cost


def test_each_layer_has_the_states_that_its_name_says():
    h, states, l = 16, 8, 32
    made = {name: cost.given(name, h, states, l, 0) for name in cost.LAYERS}
    n = {name: p.arrays()["w"].shape[-1] for name, (_, p, _, _) in made.items() if "S5" in name}
    assert n == {"S5, P = N": states // 2, "S5, P = H": h // 2}  # one of each pair
    assert made["S4D"][1].C.shape == (h, states // 2)
    assert made["S4"][1].C.shape == made["HOPE"][1].markov.shape == (h, states)
    assert made["attention"][1].bias.shape[-1] == l
    for _, p, u, dy in made.values():
        assert {x.dtype.itemsize // (1 + x.dtype.kind.count("c")) for x in p.arrays().values()} == {
            4
        }
        assert u.dtype == dy.dtype == np.float32


@pytest.mark.parametrize("name", cost.LAYERS)
def test_a_pass_is_the_gradient_of_the_layer_and_a_piece_its_output(name):
    ops = operators("jit")
    layer, p, u, dy = cost.given(name, 8, 8, 16, 0)
    dp, du = cost.gradients(ops, layer, p, u, dy)
    expected, of_input = layer.vjp(ops, dy, p, u)
    assert du.tolist() == of_input.tolist()
    for key, x in dp.arrays().items():
        assert x.tolist() == expected.arrays()[key].tolist()
    calls = cost.generation(ops, layer, p, u)
    step, piece, forward = (calls[kind]() for kind in cost.KINDS)
    assert step[0].shape == (8,)
    assert piece[0].shape == forward.shape == (16, 8)
    assert len(step[1]) == len(piece[1]) == len(layer.states)


def costs(grown=1.0, of_s5=0.5, generated=100.0, lengths=(64, 256)):
    """Made-up times: powers of l and of N; those of S5 over those of S4D; a pass over a step."""
    sizes = (8, 32)
    passes = {(name, l): cost.Timings([1e-3 * l**grown] * 7) for name in cost.LAYERS
              for l in lengths}  # fmt: skip
    for l in lengths:
        passes["attention", l] = cost.Timings([1e-5 * l**2] * 7)
        for name in ("S5, P = N", "S5, P = H"):
            passes[name, l] = cost.Timings([of_s5 * 1e-3 * l**grown] * 7)
    growth = {(name, n): cost.Timings([1e-3 * n**0.5] * 7) for name in cost.GROWING for n in sizes}
    steps = {(name, "forward"): cost.Timings([1e-3 * generated]) for name in cost.LAYERS}
    steps |= {(name, kind): cost.Timings([1e-3]) for name in cost.LAYERS
              for kind in ("step", "piece")}  # fmt: skip
    return cost.LayerCosts(lengths, sizes, 256, passes, growth, steps)


def test_a_sentence_about_cost_is_held_or_not_by_the_times():
    assert all(f.held for f in cost.findings(costs()))
    slow = [f.told for f in cost.findings(costs(of_s5=1.5)) if not f.held]
    assert slow[0] == "S5, P = N needs 1.50, 1.50 of the time of S4D at l = 64, 256"
    assert len(slow) == 2
    steep = [f.told for f in cost.findings(costs(grown=1.5)) if not f.held]
    assert len(steep) == len(cost.LAYERS) - 1  # all but attention
    assert steep[0] == "S4D grows like l^1.50, l log l like l^1.21, for l from 64 to 256"
    late = [f.told for f in cost.findings(costs(generated=50.0)) if not f.held]
    assert len(late) == len(cost.LAYERS)
    assert late[0].startswith(
        "S4D: a pass over 256 steps takes 50 times as long as a step, 3.2e+03"
    )


def test_a_time_or_peak_that_was_not_measured_is_left_out_of_the_tables():
    result = costs(lengths=(64, 256, 1024))
    assert cost.tables(result)[1].rows[0] == ("S4D", "", "", "")
    del result.passes["attention", 1024]
    for name, l, peak in (("S4D", 64, 2**20), ("HOPE", 64, 3 * 2**19), ("Mamba", 64, 0)):
        result.passes[name, l] = result.passes[name, l]._replace(peak=peak)
    times, peaks, *_ = cost.tables(result)
    found = {row[0]: row[1:] for row in times.rows}
    assert found["S4D"] == ("64 ms", "256 ms", "1.02e+03 ms", "1.00")
    assert found["attention"][1:] == ("2.56 (2.56 to 2.56)", "", "2.00")
    found = {row[0]: row[1] for row in peaks.rows}
    assert found == dict.fromkeys(cost.LAYERS, "") | {"S4D": "1 MB", "HOPE": "1.50"}


# spectra at the start, and memories


def spectra(of_random):
    """Made-up spectra: 3 of 4 values count, with random poles so many."""
    many = np.array([1.0, 1.0, 1.0, 1e-3])
    few = np.where(np.arange(4) < of_random, 1.0, 1e-3)
    sigma = {name: np.stack([few if name == initialisation.RANDOM else many] * 3)
             for name in initialisation.NAMES}  # fmt: skip
    return initialisation.Spectra(4, sigma)


def test_a_sentence_about_the_start_is_held_if_more_values_count_than_of_random_poles():
    few = initialisation.findings(spectra(2))
    assert [f.held for f in few] == [True] * (len(initialisation.NAMES) - 1)
    assert few[0].told == "LegS: 3.0 of 4 are above 0.01 σ₁, with random poles 2.0"
    assert not any(f.held for f in initialisation.findings(spectra(3)))


@pytest.mark.parametrize(("of_hope", "held"), [(0.5, True), (0.1, False)])
def test_a_sentence_about_memory_is_held_if_hope_has_more_to_come_than_the_best_other(
    of_hope, held
):
    late = {(name, 1.0): np.full(len(memory.LATE), 0.01) for name in memory.NAMES}
    late["S5", 1.0] = np.full(len(memory.LATE), 0.2)
    late["HOPE", 1.0] = np.full(len(memory.LATE), of_hope)
    (found,) = memory.findings(memory.Memories(16, (1.0,), {}, late, (), {}))
    assert found.held is held
    assert found.told == f"dt = 1: after t = 8, half of its window, HOPE has {of_hope:g} of its " \
                         "energy to come, S5 0.2, and the others less"  # fmt: skip
