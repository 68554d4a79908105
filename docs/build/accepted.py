"""Errors of some programs along time, under the bound K0 and under what the judge accepts.

Everything is in units of the roundoff u. What is drawn is computed by `docs.build.pictures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from refssm.gallery.drawing import figure, styled, written

FOOT = 0.01  # smaller errors are drawn here
MARKS = {"o": "#2b6a99", "^": "#5b9a57", "x": "#c23b22"}
LABELS = ("accepted: 16 K0", "K0", "|x|, the value itself")


class Errors(NamedTuple):
    """One output along time, the bound of its error, and the errors of some programs."""

    value: np.ndarray
    k0: np.ndarray
    programs: Mapping[str, np.ndarray]  # by the words of the legend


def draw(output: Path, seen: Errors, room: float = 16.0) -> Path:
    """Write the picture as a PNG or SVG file."""
    with styled():
        made, axes = figure(1, 1, (6.4, 3.6))
        axis, steps = axes[0, 0], np.arange(seen.value.size)
        accepted, bound, value = LABELS
        axis.fill_between(steps, FOOT, room * seen.k0, color="#eef3e6", linewidth=0)
        axis.plot(steps, room * seen.k0, color="#333333", linewidth=1.2, label=accepted)
        axis.plot(steps, seen.k0, color="#333333", linewidth=1.0, linestyle="--", label=bound)
        axis.plot(steps, np.abs(seen.value), color="#999999", linewidth=0.8, label=value)
        of_programs = zip(MARKS.items(), seen.programs.items(), strict=True)
        for order, ((mark, colour), (words, errors)) in enumerate(of_programs):
            how = {"color": colour, "markersize": 2.8, "zorder": 9 - order}  # the first on top
            axis.plot(steps, np.maximum(errors, FOOT), mark, label=words, **how)
        axis.set_yscale("log")
        axis.set_ylim(FOOT / 2, 1e10)
        axis.set_xlim(0, seen.value.size)
        axis.set_xlabel("step")
        axis.set_ylabel("error in units of u")
        axis.legend(fontsize=7.5, loc="upper left", frameon=False, ncols=2)
        return written(made, output)
