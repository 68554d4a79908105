"""Tables of layers in `docs/layers/<name>.md`, from the declarations: `make tables` writes them.

The table that begins with `| parameter |` has one row for each parameter. In the table that begins
with `| | |` this program writes the rows sizes and numbers; people write all others.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import takewhile
from pathlib import Path

import numpy as np

from refssm.layers import Layer
from refssm.layers.catalog import LAYERS

FOLDER = Path("docs/layers")
FACTS = "| | |\n|---|---|\n"
PARAMETERS = "| parameter | shape | group | starts as |\n|---|---|---|---|\n"
CHANNELS = 128  # where numbers are counted


def page(text: str, layer: Layer) -> str:
    """The page, with the layer's tables replaced."""
    return _replaced(_replaced(text, FACTS, _facts(layer)), PARAMETERS, _parameters(layer))


def _replaced(text: str, head: str, rows: dict[str, str]) -> str:
    """The table under `head` with these rows; rows of other names stay where they are, if the table
    has facts, and go if it lists parameters."""
    before, found, rest = text.partition(head)
    if not found:
        return text
    lines = [*takewhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))]
    after = rest.removeprefix("".join(lines))
    old = dict(line.strip()[2:-2].split(" | ", 1) for line in lines)
    cells = old | rows if head == FACTS else rows
    return before + head + "".join(f"| {name} | {cell} |\n" for name, cell in cells.items()) + after


def _facts(layer: Layer) -> dict[str, str]:
    """Usual sizes, and how many real numbers the parameters have with them."""
    p = layer.init(np.random.default_rng(0), h=CHANNELS, **layer.sizes)
    count = sum(a.size * (1 + np.iscomplexobj(a)) for a in p.arrays().values())
    sizes = ", ".join(f"`{name}={size}`" for name, size in layer.sizes.items())
    return {"sizes": sizes, "numbers": f"{count} with these sizes and `h={CHANNELS}`"}


def _parameters(layer: Layer) -> dict[str, str]:
    """One row for each parameter: shape, group in AdamW, initial value."""
    found = {}
    for one in fields(layer.kind):
        told = one.metadata
        start = told["start"].replace("|", "\\|")
        found[f"`{one.name}`"] = f"`({', '.join(told['shape'])})` | {told['group']} | {start}"
    return found


def write() -> None:
    """Write the tables of every page, in the current folder."""
    for layer in LAYERS:
        path = FOLDER / f"{layer}.md"
        path.write_text(page(path.read_text(encoding="utf-8"), layer), encoding="utf-8")
