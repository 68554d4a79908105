"""A run: an interrupted one goes on as if nothing had been; the loop learns; what fails is told."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from training.small import CLASSES, setup

from refssm.layers.catalog import NAMED
from refssm.training import checkpoint
from refssm.training.checkpoint import CheckpointError
from refssm.training.loop import Diverged, arrays_of
from refssm.training.optimizer import cosine
from refssm.training.run import Run, trained
from refssm.training.setup import ADDED
from refssm.training.tasks import TrainingError


def ended(run):
    """The run after its last step."""
    for _ in run.steps():
        pass
    return run


def same(a, b):
    """Whether two states are equal bit for bit."""
    one, other = arrays_of(a), arrays_of(b)
    assert one.keys() == other.keys()
    equal = [one[n].tobytes() == other[n].tobytes() for n in one]
    return all(equal) and (a.step, a.generator) == (b.step, b.generator)


def without_times(run):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.lines()]


def begun(tmp_path, name="run", every=4, **model):
    run = Run(setup(**model), tmp_path / name, every)
    run.begin()
    return run


OTHERWISE = {
    "read": ["last"],
    "start": [{"dt_min": 1e-2}, {"frozen": "system"}],
}  # other values of options that were added later
KINDS = {
    "batch norm": {},
    "batch norm and dropout": {"dropout": 0.3},
    "two pieces": {"pieces": 2, "dropout": 0.3},
    "post-norm": {"prenorm": False, "norm": "layer"},
    "no norm over the batch": {"norm": "rms"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_resumed_from_any_checkpoint_equals_the_uninterrupted_one(tmp_path, kind):
    whole = ended(begun(tmp_path, "whole", **KINDS[kind]))
    for stop in (1, 4, 6, 11):
        run = begun(tmp_path, f"stopped{stop}", **KINDS[kind])
        for facts in run.steps():
            if facts["step"] == stop:
                break
        again = Run(run.setup, run.folder, every=4)
        again.resume()
        assert again.state.step == stop - stop % 4
        assert same(ended(again).state, whole.state)
        assert without_times(again) == without_times(whole)


@pytest.mark.parametrize("part", ["moments", "averages", "generator", "parameters"])
def test_the_comparison_sees_a_part_of_the_state_that_is_forgotten(tmp_path, part):
    whole = ended(begun(tmp_path, "whole", dropout=0.3))
    run = begun(tmp_path, dropout=0.3)
    for facts in run.steps():
        if facts["step"] == 4:
            break
    run.state = replace(run.state, **{part: getattr(run.trainer.start(), part)})
    assert not same(ended(run).state, whole.state)


@pytest.mark.parametrize("layer", NAMED)
def test_every_layer_trains_and_resumes(tmp_path, layer):
    sizes = {"n": 2} if "n" in NAMED[layer].sizes else {}
    whole = ended(begun(tmp_path, "whole", steps=4, layer=layer, sizes=sizes))
    run = begun(tmp_path, steps=4, layer=layer, sizes=sizes, every=2)
    for facts in run.steps():
        if facts["step"] == 3:
            break
    again = Run(run.setup, run.folder, 2)
    again.resume()
    assert same(ended(again).state, whole.state)


def test_another_seed_gives_another_run_and_the_same_seed_the_same(tmp_path):
    states = [ended(begun(tmp_path, f"{i}", seed=seed)).state for i, seed in enumerate((1, 1, 2))]
    assert same(states[0], states[1])
    assert not same(states[0], states[2])


@pytest.mark.parametrize("where", ["gradients", "test"])
def test_ctrl_c_within_a_step_leaves_the_state_before_it(tmp_path, monkeypatch, where):
    whole = ended(begun(tmp_path, "whole"))
    run = begun(tmp_path)
    steps = run.steps()
    for _ in range(3):
        next(steps)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(run.trainer), where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(steps)
    assert run.state.step == 3
    run.save()
    again = Run(run.setup, run.folder, 4)
    again.resume()
    assert same(ended(again).state, whole.state)


def test_lines_of_later_steps_and_cut_off_lines_do_not_count(tmp_path):
    run = ended(begun(tmp_path, steps=8))
    kept = run.lines()
    for tail in ('{"step": 9, "loss": 1}\n', '{"step": 9, "lo', "[]\n", "\n", "\xff\xfe"):
        text = "".join(json.dumps(line) + "\n" for line in kept)
        run.metrics.write_bytes(text.encode() + tail.encode("latin-1"))
        run.resume()
        assert run.lines() == kept
        assert len(run.metrics.read_bytes().splitlines()) == 8


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    run = begun(tmp_path)
    (run.folder / ".refssm-abc.part").write_bytes(b"half")
    run.resume()
    assert sorted(p.name for p in run.folder.iterdir()) == [
        "checkpoint.safetensors",
        "metrics.jsonl",
    ]


def test_a_second_run_in_the_same_folder_is_refused_and_changes_nothing(tmp_path):
    run = ended(begun(tmp_path, steps=4))
    before = run.checkpoint.read_bytes(), run.metrics.read_bytes()
    with pytest.raises(CheckpointError, match="there is a run; --resume goes on"):
        Run(run.setup, run.folder).begin()
    assert (run.checkpoint.read_bytes(), run.metrics.read_bytes()) == before


def test_a_checkpoint_of_other_settings_names_them(tmp_path):
    run = begun(tmp_path)
    other = Run(setup(steps=13, h=6), run.folder)
    with pytest.raises(CheckpointError, match="steps was 12, now 13; h was 4, now 6"):
        other.resume()


def lengthened(tmp_path, name, stops):
    """A run of 6 steps that goes on to 12; it is stopped at these steps."""
    run = ended(begun(tmp_path, name, steps=6, every=2))
    for stop in (*stops, 12):
        run = Run(setup(steps=12), run.folder, 2)
        run.resume()
        for facts in run.steps():
            if facts["step"] == stop:
                break
    return run


def test_a_run_may_be_made_longer_and_says_how_its_rate_goes_on(tmp_path):
    run = lengthened(tmp_path, "longer", ())
    assert run.schedule() == (
        "from step 7 on this is a run of 12 steps, not 6: the rate follows the half cosine to step "
        "12, and is 0.005 there, not 0"
    )
    rates = [line["rate"] for line in run.lines()]
    plan = run.setup.plan
    short, long = (
        [cosine(k, rate=plan.rate, warm_up=plan.warm_up, steps=steps) for k in range(1, 13)]
        for steps in (6, 12)
    )
    assert rates == short[:6] + long[6:]
    assert begun(tmp_path, "plain").schedule() == ""


def test_a_longer_run_that_is_interrupted_equals_the_uninterrupted_one(tmp_path):
    whole, parts = lengthened(tmp_path, "whole", ()), lengthened(tmp_path, "parts", (7, 10))
    assert same(whole.state, parts.state)
    assert without_times(whole) == without_times(parts)
    assert whole.earlier == parts.earlier == [[6, 6]]
    assert whole.schedule() == parts.schedule()


def test_a_run_is_not_made_shorter_and_nothing_else_changes_with_its_length(tmp_path):
    run = ended(begun(tmp_path, steps=6))
    before = run.checkpoint.read_bytes()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"steps": 5}, "steps was 6, now 5$"),
        ({"steps": 12, "h": 6}, "steps was 6, now 12; h was 4, now 6"),
        ({"steps": 12, "seed": 3}, "steps was 6, now 12; seed was 0, now 3"),
    ]
    for change, sentence in changes:
        with pytest.raises(CheckpointError, match=sentence):
            Run(setup(**change), run.folder).resume()
    assert run.checkpoint.read_bytes() == before


@pytest.mark.parametrize("name", ADDED)
def test_a_checkpoint_that_is_older_than_an_option_has_its_usual_value(tmp_path, name):
    run = begun(tmp_path)
    arrays, facts = checkpoint.read(run.checkpoint)
    del facts["settings"][name], facts["version"]
    checkpoint.write(run.checkpoint, arrays, facts)
    before = run.state
    run.resume()
    assert same(run.state, before)
    for value in OTHERWISE.get(name, ()):
        with pytest.raises(CheckpointError, match=f"{name} was .*, now .*"):
            Run(setup(**{name: value}), run.folder).resume()


@pytest.mark.parametrize("wrong", ["x", 3, [[1]], [["a", 2]]])
def test_shorter_lengths_that_are_none_are_refused(tmp_path, wrong):
    run = begun(tmp_path)
    arrays, facts = checkpoint.read(run.checkpoint)
    del facts["version"]
    checkpoint.write(run.checkpoint, arrays, facts | {"earlier": wrong})
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        run.resume()


@pytest.mark.parametrize("fact", ["step", "generator"])
def test_a_checkpoint_without_its_facts_is_refused(tmp_path, fact):
    run = begun(tmp_path)
    arrays, facts = checkpoint.read(run.checkpoint)
    for wrong in (
        {k: v for k, v in facts.items() if k != fact},
        facts | {fact: "x"},
        facts | {fact: -1},
    ):
        checkpoint.write(run.checkpoint, arrays, {k: v for k, v in wrong.items() if k != "version"})
        with pytest.raises(CheckpointError, match="not a checkpoint"):
            run.resume()


@pytest.mark.long
def test_the_loss_falls_and_the_waves_are_told_apart(tmp_path):
    last = trained(setup(400, norm="layer", dropout=0.1), tmp_path / "run", every=200)
    assert last["step"] == 400
    assert last["loss"] < np.log(CLASSES) / 2  # half of what a guess costs
    assert last["test_accuracy"] > 2 / CLASSES
    assert sorted(last) == sorted(
        ["step", "loss", "accuracy", "gradient", "rate", "test_loss", "test_accuracy", "seconds"]
    )


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_parameter(tmp_path):
    run = begun(tmp_path, norm="layer")
    for _ in zip(range(4), run.steps(), strict=False):
        pass
    good = run.state
    p = {**good.parameters, "decoder.b": np.full(CLASSES, np.nan, np.float32)}
    run.state = replace(good, parameters=p)
    with pytest.raises(Diverged, match=r"^step 5: the gradient of `\S+` is not finite$"):
        ended(run)
    run.resume()
    assert same(run.state, good)
    with pytest.raises(Diverged, match=r"^step 4: the loss on the test set is nan$"):
        run.trainer.test(replace(good, parameters=p))


REFUSED = {
    "task": ({"task": "mnist"}, "unknown task 'mnist'; wanted one of digits, permuted_digits"),
    "layer": ({"layer": "s6"}, f"unknown layer 's6'; wanted one of {', '.join(NAMED)}"),
    "norm": ({"norm": "group"}, "unknown norm 'group'; wanted one of layer, rms, batch"),
    "ops": ({"ops": "tpu"}, "unknown role of operators 'tpu'; wanted one of reference, jit"),
    "size": ({"sizes": {"m": 3}}, "unknown size of s5 'm'; wanted one of n, blocks"),
    "sizes": ({"sizes": {"n": 3, "blocks": 4}}, "blocks"),
    "reading": ({"read": "first"}, "unknown reading 'first'; wanted one of mean, last, each"),
    "each": ({"read": "each"}, "waves has an answer for each signal; wanted mean or last"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_unknown_name_names_the_known_ones(what):
    change, sentence = REFUSED[what]
    with pytest.raises(TrainingError, match=re.escape(sentence)):
        replace(setup(), **change).trainer()


def test_more_examples_than_there_are_and_more_pieces_than_examples_are_refused():
    plan = setup().plan
    for change, sentence in (({"batch": 31}, "has 30 examples"), ({"pieces": 9}, "has 8 examples")):
        with pytest.raises(TrainingError, match=sentence):
            replace(setup(), plan=replace(plan, **change)).trainer()
