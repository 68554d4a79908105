from pathlib import Path

import pytest

from docs.build import layer_tables
from refssm.layers.catalog import LAYERS, NAMED

FOLDER = Path(__file__).parents[2] / layer_tables.FOLDER


def text(layer):
    return (FOLDER / f"{layer}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_a_layer_has_a_page_whose_tables_are_what_its_declaration_says(layer):
    assert text(layer).startswith(f"# The layer `{layer}`\n")
    assert layer_tables.page(text(layer), layer) == text(layer)  # make tables
    for part in (layer_tables.FACTS, layer_tables.PARAMETERS, "| state | ", f"[{layer.source}"):
        assert part in text(layer)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_the_page_of_a_layer_names_every_option_of_its_start(layer):
    (row,) = [line for line in text(layer).splitlines() if line.startswith("| options |")]
    assert all(f"`{name}`" in row for name in layer.starts)
    assert layer.starts or row == "| options | none |"


def test_every_page_is_of_a_layer():
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == sorted(NAMED)


def test_a_wrong_row_is_replaced_and_what_people_wrote_stays():
    wrong = text("rnn").replace("| `b_x` | `(n)`", "| `b_y` | `(h)`").replace("`n=64`", "`n=7`")
    assert wrong != text("rnn")
    assert layer_tables.page(wrong, NAMED["rnn"]) == text("rnn")
