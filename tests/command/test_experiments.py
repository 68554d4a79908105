"""`refssm experiment`: each table shows its fact; files are complete or absent."""

import sys
from pathlib import Path

import numpy as np
import pytest
from judging import run

import refssm

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn", reason="no scikit-learn: layers are not trained on its digits")

from refssm.command import experiment as command
from refssm.experiments import (
    catalog,
    convergence,
    hankel_rank,
    initialisation,
    memory,
    perturbation,
    systems,
)
from refssm.experiments.catalog import module_of
from refssm.gallery import drawing

EXPERIMENTS = {name: module_of(name) for name in catalog.EXPERIMENTS}
u = 2.0**-53


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module", params=[0, 1], ids=["seed 0", "seed 1"])
def found(request):
    """The result of an experiment by its module, computed once."""
    held = {}

    def of(module):
        if module not in held:
            held[module] = module.measured(seed=request.param, quick=True)
        return held[module]

    return of


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_prints_a_table_and_writes_its_picture(folder, capfd, name, suffix):
    arguments = ("experiment", name, "--quick", "--seed", 3, "-o", f"one{suffix}")
    result, out, err = run(capfd, *arguments)
    assert (result, err) == (0, "")
    *lines, last = out.splitlines()
    assert last.startswith(f"one{suffix}   seed 3   ")
    assert all(line == line.rstrip() for line in lines)
    assert [p.name for p in folder.iterdir()] == [f"one{suffix}"]
    if name == "cost":  # its numbers are times
        return
    tables = EXPERIMENTS[name].tables(EXPERIMENTS[name].measured(seed=3, quick=True))
    for table in tables:  # no cell is cut or broken; the same seed gives the same numbers
        assert table.title in lines
        for row in table.rows:
            assert any(line.split() == " ".join(row).split() for line in lines), row


@pytest.mark.long
def test_another_seed_gives_other_numbers_and_the_same_seed_the_same_picture(folder):
    for seed, name in ((1, "a.png"), (1, "b.png"), (2, "c.png")):
        hankel_rank.draw(folder / name, hankel_rank.measured(seed=seed, quick=True))
    first, second, other = (Path(name).read_bytes() for name in ("a.png", "b.png", "c.png"))
    assert first == second != other


def test_the_usual_name_is_that_of_the_experiment(folder, capfd):
    assert run(capfd, "experiment", "hankel-rank", "--quick")[0] == 0
    assert [p.name for p in folder.iterdir()] == ["hankel_rank.png"]


REFUSED = {
    "format": (("-o", "x.pdf"), "x.pdf: wanted a file name that ends in .png or .svg"),
    "folder": (("-o", "nowhere/x.png"), "nowhere/x.png: No such file or directory"),
    "seed": (("--seed", "-1"), "Invalid value for '--seed'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_picture_that_cannot_be_is_told_before_anything_is_measured(
    folder, capfd, monkeypatch, what
):
    monkeypatch.setattr(memory, "measured", None)
    arguments, sentence = REFUSED[what]
    result, out, err = run(capfd, "experiment", "memory", *arguments)
    assert (result, out) == (4, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert [*folder.iterdir()] == []


def test_without_matplotlib_the_command_says_how_to_get_it(capfd, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    result, _, err = run(capfd, "experiment", "memory")
    assert result == 4
    assert err == "refssm: experiments need matplotlib: pip install matplotlib\n"


def test_an_interrupted_experiment_leaves_the_old_picture_and_prints_no_table(
    folder, capfd, monkeypatch
):
    Path("memory.png").write_text("old", encoding="utf-8")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(memory, "aliasing", interrupted)
    result, out, _ = run(capfd, "experiment", "memory", "--quick")
    assert (result, out) == (2, "")
    assert Path("memory.png").read_text(encoding="utf-8") == "old"


def test_an_interrupted_picture_leaves_the_old_one_and_nothing_else(folder, capfd, monkeypatch):
    Path("hankel_rank.png").write_text("old", encoding="utf-8")

    def interrupted(self, name, **how):
        Path(name).write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr(drawing.Figure, "savefig", interrupted)
    assert run(capfd, "experiment", "hankel-rank", "--quick")[0] == 2
    assert [p.name for p in folder.iterdir()] == ["hankel_rank.png"]
    assert Path("hankel_rank.png").read_text(encoding="utf-8") == "old"


def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe(capfd, monkeypatch):
    assert command._track("memory") is iter
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert [*command._track("memory")([1, 2, 3])] == [1, 2, 3]


# the fact that each table shows


def test_random_systems_have_ranks_that_grow_slower_than_n_and_hope_like_n(found):
    result = found(hankel_rank)
    exponents = {name: hankel_rank.exponent(result, name) for name in hankel_rank.NAMES}
    assert max(exponents["random, in the disc"], exponents["random, on a line"]) < 0.9
    assert min(exponents["HOPE"], exponents["S4D-Lin"]) > 0.9


def test_no_change_exceeds_its_bound_and_the_worst_reach_it(found):
    for m in found(perturbation):
        rounding = 1 + 4 * (m.n + 8) * u  # errors of n complex quotients and of their sum
        assert max(m.random, m.one, m.all) <= m.bound * rounding
        assert m.one >= m.bound / m.n / rounding  # some change always attains 1/n of the bound
        if m.name in ("equal poles", "HOPE"):
            assert m.all >= m.bound / rounding


def test_poles_near_the_axis_move_their_system_by_the_square_of_what_they_are_nearer(found):
    moved = {m.name: m.bound / m.delta for m in found(perturbation) if m.what == "poles"}
    # Re w = −½ and −½/100; residues are random: the largest |v| differ by a factor below 10
    assert 1e3 < moved["S4D-Lin, slower"] / moved["S4D-Lin"] < 1e5


def test_after_half_its_window_hope_holds_what_the_others_have_forgotten(found):
    result = found(memory)
    at = memory.LATE.index(result.n // 2)
    for dt in result.steps:
        held = {name: result.late[name, dt][at] for name in memory.NAMES}
        hope = held.pop("HOPE")
        assert hope > 0.1
        assert max(held.values()) < 0.01


def test_the_true_kernel_does_not_depend_on_the_length_and_the_aliased_one_does(found):
    h = np.random.default_rng(5).standard_normal(16)
    long = refssm.hope_kernel(h, 0.1, l=512)
    for l in (64, 256):
        assert refssm.hope_kernel(h, 0.1, l=l).tolist() == long[:l].tolist()
    errors = found(memory).aliased[0.1]
    assert errors[0] > 100 * errors[1]  # 64 steps are less than n/dt = 160; 256 are more
    assert errors[0] > 0.01


def test_padding_with_zeros_does_not_change_what_the_true_kernel_gives():
    rng = np.random.default_rng(6)
    h, y = rng.standard_normal(8), rng.standard_normal(40)
    direct = refssm.causal_convolution_direct
    short = direct(y, refssm.hope_kernel(h, 0.3, l=40))
    padded = direct(np.pad(y, (0, 60)), refssm.hope_kernel(h, 0.3, l=100))
    rounding = 40 * u * np.linalg.norm(y) * np.linalg.norm(h)  # ‖K‖₂ ≤ √n‖h‖, of sums of 40
    assert np.abs(padded[:40] - short).max() <= 2 * np.sqrt(8) * rounding
    aliased = direct(np.pad(y, (0, 60)), refssm.hope_kernel_aliased(h, 0.3, l=100))
    short = direct(y, refssm.hope_kernel_aliased(h, 0.3, l=40))
    assert np.abs(aliased[:40] - short).max() > 2 * np.sqrt(8) * rounding


def test_random_poles_start_with_fewer_singular_values_that_count(found):
    result = found(initialisation)
    ranks = {
        name: refssm.numerical_rank(sigma, 1e-2).mean() for name, sigma in result.sigma.items()
    }
    random = ranks.pop("random, in the disc")
    assert random < min(ranks.values())


def test_the_real_mode_of_s4d_lin_is_doubled_and_one_singular_value_is_lost(found):
    result = found(initialisation)
    # w_0 = −½ is its own partner: 2n modes but 2n − 1 poles, so the last σ is a rounding error
    last = result.sigma["S4D-Lin"][:, -1] / result.sigma["S4D-Lin"][:, 0]
    assert last.max() <= result.n**2 * u


@pytest.mark.long
def test_hope_descends_to_what_least_squares_can_and_at_dt_1_in_one_step(found):
    result = found(convergence)
    for target in ("diagonal", "HOPE"):
        descent = result.descents[target, "HOPE, dt = 1"]
        least = result.least[target, "HOPE, dt = 1"]
        assert abs(descent.errors[1] - least) <= convergence.LENGTH * u  # for ‖K*‖² = 1
        assert abs(descent.condition[0] - 1) <= 4 * convergence.MARKOV**2 * u
    assert result.descents["HOPE", "HOPE, dt = 0.1"].errors[100] < 0.01
    for name in convergence.STARTS:
        assert result.descents["HOPE", name].errors[100] > 0.01
        assert result.descents["diagonal", name].condition[0] > 1e3


def test_a_descent_that_meets_its_condition_with_equality_takes_the_step():
    model = convergence.hope(1.0)  # its Hessian is the identity: one step suffices
    for k in np.random.default_rng(0).standard_normal((40, convergence.LENGTH)):
        k = k / np.linalg.norm(k)
        descent = convergence.descend(model, np.zeros(convergence.MARKOV), k, (1,))
        least = convergence._least(model, k)
        assert abs(descent.errors[1] - least) <= convergence.LENGTH * u


@pytest.mark.parametrize("dt", [0.3, 0.5, 1.0, 2.0])
def test_the_hessian_in_hopes_parameters_is_minus_rho_to_the_distance(dt):
    n, l = 6, 400
    s = refssm.hope_kernel(np.eye(n), dt, l=l)
    tails = np.array([refssm.hope_tail(e, dt, l=l) for e in np.eye(n)])
    # sums of l terms of rows of norm 1; each of n stages rounds its states a few times, and a
    # state keeps a rounding for 1/(1 − |ρ|) steps
    kept = 1 / (1 - abs((1 - dt) / (1 + dt)))
    allowed = (l + 16 * n * kept) * u + tails[:, None] * tails
    gram = convergence.hope_gram(dt, n)
    assert (np.abs(s @ s.T - gram) <= allowed).all()
    assert gram[0, 1] == (dt - 1) / (dt + 1)


@pytest.mark.parametrize("dt", [0.03, 0.5, 2.0])
def test_the_sign_of_rho_does_not_change_the_condition_of_the_hessian(dt):
    # D = diag((−1)^i) is orthogonal; eigenvalues are computed to n u of the largest
    gram = convergence.hope_gram(dt, 8)
    same = np.linalg.eigvalsh(np.abs(gram))
    assert (np.abs(np.linalg.eigvalsh(gram) - same) <= 16 * 8 * u * same[-1]).all()


def test_a_count_relative_to_the_largest_value_and_an_absolute_one_differ():
    sigma = refssm.hankel_singular_values_diagonal([-1.0, -0.001], np.ones(2), np.ones(2))
    assert [f"{s:.3f}" for s in sigma] == ["500.002", "0.498"]  # roots of σ² − 500.5σ + 249.002
    assert (refssm.numerical_rank(sigma, 0.01), (sigma > 0.01).sum()) == (1, 2)


@pytest.mark.long
def test_the_condition_in_hopes_parameters_stays_below_1_over_dt_squared(found):
    for dt, condition in found(convergence).conditions.items():
        assert condition <= (1 + 4 * convergence.MARKOV**2 * u) / dt**2


# the building blocks of the experiments


def test_the_singular_values_of_diagonal_systems_are_those_that_are_known():
    # reference values from mpmath: poles −(1 + 0.3k), k = 0…15, and S4D-Lin, B = C = 1
    w = -(1 + 0.3 * np.arange(16)) + 0j
    sigma = systems.singular_values(systems.Diagonal(w, np.ones(16, complex)))
    assert f"{sigma[-1]:.0e}" == "5e-26"
    w = refssm.s4d_lin(n=64)
    sigma = systems.singular_values(systems.Diagonal(w, np.ones(64, complex)))
    assert f"{sigma[0]:.1f}…{sigma[-1]:.2f}" == "1.2…0.85"


def test_diagonal_and_dense_singular_values_are_the_same_and_that_of_one_pole_is_known():
    w, v = np.array([-0.5, -2.0, -3.0]), np.array([2.0, 1.0, -1.0])
    diagonal = systems.singular_values(systems.Diagonal(w + 0j, v + 0j))
    dense = refssm.hankel_singular_values(np.diag(w), v, np.ones(3))
    # backward errors of P and Q: square root of the product of 9u‖P‖ and 9u‖Q‖, ‖Q‖ ≤ 3, ‖P‖ ≤ 12
    assert np.abs(diagonal - dense).max() <= 9 * 6 * np.sqrt(u)
    one = systems.singular_values(systems.Diagonal(np.array([-0.25 + 3j]), np.array([4.0 + 0j])))
    assert abs(one[0] - 8) <= 8 * 8 * u  # |v| / (2 |Re w|)


def test_the_poles_in_the_disc_are_mapped_with_their_transfer_function():
    n, rng = 5, np.random.default_rng(1)
    a, _ = refssm.lru_ring(rng.random(n), rng.random(n))
    r = systems.normal(rng, n)
    w, v = systems.disc(np.random.default_rng(1), n)
    z = np.exp(1j * np.array([0.3, 1.7]))[:, None]
    s = (z - 1) / (z + 1)
    discrete, continuous = (r / (z - a)).sum(-1), (v / (s - w)).sum(-1)
    # they differ by a constant, which does not change Hankel singular values; each quotient in w, v
    # and s − w = 2(z − a)/((z + 1)(1 + a)) loses accuracy if its denominator is small
    lost = (np.abs(r) / (np.abs(z - a) ** 2 * np.abs(1 + a) ** 2)).sum()
    assert np.abs(np.diff(discrete - continuous)) <= 64 * u * lost
    assert (w.real < 0).all()


def test_the_gradient_of_the_diagonal_model_is_the_slope_of_its_kernel():
    rng = np.random.default_rng(2)
    model, p = convergence.diagonal(), convergence._random_modes(rng)
    direction, dk = rng.standard_normal(len(p)), rng.standard_normal(convergence.LENGTH)
    slopes = []
    for h in (2.0**-10, 2.0**-11):
        ahead, behind = model.kernel(p + h * direction), model.kernel(p - h * direction)
        slopes.append(dk @ (ahead - behind) / (2 * h))
    extrapolated = (4 * slopes[1] - slopes[0]) / 3
    # errors of the central differences are h²c and h²c/4, so the rest is below their difference
    assert abs(model.gradient(dk, p) @ direction - extrapolated) <= abs(slopes[0] - slopes[1])
