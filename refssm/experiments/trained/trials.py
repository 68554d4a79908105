"""Models that an experiment trains: each a run in a folder of its own, which is resumed or read.

A trial has a name in the experiment's tables; trials with one name differ in their seed only.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from refssm.experiments.digits import in_turn
from refssm.training import checkpoint
from refssm.training.card import count
from refssm.training.folders import read
from refssm.training.loop import Plan, Trainer, TrainingState
from refssm.training.run import Run, trained
from refssm.training.setup import Setup

EVERY = 50  # steps between two tests


class PlannedRun(NamedTuple):
    """One model to train, and the row of the tables that it belongs to."""

    name: str
    setup: Setup


class TrainedRun(NamedTuple):
    """One trained model: its tests, from first to last, its size and time."""

    name: str
    seed: int
    parameters: int
    seconds: float
    tests: list[dict[str, Any]]  # step, loss of the batch, loss and accuracy or error of the test
    folder: Path = Path()  # where its checkpoint is
    setup: Setup | None = None

    def last(self, figure: str = "test_accuracy") -> float:
        """A figure of the last test."""
        return float(self.tests[-1][figure])


def restored(run: TrainedRun) -> tuple[Trainer, TrainingState]:
    """The trainer of a run, and the state of its checkpoint."""
    assert run.setup is not None
    again = Run(run.setup, run.folder)
    again.resume()
    return again.trainer, again.state


def with_seeds(trials: Iterable[PlannedRun], seeds: Iterable[int]) -> list[PlannedRun]:
    """Each trial with each seed."""
    seeds = [*seeds]
    return [
        PlannedRun(name, replace(setup, plan=replace(setup.plan, seed=seed)))
        for name, setup in trials
        for seed in seeds
    ]


def of_length(plan: Plan, quick: bool) -> Plan:
    """The plan, or one of a few steps that shows no more than that all runs."""
    return replace(plan, steps=6, batch=10, warm_up=2) if quick else plan


def tried(
    trials: Sequence[PlannedRun], folder: Path, *, each=in_turn, track=iter
) -> list[TrainedRun]:
    """Train each trial in its folder, or go on where it was stopped, or read what is there."""
    tasks = [(trial, folder) for trial in trials]
    found = {(run.name, run.seed): run for run in track(each(one, tasks))}
    return [found[t.name, t.setup.plan.seed] for t in trials]


def one(trial: PlannedRun, folder: Path) -> TrainedRun:
    """One trial; its folder says its name in the tables and its seed."""
    setup = trial.setup
    own = folder / f"{trial.name.replace(' ', '_').replace('/', '_')}-{setup.plan.seed}"
    trained(setup, own, resume=True, every=EVERY)
    stored = read(own)
    lines = (own / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = sum(json.loads(line)["seconds"] for line in lines)  # of earlier processes, too
    arrays, _ = checkpoint.read(own / "checkpoint.safetensors")
    parameters = count({n: a for n, a in arrays.items() if n.startswith("parameters.")})
    tests = [*map(dict, stored.tests)]
    return TrainedRun(trial.name, setup.plan.seed, parameters, seconds, tests, own, setup)


def by_name(runs: Sequence[TrainedRun]) -> dict[str, list[TrainedRun]]:
    """The runs of each row."""
    return {
        name: [r for r in runs if r.name == name] for name in dict.fromkeys(r.name for r in runs)
    }


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean, standard deviation and range."""
    told = f"{mean(values):.{digits}f}"
    if len(values) < 2:
        return told
    ends = f"{min(values):.{digits}f} to {max(values):.{digits}f}"
    return f"{told} ± {stdev(values):.{digits}f} ({ends})"


def ahead(one: Sequence[float], other: Sequence[float]) -> bool:
    """True if the means differ by more than the standard errors of both together say."""
    gap = mean(one) - mean(other)
    if min(len(one), len(other)) < 2:
        return gap > 0
    error = (stdev(one) ** 2 / len(one) + stdev(other) ** 2 / len(other)) ** 0.5
    return gap > 2 * error


def curve(runs: Sequence[TrainedRun], name: str) -> tuple[list[int], list[list[float]]]:
    """The steps and values of the tests of some runs."""
    return [t["step"] for t in runs[0].tests], [[t[name] for t in r.tests] for r in runs]
