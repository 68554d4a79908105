"""Training runs as a user sees them: progress, lines, errors as one sentence, pictures, cards."""

from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import typer

from refssm.command.saying import say
from refssm.command.spoken import StepsBar
from refssm.conformance.usage_error import UsageError
from refssm.training import checkpoint
from refssm.training.card import card, figure_of
from refssm.training.loop import Diverged
from refssm.training.run import Run, trained
from refssm.training.setup import Setup
from refssm.training.tasks import TrainingError

FAILED, INTERRUPTED = 1, 2


def in_turn(setups: Sequence[Setup], folder: Path, resume: bool, every: int, command: str) -> int:
    """Train one after the other, with progress; the exit code."""
    runs = [_made(setup, folder, resume, every) for setup in setups]
    if resume and not any(run.checkpoint.exists() for run in runs):
        raise UsageError(f"--resume: {runs[0].checkpoint}: there is no checkpoint")
    codes = []
    for run in runs:
        codes.append(_Shown(run, command).go(resume))
        if codes[-1] == INTERRUPTED:
            return INTERRUPTED
    _summary([run.lines() for run in runs])
    return max(codes)


def _made(setup: Setup, folder: Path, resume: bool, every: int) -> Run:
    """A run, refused before anything is computed if another one is in its folder."""
    run = Run(setup, folder / setup.name, every)
    if not resume:
        run.check_new()
    return run


class _Shown:
    """One run with its progress on a terminal, and a line for every test."""

    def __init__(self, run: Run, command: str):
        self.run, self.command = run, command
        self.bar = StepsBar(run.setup.name, run.setup.plan.steps)

    def go(self, resume: bool) -> int:
        """Train to the end; 2 after Ctrl-C, 1 if the loss is not finite."""
        run = self.run
        try:
            if resume and run.checkpoint.exists():
                run.resume()
                if run.schedule() and run.state.step < run.setup.plan.steps:
                    typer.echo(f"{run.setup.name}: {run.schedule()}")
            else:
                run.begin()
            return self._steps()
        except OSError as error:
            told = f"{error.filename or run.folder}: {error.strerror}; {_stays(run)}"
            raise UsageError(told) from None

    def _steps(self) -> int:
        run = self.run
        try:
            with self.bar, closing(run.steps()) as steps:
                for facts in steps:
                    self.tell(facts)
            finish(run, self.command)
        except KeyboardInterrupt:
            run.save()
            say(
                f"interrupted at step {run.state.step}: {run.checkpoint} is saved; --resume goes on"
            )
            return INTERRUPTED
        except Diverged as error:
            say(f"{run.setup.name}: {error}; {_stays(run)}")
            return FAILED
        return 0

    def tell(self, facts: dict[str, Any]) -> None:
        """Show the step; print a line if there was a test."""
        self.bar.tick(facts["step"], facts["loss"], *figure_of(facts))
        if "test_loss" in facts:
            self.bar.hide()
            typer.echo(f"{self.run.setup.name}: step {facts['step']}: {_told(facts)}")


def _told(facts: dict[str, Any]) -> str:
    name, _ = figure_of(facts)
    return f"loss {facts['loss']:.4f}, test {name} {facts[f'test_{name}']:.4f}"


def _stays(run: Run) -> str:
    """What is left after a failure."""
    try:
        step = checkpoint.read(run.checkpoint)[1].get("step")
    except checkpoint.CheckpointError:
        return "there is no checkpoint"
    return f"the checkpoint of step {step} stays"


def finish(run: Run, command: str) -> None:
    """Write the card and, where matplotlib is, the picture."""
    lines = run.lines()
    text = card(run.setup, run.state, lines, command, run.trainer.task, run.schedule())
    checkpoint.write_whole(run.folder / "card.md", text.encode())
    files = ["checkpoint.safetensors", "metrics.jsonl", "card.md"]
    if find_spec("matplotlib") is not None and lines:
        from refssm.gallery import training as gallery

        gallery.draw(run.folder / "curves.svg", gallery.of_run(lines))
        files.append("curves.svg")
    typer.echo(f"{run.folder}: {', '.join(files)}")


def spread(
    setups: Sequence[Setup], folder: Path, resume: bool, every: int, command: str,
    workers: int, address: str | None,
) -> int:  # fmt: skip
    """Train in several processes, here or on a cluster; the exit code."""
    from refssm.command.spoken import ProgressBar
    from refssm.conformance.spreading.crew import local
    from refssm.conformance.spreading.processes import remote

    runs = {setup.name: _made(setup, folder, resume, every) for setup in setups}
    if resume and not any(run.checkpoint.exists() for run in runs.values()):
        raise UsageError(f"--resume: {folder}: there is no checkpoint of these runs")
    tasks = [(run.setup, run.folder, resume, every) for run in runs.values()]
    failed, bar, done = [], ProgressBar(), 0
    try:
        with remote(address) if address is not None else local(workers) as crew, bar:
            bar.tick("training", 0, len(tasks))
            for name, facts, sentence in crew.each(attempted, tasks):
                done += 1
                bar.hide()
                if facts is None:
                    failed.append(name)
                    say(f"{name}: {sentence}")
                else:
                    typer.echo(f"{name}: step {facts['step']}: {_told(facts)}")
                bar.tick("training", done, len(tasks))
    except KeyboardInterrupt:
        say("interrupted: --resume goes on from the last checkpoints")
        return INTERRUPTED
    _close([run for name, run in runs.items() if name not in failed], command)
    return FAILED if failed else 0


def _close(runs: Sequence[Run], command: str) -> None:
    """Pictures, cards and the summary of runs that other processes did."""
    for run in runs:
        if not run.checkpoint.exists():
            raise UsageError(
                f"{run.checkpoint}: not here: workers of a cluster must see the folder of --folder"
            )
        run.resume()
        if run.schedule():
            typer.echo(f"{run.setup.name}: {run.schedule()}")
        finish(run, command)
    _summary([run.lines() for run in runs])


def attempted(
    setup: Setup, folder: Path, resume: bool, every: int
) -> tuple[str, dict[str, Any] | None, str]:
    """A run in this process: its name and its last facts, or why there are none."""
    try:
        return setup.name, trained(setup, folder, resume, every), ""
    except (Diverged, TrainingError) as error:
        return setup.name, None, str(error)
    except OSError as error:
        return setup.name, None, f"{error.filename or folder}: {error.strerror}"


def _summary(runs: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Mean and spread of several seeds."""
    ends = [lines[-1] for lines in runs if lines and "test_loss" in lines[-1]]
    if len(ends) > 1:
        name, _ = figure_of(ends[0])
        found = [end[f"test_{name}"] for end in ends]
        least = f"least {min(found):.4f}, largest {max(found):.4f}"
        typer.echo(
            f"test {name} of {len(found)} seeds: {mean(found):.4f} ± {stdev(found):.4f}, {least}"
        )
