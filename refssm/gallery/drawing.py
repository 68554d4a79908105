"""What the pictures share: figures without a window, files that are whole or not there at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

STYLE: Any = {
    "svg.hashsalt": "refssm",  # else the identifiers in the file are random
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
METADATA = {".svg": {"Date": None, "Creator": "refssm"}, ".png": {"Software": None}}


def styled():
    """The style of all pictures, while they are made and while they are written."""
    return matplotlib.rc_context(STYLE)


def figure(rows: int, columns: int, size: tuple[float, float]):
    """A figure and its axes, rows × columns."""
    made = Figure(figsize=size, layout="constrained", dpi=90)
    FigureCanvasAgg(made)
    return made, made.subplots(rows, columns, squeeze=False)


def written(made: Figure, output: Path) -> Path:
    """Write the figure under another name and rename it: interrupted, it leaves nothing."""
    handle, name = tempfile.mkstemp(suffix=output.suffix, prefix=".refssm-", dir=output.parent)
    os.close(handle)
    try:
        made.savefig(name, metadata=METADATA[output.suffix])
        os.chmod(name, 0o644)
        os.replace(name, output)
    finally:
        Path(name).unlink(missing_ok=True)
    return output
