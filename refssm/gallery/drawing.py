"""Helpers of the pictures: figures without a window, files that are complete or absent."""

import io
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

STYLE: Any = {
    "svg.hashsalt": "refssm",  # otherwise ids in the file are random
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
NO_METADATA: Any = dict.fromkeys(("Creator", "Date", "Format", "Type"))
METADATA = {".svg": {"Date": None, "Creator": "refssm"}, ".png": {"Software": None}}


def styled(more: Mapping = MappingProxyType({})):
    """A context with the style of all pictures, for drawing and writing."""
    return matplotlib.rc_context(STYLE | more)


def figure(rows: int, columns: int, size: tuple[float, float], **how):
    """A figure and its axes, rows × columns."""
    made = Figure(figsize=size, layout="constrained", dpi=90)
    FigureCanvasAgg(made)
    return made, made.subplots(rows, columns, squeeze=False, **how)


def written(made: Figure, output: Path) -> Path:
    """Write the figure to a temporary name, then rename: an interrupted run leaves no file."""
    handle, name = tempfile.mkstemp(suffix=output.suffix, prefix=".refssm-", dir=output.parent)
    os.close(handle)
    try:
        made.savefig(name, metadata=METADATA[output.suffix])
        if output.suffix == ".svg":
            text = one_element_a_line(Path(name).read_text(encoding="utf-8"))
            Path(name).write_text(text, encoding="utf-8", newline="\n")
        os.chmod(name, 0o644)
        os.replace(name, output)
    finally:
        Path(name).unlink(missing_ok=True)
    return output


def one_element_a_line(text: str) -> str:
    """An SVG file of matplotlib with each element of the axes, and all its points, on one line.

    matplotlib writes each point and each mark on a line of its own: thousands of lines.
    """
    text = re.sub(r"\s*\n(?=[^ <])", " ", text)  # between the points of a path
    return re.sub(r"\n {4,}(?=<)|\n {3}(?=</)", "", text)  # within an element of the axes


def inline(made: Figure, name: str, variables: Mapping[str, str]) -> str:
    """The figure as an `<svg>` element inside a page, which sets its size and colours.

    Its ids begin with `name`, so several fit in one page; each colour in `variables` becomes that
    CSS variable. It refers to nothing outside of itself.
    """
    buffer = io.StringIO()
    made.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    head, end, body = text.partition(">")
    view = re.search(r'viewBox="[^"]*"', head)
    assert view is not None
    text = f"<svg {view.group()}{end}{body}".replace("xlink:href", "href")
    text = re.sub(r" font-family: [^;]+;", "", text)  # use the page's font
    text = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', text)
    text = re.sub(r'(url\(|href=")#', rf"\1#{name}-", text)
    for colour, variable in variables.items():
        text = text.replace(colour, f"var({variable})")
    return text.strip()
