"""The model card of a run: what was trained, how, with which result; as Markdown."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from refssm import __version__
from refssm.training.loop import TrainingState
from refssm.training.setup import Setup
from refssm.training.tasks import Task

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "safetensors")


def card(
    setup: Setup,
    state: TrainingState,
    lines: Sequence[Mapping[str, Any]],
    command: str,
    task: Task,
    schedule: str = "",
) -> str:
    """The card of a run with these metrics; `command` is what the user typed, `schedule` what is
    said of a run that was made longer."""
    parts = [
        f"# {setup.layer} on {setup.task}, seed {setup.plan.seed}",
        f"Trained by refssm {__version__} for {state.step} of {setup.plan.steps} steps:",
        f"```\n{command}\n```",
        "## Results",
        table(("figure", "value"), [*_figures(lines), *_marks(task)]),
        "## Settings",
        table(("setting", "value"), [(n, _told(v)) for n, v in setup.facts().items()]),
        "## Parameters",
        _sizes(state),
        "## Versions",
        table(("library", "version"), _versions()),
        f"Limits: {limits(task)}; it shows that training works, no more.",
    ]
    if schedule:
        parts.append(f"This run was made longer: {schedule}.")
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in lines)


def limits(task: Task) -> str:
    """Where the examples come from."""
    if task.draw is None:
        return "one data set of one source, one split"
    return f"generated examples of one distribution, {len(task.test_labels)} in the test"


def figure_of(facts: Mapping[str, Any]) -> tuple[str, float]:
    """Name and value of what is read beside the loss: the accuracy, or the error of real answers
    relative to that of the answer 0."""
    name = "error" if "error" in facts else "accuracy"
    return name, facts[name]


def _marks(task: Task) -> list[tuple[str, str]]:
    """What the figure of the test is compared with."""
    return [(name, f"{value:.4f}") for name, value in task.marks.items()]


def count(arrays: Mapping[str, Any]) -> int:
    """Real numbers in all arrays; a complex number counts twice."""
    return sum(a.size * (2 if a.dtype.kind == "c" else 1) for a in arrays.values())


def _figures(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    tests = [line for line in lines if "test_loss" in line]
    seconds = sum(line.get("seconds", 0.0) for line in lines)
    rows = [("steps per second", f"{len(lines) / seconds:.1f}")] if seconds else []
    rows += [("minutes", f"{seconds / 60:.1f}")] if seconds else []
    if tests:
        last = tests[-1]
        name, _ = figure_of(last)
        rows = [
            (f"test {name}", f"{last[f'test_{name}']:.4f}"),
            ("test loss", f"{last['test_loss']:.4f}"),
            ("loss of the last batch", f"{last['loss']:.4f}"),
            *rows,
        ]
    return rows


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{n} = {v}" for n, v in value.items()) or "usual"
    return str(value)


def _sizes(state: TrainingState) -> str:
    """The number of parameters, and those of every part."""
    groups: dict[str, dict[str, Any]] = {}
    for name, a in state.parameters.items():
        head = name.split(".")
        key = ".".join(head[:3]) if head[0] == "blocks" else head[0]
        groups.setdefault(key, {})[name] = a
    rows = [(key, str(count(arrays))) for key, arrays in groups.items()]
    return table(("part", "real numbers"), [*rows, ("all", str(count(state.parameters)))])


def _versions() -> list[tuple[str, str]]:
    rows = [("Python", platform.python_version()), ("refssm", __version__)]
    for name in LIBRARIES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "not installed"))
    return rows
