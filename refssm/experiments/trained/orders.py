"""Tables and sentences about an order of models: which is ahead of which, by how much."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean

from refssm.experiments.claims import Finding
from refssm.experiments.systems import Table
from refssm.experiments.trained.trials import TrainedRun, ahead, by_name, curve, spread
from refssm.gallery.training import draw as drawn
from refssm.gallery.training import of_groups

HEAD = ("model", "mean ± deviation (range)", "real numbers")


def unchanged(runs: Sequence[TrainedRun]) -> Sequence[TrainedRun]:
    """`measured` of an experiment whose tests say all."""
    return runs


def accuracies(title: str, runs: Sequence[TrainedRun]) -> Table:
    """Test accuracy in percent, and size, of each model."""
    return _table(f"{title}: test accuracy in %", runs, lambda r: 100 * r.last(), 1)


def errors(title: str, runs: Sequence[TrainedRun]) -> Table:
    """The error on the test set, relative to that of the answer 0."""
    return _table(f"{title}: test error", runs, lambda r: r.last("test_error"), 3)


def _table(title, runs: Sequence[TrainedRun], figure: Callable, digits: int) -> Table:
    rows = []
    for name, group in by_name(runs).items():
        told = spread([figure(r) for r in group], digits)
        rows.append((name, told, str(group[0].parameters)))
    return Table(title, HEAD, rows)


def in_order(runs: Sequence[TrainedRun], *names: str) -> list[Finding]:
    """Whether each of these is ahead of the next one in accuracy, by twice the standard error."""
    return _in_order(runs, names, lambda r: 100 * r.last(), "{:.1f} %")


def in_order_of_errors(runs: Sequence[TrainedRun], *names: str) -> list[Finding]:
    """Whether each of these has a smaller error than the next one."""
    return _in_order(runs, names, lambda r: r.last("test_error"), "{:.3f}", best=-1)


def _in_order(runs, names, figure: Callable, told: str, best: int = 1) -> list[Finding]:
    """The same of any figure, of which the largest is best, or the smallest (−1)."""
    groups, found = by_name(runs), []
    for pair in pairwise(names):
        x, y = ([figure(r) for r in groups[name]] for name in pair)
        held = ahead([best * v for v in x], [best * v for v in y])
        (better, its), (worse, other) = zip(
            pair, (told.format(mean(v)) for v in (x, y)), strict=True
        )
        verb = "is ahead of" if held else "is not ahead of"
        found.append(Finding(held, f"{better} ({its}) {verb} {worse} ({other})"))
    return found


def curves(output: Path, runs: Sequence[TrainedRun]) -> Path:
    """Loss and figure on the test set against steps."""
    return drawn(output, of_groups(by_name(runs), curve))
