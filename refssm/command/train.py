"""`refssm train`: train a model of one kind of layer on a task, without autodiff."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

EVERY = 100  # steps between two tests, each followed by a checkpoint
ROLES = ("reference", "jit", "gpu")
FAILED, INTERRUPTED = 1, 2

TaskName = Annotated[str, typer.Argument(help="The task: digits or permuted_digits.")]
LayerName = Annotated[str, typer.Option("--layer", help="The layer: s4, s4d, s5, mamba, …")]
Steps = Annotated[int, typer.Option(min=1, help="Steps of the optimizer.")]
Role = Annotated[str, typer.Option("--ops", help="Operators: reference, jit or gpu.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of parameters, batches and dropout.")]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Where checkpoint and metrics are written.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in the folder.")]


def train(
    task: TaskName,
    layer: LayerName = "s5",
    steps: Steps = 2000,
    ops: Role = "jit",
    seed: Seed = 0,
    folder: Folder = None,
    resume: Resume = False,
) -> int:
    """Train a model on a task; Ctrl-C saves, and --resume goes on."""
    from refssm.layers import operators
    from refssm.layers.catalog import NAMED
    from refssm.layers.model import Model
    from refssm.training.loop import Plan, Trainer
    from refssm.training.tasks import TASKS

    found = _known(task, TASKS, "task")()
    kind = _known(layer, NAMED, "layer")
    _known(ops, dict.fromkeys(ROLES), "--ops")
    folder = folder or Path(f"{task}-{layer}-{seed}")
    folder.mkdir(parents=True, exist_ok=True)
    model = Model(kind, found.inputs, found.classes, dropout=0.1)
    trainer = Trainer(model, found, Plan(steps=steps, seed=seed), operators(ops))
    return _Run(trainer, folder).go(resume)


def _known(name: str, there: dict, what: str):
    """The entry of this name; UsageError lists the known names."""
    from refssm.conformance.usage_error import UsageError

    if name not in there:
        raise UsageError(f"unknown {what} {name!r}; wanted one of {', '.join(there)}")
    return there[name]


class _Run:
    """A training run: its files, its bar, and the steps."""

    def __init__(self, trainer, folder: Path):
        from refssm.command.progress import Bar

        self.trainer, self.folder, self.bar = trainer, folder, Bar()
        self.checkpoint, self.metrics = folder / "checkpoint.safetensors", folder / "metrics.jsonl"

    def go(self, resume: bool) -> int:
        """Train to the end; 2 after Ctrl-C, 1 if the loss is not finite."""
        from refssm.training.loop import Diverged, resumed

        state = resumed(self.checkpoint, self.trainer) if resume else self.trainer.start()
        try:
            with self.bar:
                self._steps(state)
        except KeyboardInterrupt:
            self._save(state)
            typer.echo(f"step {state.step}: saved to {self.checkpoint}; --resume goes on", err=True)
            return INTERRUPTED
        except Diverged as error:
            typer.echo(f"refssm: {error}; the last good checkpoint stays", err=True)
            return FAILED
        return 0

    def _steps(self, state) -> None:
        total, began, first = self.trainer.plan.steps, time.perf_counter(), state.step
        while state.step < total:
            facts = self.trainer.step(state)
            speed = (state.step - first) / (time.perf_counter() - began)
            self.bar.tick(f"loss {facts['loss']:.3f}  {speed:.1f} steps/s", state.step, total)
            if state.step % EVERY == 0 or state.step == total:
                self._tell(facts | self.trainer.test(state.parameters))
                self._save(state)

    def _tell(self, facts: dict) -> None:
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")
        self.bar.hide()
        shares = f"loss {facts['loss']:.4f}, test accuracy {facts['test_accuracy']:.3f}"
        typer.echo(f"step {facts['step']}: {shares}")

    def _save(self, state) -> None:
        from refssm.training.loop import save

        save(self.checkpoint, self.trainer, state)
