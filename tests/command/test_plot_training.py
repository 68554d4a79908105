"""`refssm plot training`: curves of runs in folders, with a band over their seeds."""

import re

import numpy as np
import pytest
from judging import run
from training.small import setup

pytest.importorskip("matplotlib")

from refssm.gallery import training as gallery
from refssm.training import folders
from refssm.training.run import trained
from refssm.training.setup import Setup

SMALL = {"h": 4, "depth": 1, "norm": "layer", "ops": "reference"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runs(folder, seeds=(0, 1, 2), every=2, **how):
    """The folders of finished runs of 6 steps."""
    for seed in seeds:
        made = setup(6, seed=seed, **how)
        trained(made, folder / f"{every}-{made.name}", every=every)
    return [f"{every}-{setup(6, seed=seed, **how).name}" for seed in seeds]


def test_runs_of_several_layers_and_seeds_are_drawn(folder, capfd):
    names = [*runs(folder), *runs(folder, layer="lru")]
    result, out, err = run(capfd, "plot", "training", *names, "-o", "one.svg")
    assert (result, out, err) == (0, "one.svg\n", "")
    text = (folder / "one.svg").read_text(encoding="utf-8")
    for word in ("s5", "lru", "loss on the test set", "accuracy on the test set"):
        assert f">{word}</text>" in text, word
    run(capfd, "plot", "training", *names, "-o", "two.svg")
    assert (folder / "two.svg").read_bytes() == (folder / "one.svg").read_bytes()


def test_runs_that_differ_in_the_seed_are_one_curve_and_others_say_what_differs(folder):
    paths = runs(folder) + runs(folder, layer="lru", seeds=(0, 1))
    paths += runs(folder, every=3, start={"dt_min": 1e-2}, seeds=(4,))
    groups = folders.by_settings([folders.read(folder / name) for name in paths])
    assert {label: len(its) for label, its in groups.items()} == {
        "s5: start = usual": 3, "lru: start = usual": 2, "s5: start = dt_min=0.01": 1
    }  # fmt: skip


def test_a_curve_has_the_tests_of_each_run_at_the_steps_that_all_have(folder):
    paths = runs(folder, seeds=(0, 1)) + runs(folder, seeds=(2,), every=3)
    (its,) = folders.by_settings([folders.read(folder / name) for name in paths]).values()
    steps, values = folders.curve(its, "test_loss")
    assert steps == [6]  # of 2, 4, 6 and 3, 6
    assert values == [[run.tests[-1]["test_loss"]] for run in its]
    steps, values = folders.curve(its[:2], "test_loss")
    assert steps == [2, 4, 6]
    assert np.shape(values) == (2, 3)
    (panel, other) = gallery.of_groups({"s5": its[:2]}, folders.curve)
    assert panel.curves["s5"] == (steps, values)
    assert (panel.logarithmic, other.logarithmic) == (True, False)


def test_runs_with_accuracies_and_with_errors_have_panels_of_their_own(folder):
    sizes = {"task_sizes": {"l": 16, "lag": 3}}
    plan = setup(6).plan
    trained(
        Setup("delay", "s5", plan=plan, sizes={"n": 2}, **sizes, **SMALL), folder / "d", every=3
    )
    groups = folders.by_settings([folders.read(folder / n) for n in [*runs(folder), "d"]])
    panels = gallery.of_groups(groups, folders.curve)
    assert [p.title for p in panels] == [
        "loss on the test set", "accuracy on the test set", "error on the test set"
    ]  # fmt: skip
    assert [len(p.curves) for p in panels] == [2, 1, 1]


def damaged(folder, what):
    (name,) = runs(folder, seeds=(0,))
    metrics = folder / name / "metrics.jsonl"
    if what == "none":
        metrics.unlink()
    if what == "empty":
        metrics.write_text("", encoding="utf-8")
    if what == "cut":
        metrics.write_text("{", encoding="utf-8")
    return name


REFUSED = {
    "nowhere": (lambda folder: "nowhere", "nowhere/checkpoint.safetensors: there is no checkpoint"),
    "none": (lambda folder: damaged(folder, "none"), "metrics.jsonl: there are no metrics"),
    "empty": (lambda folder: damaged(folder, "empty"), "metrics.jsonl: there was no test yet"),
    "cut": (lambda folder: damaged(folder, "cut"), "metrics.jsonl: not the metrics of a run"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_folder_that_has_no_run_is_refused_with_what_is_missing(folder, capfd, what):
    make, sentence = REFUSED[what]
    result, out, err = run(capfd, "plot", "training", make(folder))
    assert (result, out) == (4, "")
    assert re.search(re.escape(sentence), err)
    assert len(err.splitlines()) == 1
    assert not (folder / "training.png").exists()


def test_a_picture_of_another_format_is_refused(folder, capfd):
    (name,) = runs(folder, seeds=(0,))
    result, _, err = run(capfd, "plot", "training", name, "-o", "x.pdf")
    assert (result, "wanted a file name that ends in .png or .svg" in err) == (4, True)


@pytest.mark.parametrize(("curves", "named_below"), [(12, False), (13, True), (31, True)])
def test_names_of_many_curves_stand_below_the_panels(curves, named_below, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(gallery, "written", lambda figure, output: made.append(figure))
    line = gallery.Curve([1, 2], [[1.0, 2.0]])
    panel = gallery.CurvePanel("loss", {f"a layer of name {i}": line for i in range(curves)})
    gallery.draw(tmp_path / "x.png", [panel, panel])
    (figure,) = made
    figure.canvas.draw()  # a collapsed layout is a warning, so an error here
    legends = [axis.get_legend() for axis in figure.axes]
    assert [bool(legend) for legend in legends] == 2 * [not named_below]
    assert len(figure.legends) == named_below
    for named in (*figure.legends, *filter(None, legends)):
        assert len(named.get_texts()) == curves
    assert all(axis.get_position().height > 0.5 for axis in figure.axes)
