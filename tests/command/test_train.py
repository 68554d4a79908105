"""`refssm train`: files, lines, exit codes, sentences; Ctrl-C, terminals, processes, clusters."""

import errno
import inspect
import json
import os
import re
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from judging import run
from training.small import setup
from training.test_run import same, without_times

from refssm.command import train as command
from refssm.command import trained
from refssm.training import loop
from refssm.training.optimizer import AdamW
from refssm.training.run import Run
from refssm.training.setup import Setup

SMALL = ("--h", 4, "--depth", 1, "--size", "n=2", "--batch", 8, "--ops", "reference")
WAVES = ("train", "waves", *SMALL, "--steps", 6, "--every", 3, "--warm-up", 2)
FILES = {"checkpoint.safetensors", "metrics.jsonl", "card.md"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def held(folder, name="waves-s5-0", steps=6):
    """The run in a folder, at the state of its checkpoint."""
    facts = setup(steps, h=4, depth=1, norm="batch", dropout=0.2)
    plan = {"rate": command_default("rate"), "seed": int(name.rpartition("-")[2])}
    found = Run(replace(facts, plan=replace(facts.plan, **plan)), folder / name)
    found.resume()
    return found


def command_default(name):
    return inspect.signature(command.train).parameters[name].default


def test_a_run_prints_its_tests_and_leaves_its_files(folder, capfd):
    result, out, err = run(capfd, *WAVES)
    assert (result, err) == (0, "")
    *tests, last = out.splitlines()
    pattern = r"waves-s5-0: step (\d): loss \d\.\d{4}, test accuracy [01]\.\d{4}"
    found = [re.fullmatch(pattern, line) for line in tests]
    assert [line and line[1] for line in found] == ["3", "6"]
    wanted = FILES | ({"curves.svg"} if find_spec("matplotlib") else set())
    assert {p.name for p in (folder / "waves-s5-0").iterdir()} == wanted
    assert all(name in last for name in wanted)
    lines = (folder / "waves-s5-0/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [json.loads(line) for line in lines]
    assert [line["step"] for line in facts] == [1, 2, 3, 4, 5, 6]
    assert ["test_accuracy" in line for line in facts] == [False, False, True] * 2


def test_the_card_says_what_was_trained_how_and_with_which_result(folder, capfd, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["refssm", *map(str, WAVES)])
    run(capfd, *WAVES)
    card = (folder / "waves-s5-0/card.md").read_text(encoding="utf-8")
    for row in ("# s5 on waves, seed 0", "refssm train waves --h 4", "| layer | s5 |", "| numpy |",
                "| sizes | n = 2 |", "| rate |", "| test accuracy |", "| all | 93 |"):  # fmt: skip
        assert row in card, row


@pytest.mark.parametrize("name", ["copying", "delay"])
def test_a_generated_task_is_trained_with_its_figure_and_its_marks(folder, capfd, name):
    small = {"copying": ("copied=2", "blanks=3"), "delay": ("l=16", "lag=3")}[name]
    sizes = [word for size in small for word in ("--task-size", size)]
    result, out, err = run(capfd, "train", name, *SMALL, "--steps", 2, *sizes)
    assert (result, err) == (0, "")
    figure, mark = ("error", "0.0000") if name == "delay" else ("accuracy", "1.0000")
    assert re.search(rf"^{name}-s5-0: step 2: loss \d\.\d{{4}}, test {figure} \d", out)
    card = (folder / f"{name}-s5-0/card.md").read_text(encoding="utf-8")
    for row in (f"| test {figure} |", f"| best | {mark} |", "Limits: generated examples of one"):
        assert row in card, row
    if find_spec("matplotlib"):
        picture = (folder / f"{name}-s5-0/curves.svg").read_text(encoding="utf-8")
        assert f">{figure}</text>" in picture or figure in picture


def test_a_resumed_command_equals_the_uninterrupted_one(folder, capfd, monkeypatch):
    run(capfd, *WAVES, "--folder", "whole")
    steps = Run.steps

    def until_4(self):
        for facts in steps(self):
            yield facts
            if facts["step"] == 4:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "steps", until_4)
        result, _, err = run(capfd, *WAVES, "--folder", "parts")
    assert result == 2
    assert err.startswith("refssm: interrupted at step 4: ")
    assert err.endswith("is saved; --resume goes on\n")
    assert held(folder / "parts").state.step == 4
    assert run(capfd, *WAVES, "--folder", "parts", "--resume")[0] == 0
    parts, whole = held(folder / "parts"), held(folder / "whole")
    assert same(parts.state, whole.state)
    assert without_times(parts) == without_times(whole)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_run_that_is_made_longer_says_so_in_its_output_and_on_its_card(folder, capfd, workers):
    copying = ("train", "copying", *SMALL, "--task-size", "blanks=3", "--warm-up", 2)
    run(capfd, *copying, "--steps", 6)
    longer = (*copying, "--steps", 8, "--resume")
    result, out, err = run(capfd, *longer, "--workers", workers)
    assert (result, err) == (0, "")
    sentence = "from step 7 on this is a run of 8 steps, not 6: the rate follows the half cosine to"
    assert f"copying-s5-0: {sentence} step 8" in out
    assert sentence in (folder / "copying-s5-0/card.md").read_text(encoding="utf-8")
    assert sentence not in run(capfd, *longer)[1]  # it was said


def test_a_finished_run_may_be_resumed_and_stays_as_it_is(folder, capfd):
    run(capfd, *WAVES)
    before = held(folder).state
    assert run(capfd, *WAVES, "--resume")[0] == 0
    assert same(held(folder).state, before)


def test_the_usual_options_are_the_usual_settings():
    usual = Setup("digits", "s5").facts()
    assert command_default("post_norm") is not usual.pop("prenorm")
    for name, of in (("size", "sizes"), ("task_size", "task_sizes"), ("start", "start")):
        assert (command_default(name) or {}) == usual.pop(of)
    assert usual.pop("task") == "digits"
    assert {name: command_default(name) for name in usual} == usual


REFUSED = {
    "task": (("train", "mnist"), "unknown task 'mnist'; wanted one of digits, permuted_digits"),
    "layer": (
        ("train", "waves", "--layer", "s6"),
        "unknown layer 's6'; wanted one of s4, s4d, s4d_bilinear",
    ),
    "norm": (("train", "waves", "--norm", "group"), "'group'; wanted one of layer, rms, batch"),
    "ops": (("train", "waves", "--ops", "tpu"), "'tpu'; wanted one of reference, jit"),
    "gpu": (("train", "waves", "--ops", "gpu"), "--ops gpu runs on a CUDA GPU, and"),
    "size": (
        ("train", "waves", "--size", "m=3"),
        "unknown size of s5 'm'; wanted one of n, blocks",
    ),
    "number": (("train", "waves", "--size", "n=x"), "--size n=x: wanted a name and a positive"),
    "zero": (("train", "waves", "--size", "n=0"), "--size n=0: wanted a name and a positive"),
    "batch": (("train", "waves", "--batch", 31), "--batch 31: waves has 30 examples"),
    "task size": (
        ("train", "copying", "--task-size", "l=9"),
        "unknown size of copying 'l'; wanted one of symbols, copied, blanks",
    ),
    "no size": (("train", "digits", "--task-size", "l=9"), "unknown size of digits 'l'; there is"),
    "task number": (("train", "copying", "--task-size", "l"), "--task-size l: wanted a name and"),
    "each": ((*WAVES, "--read", "each"), "has an answer for each signal; wanted mean or"),
    "start": (
        (*WAVES, "--start", "measure=legt"),
        "unknown start of s5 'measure'; wanted one of poles, steps, dt_min, dt_max, frozen",
    ),
    "no start": (
        (*WAVES, "--layer", "spectral_ssm", "--start", "gamma=1"),
        "spectral_ssm 'gamma'; there is",
    ),
    "start value": ((*WAVES, "--start", "dt_min"), "--start dt_min: wanted a name and a value"),
    "start word": ((*WAVES, "--start", "dt_min=x"), "--start dt_min=x: wanted a finite number"),
    "start nan": ((*WAVES, "--start", "dt_min=nan"), "--start dt_min=nan: wanted a finite number"),
    "start number": (
        (*WAVES, "--start", "poles=3"),
        "`poles` must be one of hippo-n",
    ),
    "start bounds": ((*WAVES, "--start", "dt_min=2"), "wanted 0 < dt_min ≤ dt_max, got dt_min=2.0"),
    "frozen": ((*WAVES, "--start", "frozen=weights"), "unknown group to freeze 'weights'; wanted"),
    "no files": (("train", "smnist"), "smnist: wanted --data FOLDER, the files of its data set"),
    "absent files": (("train", "smnist", "--data", "x"), "x/train-images-idx3-ubyte: No such file"),
    "files": (("train", "waves", "--data", "x"), "x: waves needs no files"),
    "both": (("train", "waves", "--workers", 2, "--dask", "x"), "leave one out"),
    "resume": ((*WAVES, "--resume"), "there is no checkpoint"),
    "steps": (("train", "waves", "--steps", 0), "Invalid value for '--steps'"),
    "option": (("train", "waves", "--layers", "s5"), "--layer"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_one_sentence_and_leaves_nothing(folder, capfd, what):
    arguments, sentence = REFUSED[what]
    result, out, err = run(capfd, *arguments)
    assert (result, out) == (4, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert [*folder.iterdir()] == []


def test_a_second_run_and_a_resumed_one_of_other_settings_are_refused(folder, capfd):
    run(capfd, *WAVES)
    before = (folder / "waves-s5-0/checkpoint.safetensors").read_bytes()
    assert "there is a run; --resume goes on" in run(capfd, *WAVES)[2]
    result, _, err = run(capfd, *WAVES, "--rate", 0.5, "--resume")
    assert result == 4
    assert f"rate was {command_default('rate')}, now 0.5" in err
    assert (folder / "waves-s5-0/checkpoint.safetensors").read_bytes() == before


DISKS = {
    "a full disk": OSError(errno.ENOSPC, "No space left on device"),
    "a read-only folder": OSError(errno.EROFS, "Read-only file system"),
}


@pytest.mark.parametrize("what", DISKS)
def test_a_disk_that_refuses_stops_the_run_with_one_sentence(folder, capfd, monkeypatch, what):
    fsync, calls = os.fsync, []

    def failing(handle):
        calls.append(handle)
        if len(calls) > 3:  # the first checkpoint, and metrics and checkpoint of step 3
            raise DISKS[what]
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        result, _, err = run(capfd, *WAVES)
    assert result == 4
    assert DISKS[what].strerror in err
    assert err.endswith("the checkpoint of step 3 stays\n")
    assert len(err.splitlines()) == 1
    assert held(folder).state.step == 3
    assert run(capfd, *WAVES, "--resume")[0] == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
def test_a_folder_in_which_nothing_can_be_made_is_one_sentence(capfd):
    result, out, err = run(capfd, *WAVES, "--folder", "/proc/self/runs")
    assert (result, out) == (4, "")
    assert "/runs: No such file or directory" in err
    assert len(err.splitlines()) == 1


def test_a_loss_that_is_not_finite_stops_and_the_last_checkpoint_stays(folder, capfd, monkeypatch):
    update = AdamW.update

    def wrong(self, p, gradients, state, step, rate):
        new, moments = update(self, p, gradients, state, step, rate)
        return (
            (new | {"decoder.b": np.full(3, np.nan, np.float32)}, moments)
            if step == 4
            else (new, moments)
        )

    monkeypatch.setattr(AdamW, "update", wrong)
    result, _, err = run(capfd, *WAVES)
    assert result == 1
    assert re.fullmatch(
        r"refssm: waves-s5-0: step 5: the gradient of `\S+` is not finite; "
        r"the checkpoint of step 3 stays\n",
        err,
    )
    assert held(folder).state.step == 3


def test_ctrl_c_while_a_checkpoint_is_read_does_not_touch_it(folder, capfd, monkeypatch):
    run(capfd, *WAVES)
    before = (folder / "waves-s5-0/checkpoint.safetensors").read_bytes()

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "resume", interrupted)
    assert run(capfd, *WAVES, "--resume")[0] == 2
    assert (folder / "waves-s5-0/checkpoint.safetensors").read_bytes() == before


def test_without_matplotlib_there_is_no_picture_and_all_else(folder, capfd, monkeypatch):
    monkeypatch.setattr(trained, "find_spec", lambda name: None)
    assert run(capfd, *WAVES)[0] == 0
    assert {p.name for p in (folder / "waves-s5-0").iterdir()} == FILES


def test_without_safetensors_the_command_says_how_to_get_it(capfd, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    result, _, err = run(capfd, *WAVES)
    assert (result, err) == (
        4,
        "refssm: train needs safetensors: pip install safetensors scikit-learn\n",
    )


def test_several_seeds_have_a_folder_each_and_a_summary(folder, capfd):
    result, out, _ = run(capfd, *WAVES, "--seeds", 2, "--seed", 5)
    assert result == 0
    assert {p.name for p in folder.iterdir()} == {"waves-s5-5", "waves-s5-6"}
    assert re.search(r"^test accuracy of 2 seeds: \d\.\d{4} ± \d\.\d{4}, least", out, re.MULTILINE)


def test_the_state_that_a_step_needs_is_all_in_the_checkpoint():
    kinds = {"step", "parameters", "moments", "averages", "generator"}
    assert set(loop.TrainingState.__dataclass_fields__) == kinds
