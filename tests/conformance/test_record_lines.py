"""JSON with one record a line: what it looks like, and the same content for every reader."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from refssm.bench.results import document
from refssm.conformance.record_lines import record_lines

DOCS = Path(__file__).parents[2] / "docs"
RUNS = sorted([*DOCS.glob("benchmarks*.json"), DOCS / "training_steps.json"])
DOCUMENT = {
    "seed": 0,
    "cases": [
        {"name": "ā", "inputs": {"a": {"shape": [2], "values": [1, None]}, "b": {}}},
        {"name": "without inputs", "of": {"deep": {"inputs": []}}},
        {"inputs": {}},
    ],
    "none": [],
}
TEXT = """\
{
 "seed": 0,
 "cases": [
  {
   "name": "ā",
   "inputs": {
    "a": {"shape": [2], "values": [1, null]},
    "b": {}
   }
  },
  {"name": "without inputs", "of": {"deep": {"inputs": []}}},
  {
   "inputs": {}
  }
 ],
 "none": []
}
"""


def test_each_item_of_a_named_list_has_its_own_line():
    assert record_lines(DOCUMENT, ("cases", "inputs")) == TEXT
    assert json.loads(TEXT) == DOCUMENT


@pytest.mark.parametrize("lists", [(), ("name", "shape"), ("seed", "values", "none", "deep")])
def test_the_content_is_the_same_whatever_is_named(lists):
    assert json.loads(record_lines(DOCUMENT, lists)) == DOCUMENT


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_a_stored_run_has_one_program_a_line(path):
    text = path.read_text(encoding="utf-8")
    run = json.loads(text)
    assert text == record_lines(run, document.LISTS)
    rows = [row for work in run["works"] for row in work["rows"]]
    assert len(rows) == sum(line.lstrip().startswith('{"label": ') for line in text.splitlines())


def test_the_stored_training_has_one_run_a_line(monkeypatch):
    pytest.importorskip("matplotlib")
    curves = import_module("docs.build.curves")
    monkeypatch.chdir(DOCS.parent)
    text = curves.RUNS.read_text(encoding="utf-8")
    assert text == curves.text(json.loads(text))
