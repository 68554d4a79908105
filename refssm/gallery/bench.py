"""Accuracy against time: a panel for each operator, all implementations in it.

Right is slower, up is more correct bits. What is drawn is computed by `refssm.bench`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from matplotlib.ticker import NullFormatter

from refssm.gallery.drawing import figure, styled, written

COLUMNS = 3
STYLES = {
    "reference": ("s", "#777777"),
    "mirror": ("o", "#2b6a99"),
    "GPU mirror": ("P", "#3f8f5b"),
    "peer": ("^", "#c98a1b"),
    "yours": ("D", "#c23b22"),
}


class Point(Protocol):
    """One implementation: its median and quartiles in seconds, and its correct bits."""

    @property
    def label(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def bits(self) -> float: ...


class Panel(Protocol):
    """One work: its implementations, and the bits that its type has."""

    @property
    def title(self) -> str: ...
    @property
    def digits(self) -> int: ...
    @property
    def points(self) -> Sequence[Point]: ...


def draw(output: Path, panels: Sequence[Panel]) -> Path:
    """Write the picture as a PNG or SVG file."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with styled():
        made, axes = figure(rows, columns, (4.2 * columns, 3.0 * rows))
        for axis, panel in zip(axes.flat, panels, strict=False):
            _panel(axis, panel)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        return written(made, output)


def _panel(axis, panel: Panel) -> None:
    for point in panel.points:
        mark, colour = STYLES[point.kind]
        spread = [[point.seconds - point.low], [point.high - point.seconds]]
        how = {"color": colour, "markersize": 5.0, "elinewidth": 1.0}
        axis.errorbar([point.seconds], [point.bits], xerr=spread, fmt=mark, **how)
        place = {"textcoords": "offset points", "xytext": (5, 4), "fontsize": 6.5}
        axis.annotate(point.label, (point.seconds, point.bits), color=colour, **place)
    axis.axhline(panel.digits, color="#999999", linewidth=0.8, linestyle="--")
    axis.set_xscale("log")
    fastest = min(point.low for point in panel.points)
    slowest = max(point.high for point in panel.points)
    axis.set_xlim(fastest / 2, max(8 * slowest, 12 * fastest))  # room for labels, and a decade
    axis.xaxis.set_minor_formatter(NullFormatter())
    lowest = min(point.bits for point in panel.points)
    axis.set_ylim(min(lowest, panel.digits - 6) - 1, panel.digits + 1.5)
    axis.set_title(panel.title, fontsize=8.5)
    axis.set_xlabel("seconds")
    axis.set_ylabel("correct bits of the largest entry")
