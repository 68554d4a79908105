"""Experiments that train models: folders, tables, sentences, and the page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from judging import run

import refssm

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn", reason="no scikit-learn: layers are not trained on its digits")

from docs.build import claims
from refssm.experiments import frequency
from refssm.experiments.catalog import TRAINED, module_of
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.trained import (
    half_rate,
    orders,
    parametrisations,
    pendulum,
    recall,
    training_rank,
)
from refssm.experiments.trained import trials as trials_of_experiments
from refssm.experiments.trained.trials import (
    TrainedRun,
    ahead,
    restored,
    spread,
    tried,
    with_seeds,
)
from refssm.layers.catalog import NAMED
from refssm.training.tasks import TASKS


def of(name, seed, accuracy):
    """A model as if it had been trained."""
    return TrainedRun(name, seed, 100, 1.0, [{"step": 10, "loss": 1.0, "test_accuracy": accuracy,
                                         "test_loss": 1.0}])  # fmt: skip


@pytest.mark.parametrize("name", TRAINED)
def test_each_trial_is_a_run_that_can_start(name):
    trials = module_of(name).trials(quick=False)
    names = [trial.name for trial in trials]
    assert len(set(names)) == len(names)
    for trial in trials:
        assert trial.setup.task in TASKS
        trial.setup.starting(NAMED[trial.setup.layer])


@pytest.mark.long
@pytest.mark.parametrize("name", TRAINED)
def test_an_experiment_trains_prints_and_draws_and_reads_what_it_trained(
    name, tmp_path, capfd, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    arguments = ("experiment", name, "--quick", "--seeds", 1)
    result, first, err = run(capfd, *arguments)
    assert (result, err) == (0, "")
    runs = tmp_path / "runs" / f"{name}-quick"
    before = {path: path.read_bytes() for path in runs.rglob("metrics.jsonl")}
    assert len(before) == len(module_of(name).trials(quick=True))
    result, second, _ = run(capfd, *arguments)
    assert first.splitlines()[:-1] == second.splitlines()[:-1]
    assert before == {path: path.read_bytes() for path in runs.rglob("metrics.jsonl")}
    assert (tmp_path / f"{name.replace('-', '_')}.png").exists()
    assert f"claim: {module_of(name).CLAIM.told}" in first
    assert any(line.startswith(("held: ", "not held: ")) for line in first.splitlines())


def test_a_trial_that_was_stopped_goes_on(tmp_path):
    trial = with_seeds(recall.trials(quick=True)[:1], [3])[0]
    setup = trial.setup
    shorter = replace(setup, plan=replace(setup.plan, steps=3))
    tried([trial._replace(setup=shorter)], tmp_path)
    (found,) = tried([trial], tmp_path)
    assert found.seed == 3
    assert found.tests[-1]["step"] == 6
    lines = next(tmp_path.rglob("metrics.jsonl")).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*range(1, 7)]


def test_a_folder_of_other_settings_is_refused_and_kept(tmp_path, capfd):
    """The folder has a run of another layer where the experiment wants its own."""
    trial = with_seeds(module_of("recency").trials(quick=True)[:1], [0])[0]
    tried([trial._replace(setup=replace(trial.setup, h=8))], tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result, out, err = run(
        capfd, "experiment", "recency", "--quick", "--seeds", 1, "--folder", tmp_path,
        "--output", tmp_path / "x.png",
    )  # fmt: skip
    assert (result, out) == (4, "")
    assert "another --folder begins anew" in err
    assert "bug" not in err
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_damaged_checkpoint_is_named_and_kept(tmp_path, capfd):
    trial = with_seeds(module_of("recency").trials(quick=True)[:1], [0])[0]
    tried([trial], tmp_path)
    damaged = next(tmp_path.rglob("checkpoint.safetensors"))
    damaged.write_bytes(b"damaged")
    result, _, err = run(
        capfd, "experiment", "recency", "--quick", "--seeds", 1, "--folder", tmp_path,
        "--output", tmp_path / "x.png",
    )  # fmt: skip
    assert result == 4
    assert str(damaged) in err
    assert "another --folder begins anew" in err
    assert damaged.read_bytes() == b"damaged"


def test_a_folder_that_is_a_file_is_a_usage_error(tmp_path, capfd):
    folder = tmp_path / "models"
    folder.write_text("mine", encoding="utf-8")
    result, _, err = run(
        capfd, "experiment", "recency", "--quick", "--seeds", 1, "--folder", folder,
        "--output", tmp_path / "x.png",
    )  # fmt: skip
    assert (result, folder.read_text(encoding="utf-8")) == (4, "mine")
    assert str(folder) in err
    assert "bug" not in err


def test_ctrl_c_says_that_models_stay(tmp_path, capfd, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(trials_of_experiments, "tried", interrupted)
    result, _, err = run(
        capfd, "experiment", "recency", "--quick", "--folder", tmp_path,
        "--output", tmp_path / "x.png",
    )  # fmt: skip
    assert result == 2
    assert f"{tmp_path}: what is trained stays; the same command goes on" in err


def test_a_sentence_of_recall_is_held_or_not_by_the_accuracy():
    runs = [
        of(f"{layer} {told}", seed, 0.95 if layer in recall.SOLVES else 0.3)
        for told, _ in recall.KINDS
        for layer in (*recall.SOLVES, *recall.FAILS)
        for seed in range(3)
    ]
    assert all(finding.held for finding in recall.findings(runs))
    worse = [r if r.name != "h3 recall" else of(r.name, r.seed, 0.5) for r in runs]
    (no,) = [finding for finding in recall.findings(worse) if not finding.held]
    assert str(no) == "not held: h3 does not solve recall: 50.0 %"


def test_a_difference_smaller_than_its_error_is_no_order():
    assert ahead([0.9, 0.91, 0.92], [0.8, 0.81, 0.82])
    assert not ahead([0.8, 0.81, 0.82], [0.9, 0.91, 0.92])
    assert not ahead([0.9, 0.7, 0.8], [0.85, 0.65, 0.78])
    assert spread([0.5, 1.5]) == "1.0 ± 0.7 (0.5 to 1.5)"
    assert spread([1.25], 2) == "1.25"


def test_the_page_is_what_is_stored():
    text = claims.PAGE.read_text(encoding="utf-8")
    assert text == claims.page(text, claims.stored_runs())  # make experiments


def test_a_run_that_is_kept_replaces_its_own_and_no_other(tmp_path, monkeypatch):
    stored, shown = tmp_path / "experiments.json", tmp_path / "experiments.md"
    stored.write_bytes(claims.STORED.read_bytes())
    shown.write_bytes(claims.PAGE.read_bytes())
    before = claims.stored_runs()
    monkeypatch.setattr(claims, "STORED", stored)
    monkeypatch.setattr(claims, "PAGE", shown)
    claims.keep([])
    assert stored.read_bytes() == (Path("docs") / "experiments.json").read_bytes()
    claims.keep([before[3] | {"findings": [[False, "one sentence of 1 number"]]}])
    after = claims.stored_runs()
    assert [run["name"] for run in after] == [run["name"] for run in before]
    assert [i for i, (x, y) in enumerate(zip(before, after, strict=True)) if x != y] == [3]
    assert "- **not held**: one sentence of 1 number" in shown.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", claims.claimed())
def test_a_claim_has_a_source_in_the_references(name):
    claim = module_of(name).CLAIM
    assert isinstance(claim, Claim)
    references = Path("docs/references.bib").read_text(encoding="utf-8")
    for key in claim.source.split(", "):
        assert f"{{{key}," in references


def test_a_finding_says_whether_it_held():
    assert str(Finding(True, "a is ahead")) == "held: a is ahead"


def accurate(name, *accuracies):
    """Models of one name with these accuracies."""
    return [of(name, seed, accuracy) for seed, accuracy in enumerate(accuracies)]


def test_an_order_is_held_or_not_and_says_both_numbers():
    runs = accurate("a", 0.9, 0.91, 0.92) + accurate("b", 0.5, 0.51, 0.52)
    (held,), (turned,) = orders.in_order(runs, "a", "b"), orders.in_order(runs, "b", "a")
    assert str(held) == "held: a (91.0 %) is ahead of b (51.0 %)"
    assert str(turned) == "not held: b (51.0 %) is not ahead of a (91.0 %)"


@pytest.mark.parametrize("name", ["padded", "recency", "rnn-hippo", "s5-ablation"])
def test_all_orders_of_an_experiment_are_about_its_own_models(name):
    experiment = module_of(name)
    names = [trial.name for trial in experiment.trials()]
    runs = [r for i, n in enumerate(names) for r in accurate(n, *(1 / (i + x) for x in (2, 2.01)))]
    findings = experiment.findings(runs)
    assert findings
    seen = " ".join(f.told for f in findings)
    assert all(n in seen for n in names)
    assert findings[0].held  # the first model is the one that was said to be best
    turned = [
        r for i, n in enumerate(names) for r in accurate(n, *(1 - 1 / (i + x) for x in (2, 2.01)))
    ]
    assert not experiment.findings(turned)[0].held


def test_a_pendulum_and_the_counts_of_parameters_are_held_or_not():
    def errors(*values):
        named = zip(pendulum.MODELS, values, strict=True)
        return [
            TrainedRun(n, s, 1, 1.0, [{"step": 1, "loss": 1.0, "test_error": e + s / 1e3}])
            for n, e in named
            for s in range(2)
        ]

    assert [f.held for f in pendulum.findings(errors(0.1, 0.2, 0.3))] == [True, True]
    assert [f.held for f in pendulum.findings(errors(0.3, 0.2, 0.1))] == [False, False]
    assert [f.held for f in parametrisations.findings([])] == [True, True]


def test_ranks_before_and_after_training_are_held_or_not():
    def ranked(of_hope, of_others, error, frozen):
        found = []
        for name in training_rank.MODELS:
            count = of_hope if name == "HOPE" else of_others
            sigma = np.where(np.arange(8) < count, 1.0, 1e-4)[None]
            for kind, e in (("trained", error), ("frozen", frozen)):
                for seed in range(2):
                    tests = [{"step": 1, "loss": 1.0, "test_error": e + seed / 1e3}]
                    run = TrainedRun(f"{name}, {kind}", seed, 1, 1.0, tests)
                    found.append(training_rank.Ranked(run.name, run, sigma, sigma))
        return training_rank.findings(found)

    assert all(f.held for f in ranked(7, 2, 0.1, 0.5))
    assert not any(f.held for f in ranked(2, 7, 0.5, 0.1))


def test_waves_are_held_or_not_by_what_is_left_of_them():
    omega = np.array([0.01, 0.04])
    highest = {"S4D": 0.02}

    def found(low, high):
        errors = {"S4D": np.array([[low], [high]])}
        return [f.held for f in frequency.findings(frequency.Fits(omega, errors, highest))]

    assert found(0.1, 0.9) == [True]  # four times 0.02 is not among the frequencies
    assert found(0.9, 0.1) == [False]


def test_a_smaller_error_is_ahead():
    def erring(name, error):
        tests = [{"step": 10, "loss": 1.0, "test_error": error, "test_loss": 1.0}]
        return [TrainedRun(name, s, 1, 1.0, tests) for s in range(2)]

    runs = erring("S5 with gaps", 0.1) + erring("RNN", 0.5)
    (order,) = orders.in_order_of_errors(runs, "S5 with gaps", "RNN")
    assert str(order) == "held: S5 with gaps (0.100) is ahead of RNN (0.500)"


def test_doubled_steps_are_those_of_a_signal_at_half_the_rate(tmp_path):
    trial = with_seeds(half_rate.trials(quick=True)[:1], [0])
    (run,) = tried(trial, tmp_path)
    trainer, state = restored(run)
    slower = half_rate._doubled(trainer, state.parameters)
    for name, a in state.parameters.items():
        if name.endswith("log_dt"):
            np.testing.assert_allclose(slower[name] - a, np.log(2), rtol=1e-5)
        elif name in slower:
            assert (slower[name] == a).all()
    heard = [
        half_rate.Heard("s5", run, dict(zip(half_rate.WAYS, values, strict=True)))
        for values in ((90.0, 88.0, 20.0), (91.0, 89.0, 22.0))
    ]
    assert all(f.held for f in half_rate.findings(heard))
    lost = [h._replace(accuracy=h.accuracy | {half_rate.WAYS[1]: 30.0}) for h in heard]
    assert not half_rate.findings(lost)[0].held


def test_the_filters_of_64_channels_have_the_published_numbers_of_parameters():
    # n real Markov parameters and a step: 64·64 + 64; n/2 poles and complex C: 64·32·4 + 64
    assert parametrisations.sizes("hope") == (4160, 4096)
    assert parametrisations.sizes("s4d") == (8256, 4096)


def test_the_spectrum_of_a_channel_is_that_of_its_system():
    # one pair of poles −1/2 ± i, C = 1 each: the gramians of the real system, by hand
    p = {"log_rate": np.log([[0.5]]), "frequency": np.array([[1.0]]), "C": np.array([[1.0 + 0j]])}
    A, B, C = np.array([[-0.5, 1.0], [-1.0, -0.5]]), np.array([1.0, 0.0]), np.array([2.0, 0.0])
    known = refssm.hankel_singular_values(A, B, C)
    np.testing.assert_allclose(training_rank.spectra("s4d", p)[0], known, rtol=1e-12)
    markov = {"markov": np.array([[0.0, 0.0, 2.0]], np.float32)}
    assert training_rank.spectra("hope", markov)[0].tolist() == [2.0, 2.0, 2.0]
    assert training_rank.shares(np.array([[1.0, 0.5, 1e-3, 0.0]])) == 50.0


def test_a_wave_of_a_pole_is_fitted_by_its_system_and_one_far_above_is_not():
    result = frequency.measured(seed=0, quick=True)
    basis, last = frequency._modes(1e-2)
    wave = basis[:, -1]
    assert frequency._misfit(basis, wave) < 1e-6
    low, high = (
        frequency.at(result, "S4D-Lin, dt = 0.001", 0.01),
        frequency.at(result, "S4D-Lin, dt = 0.001", 3.0),
    )
    assert low.max() < frequency.LEFT < high.min()
    assert 0 < last < np.pi
