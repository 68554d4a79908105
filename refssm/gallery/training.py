"""Curves of training: a panel for each figure, a line for each model, a band over its runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from refssm.gallery.drawing import figure, styled, written

COLOURS = 10  # of Matplotlib's cycle: curves after these are dashed
MOST = 12  # curves whose names fit into a panel; more are named once, below all panels
NAMES = 5  # beside each other, below the panels
DASHES = ("-", "--", ":", "-.")


class Curve(NamedTuple):
    """Values of one or several runs at the same steps."""

    steps: Sequence[int]
    runs: Sequence[Sequence[float]]


class CurvePanel(NamedTuple):
    """Curves with one axis; `logarithmic` for losses."""

    title: str
    curves: Mapping[str, Curve]
    logarithmic: bool = False


def draw(output: Path, panels: Sequence[CurvePanel]) -> Path:
    """Write the picture: the median of the runs, and a band from the least to the largest."""
    most = max(len(panel.curves) for panel in panels)
    lines = -(-most // NAMES) if most > MOST else 0
    with styled():
        made, axes = figure(1, len(panels), (4.4 * len(panels), 3.6 + 0.16 * lines))
        for axis, panel in zip(axes[0], panels, strict=True):
            for i, (label, curve) in enumerate(panel.curves.items()):
                values = list(zip(*curve.runs, strict=True))
                style = {"linewidth": 1.1, "linestyle": DASHES[i // COLOURS % len(DASHES)]}
                axis.plot(curve.steps, [median(v) for v in values], label=label, **style)
                if len(curve.runs) > 1:
                    low, high = [min(v) for v in values], [max(v) for v in values]
                    axis.fill_between(curve.steps, low, high, color=f"C{i}", alpha=0.15, lw=0)
            axis.set_title(panel.title)
            axis.set_xlabel("step")
            if panel.logarithmic:
                axis.set_yscale("log")
            if len(panel.curves) > 1 and not lines:
                axis.legend(frameon=False, fontsize=7.5)
        if lines:
            named = axes[0, 0].get_legend_handles_labels()
            made.legend(*named, loc="outside lower center", ncols=NAMES, frameon=False, fontsize=7)
        return written(made, output)


def of_run(lines: Sequence[Mapping]) -> list[CurvePanel]:
    """The panels of one run, from the lines of its metrics."""
    tests = [line for line in lines if "test_loss" in line]

    def curves(name: str) -> dict[str, Curve]:
        return {
            "each batch": Curve([s["step"] for s in lines], [[s[name] for s in lines]]),
            "test": Curve([s["step"] for s in tests], [[s[f"test_{name}"] for s in tests]]),
        }

    loss = {n: c for n, c in curves("loss").items() if all(v > 0 for v in c.runs[0])}
    name = "error" if lines and "error" in lines[0] else "accuracy"
    return [CurvePanel("loss", loss, logarithmic=True), CurvePanel(name, curves(name))]


def of_groups(groups: Mapping[str, Sequence], curve: Callable) -> list[CurvePanel]:
    """The panels of the tests of several groups of runs; `curve(runs, name)` gives steps and values
    of all runs of a group. A task without accuracies has errors, in a panel of their own."""
    names = {
        run: next(n for n in ("accuracy", "error") if f"test_{n}" in runs[0].tests[0])
        for run, runs in groups.items()
    }
    panels = [CurvePanel("loss on the test set", _curves(groups, "loss", curve), True)]
    for name in dict.fromkeys(names.values()):
        its = {label: runs for label, runs in groups.items() if names[label] == name}
        panels.append(CurvePanel(f"{name} on the test set", _curves(its, name, curve)))
    return panels


def _curves(groups: Mapping[str, Sequence], name: str, curve: Callable) -> dict[str, Curve]:
    return {label: Curve(*curve(runs, f"test_{name}")) for label, runs in groups.items()}
