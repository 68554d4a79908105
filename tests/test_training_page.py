"""The page about training: what is generated is that of the stored runs, what is said is so."""

import inspect
import json
import re
from pathlib import Path

import pytest

from refssm.command import train
from refssm.layers.catalog import LAYERS
from refssm.training.optimizer import GROUPS
from refssm.training.setup import starts_of
from refssm.training.tasks import TASKS
from refssm.training.tasks.catalog import sizes_of

pytest.importorskip("matplotlib")

from docs.build import curves
from refssm.experiments import digits

ROOT = Path(__file__).parent.parent


@pytest.fixture
def text(monkeypatch):
    monkeypatch.chdir(ROOT)
    return curves.PAGE.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_stored_runs(text):
    stored = json.loads(curves.RUNS.read_text(encoding="utf-8"))
    assert text == curves.page(text, curves.written(stored))  # make experiments-quick
    runs = [(run["layer"], run["seed"]) for run in stored["runs"]]
    assert runs == [(layer, seed) for layer in digits.NAMES for seed in range(digits.SEEDS)]


def test_the_picture_shows_every_layer(text):
    drawn = curves.PICTURE.read_text(encoding="utf-8")
    assert all(f">{layer}</text>" in drawn for layer in digits.NAMES)


def test_every_option_is_on_the_page_and_explained_in_one_line(text):
    named = {"layer": "--layer", "dask": "--dask", "h": "--h", "ops": "--ops"}
    for name in inspect.signature(train.train).parameters:
        if name != "task":
            assert f"`{named.get(name, '--' + name.replace('_', '-'))}" in text, name


def test_every_layer_is_in_the_table_of_starts_with_the_options_it_knows(text):
    table = text.partition("| layers | options |\n")[2].partition("\n\n")[0]
    found = {}
    for row in table.splitlines()[1:]:
        layers, options = (re.findall(r"`(\w+)`", cell) for cell in row.strip("|").split("|"))
        found |= dict.fromkeys(layers, options)
    assert found == {layer.name: [*starts_of(layer)] for layer in LAYERS}
    assert {name for names in found.values() for name in names} == set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", options_of(text), re.M)))
    )


def options_of(text):
    """The table that explains the options of a start."""
    return text.partition("| option | values |\n|---|---|\n")[2].partition("\n\n")[0]


def test_every_task_and_every_group_is_on_the_page(text):
    for name in TASKS:
        if name != "waves":  # a task of the tests
            (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
            sizes = re.findall(r"`(\w+)=(\d+)`", row)
            assert {size: int(value) for size, value in sizes} == sizes_of(TASKS[name])
    rows = dict(
        re.findall(
            r"^\| (weights|plain|system|fixed) \|.*\| (0|1|1/4) \| (?:yes|no) \|$", text, re.M
        )
    )
    assert rows == {name: {0.25: "1/4", 0.0: "0"}.get(g.rate, "1") for name, g in GROUPS.items()}
    decays = dict(re.findall(r"^\| (weights|plain|system|fixed) \|.*\| (yes|no) \|$", text, re.M))
    assert decays == {name: "yes" if g.decay else "no" for name, g in GROUPS.items()}
