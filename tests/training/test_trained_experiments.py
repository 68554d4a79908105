"""Experiments that train models: folders, tables, sentences, and the page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from judging import run

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn", reason="no scikit-learn: layers are not trained on its digits")

from docs.build import claims
from refssm.experiments.catalog import TRAINED, module_of
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.trained import recall
from refssm.experiments.trained.trials import TrainedRun, ahead, spread, tried, with_seeds
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
    shorter = replace(setup, plan=replace(setup.plan, steps=5))
    tried([trial._replace(setup=shorter)], tmp_path)
    (found,) = tried([trial], tmp_path)
    assert found.seed == 3
    assert found.tests[-1]["step"] == 10
    lines = next(tmp_path.rglob("metrics.jsonl")).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*range(1, 11)]


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


@pytest.mark.parametrize("name", claims.claimed())
def test_a_claim_has_a_source_in_the_references(name):
    claim = module_of(name).CLAIM
    assert isinstance(claim, Claim)
    references = Path("docs/references.bib").read_text(encoding="utf-8")
    assert f"{{{claim.source}," in references


def test_a_finding_says_whether_it_held():
    assert str(Finding(True, "a is ahead")) == "held: a is ahead"
