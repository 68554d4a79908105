"""What decides a run: a task, a model, a plan, and where operators come from, as plain values."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from refssm.layers import Layer, operators
from refssm.layers._parts.mixing import READINGS
from refssm.layers._parts.norms import NORMS
from refssm.layers.catalog import NAMED
from refssm.layers.model import Model
from refssm.training.loop import Plan, Trainer
from refssm.training.tasks import TASKS, Task, TrainingError
from refssm.training.tasks.catalog import sizes_of
from refssm.training.tasks.local import LOCAL

ROLES = ("reference", "jit", "gpu")
ADDED = (
    "read",
    "task_sizes",
    "start",
    "data",
)  # settings that older checkpoints lack; they had the usual ones


@dataclass(frozen=True)
class Setup:
    """The settings of a run. Equal settings give equal parameters, bit for bit."""

    task: str
    layer: str
    ops: str = "jit"
    h: int = 64
    depth: int = 2
    norm: str = "batch"
    prenorm: bool = True
    dropout: float = 0.2
    sizes: Mapping[str, int] = field(default_factory=dict)  # those of the layer that are not usual
    plan: Plan = field(default_factory=Plan)
    read: str | None = None  # what the decoder reads; None: as the task says
    start: Mapping[str, str | float] = field(default_factory=dict)  # how the layer starts
    task_sizes: Mapping[str, int] = field(default_factory=dict)  # of the task, not the usual ones
    data: str | None = None  # the folder with the files of a task from a local copy

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.task}-{self.layer}-{self.plan.seed}"

    def facts(self) -> dict[str, Any]:
        """The settings as JSON has them."""
        told = asdict(self)
        return json.loads(json.dumps({**told.pop("plan"), **told}))

    def since(self, settings: Any) -> Any:
        """The settings of a checkpoint, with the usual ones for those that it is too old for."""
        if not isinstance(settings, dict):
            return settings
        usual = Setup(self.task, self.layer).facts()
        return {name: usual[name] for name in ADDED} | settings

    def trainer(self) -> Trainer:
        """The model on the task; TrainingError names an unknown name and the known ones."""
        task = self.made()
        layer = known(self.layer, NAMED, "layer")
        known(self.norm, NORMS, "norm")
        known(self.ops, dict.fromkeys(ROLES), "role of operators")
        for size in self.sizes:
            known(size, layer.sizes, f"size of {layer}")
        start = self.starting(layer)
        frozen = start.pop("frozen", "none")
        if task.draw is None and self.plan.batch > len(task.signals):
            most = f"{self.task} has {len(task.signals)} examples"
            raise TrainingError(f"--batch {self.plan.batch}: {most}")
        if self.plan.pieces > self.plan.batch:
            raise TrainingError(
                f"--pieces {self.plan.pieces}: a batch has {self.plan.batch} examples"
            )
        model = Model(
            layer, task.inputs, task.classes, h=self.h, depth=self.depth, norm=self.norm,
            prenorm=self.prenorm, dropout=self.dropout, sizes=self.sizes,
            read=self.reading(task), symbols=bool(task.symbols), start=start,
        )  # fmt: skip
        try:
            return Trainer(model, task, self.plan, operators(self.ops), frozen)
        except ValueError as error:  # sizes of the layer that do not fit together
            raise TrainingError(str(error)) from None

    def made(self) -> Task:
        """The task; TrainingError for an unknown name or size, or a folder that is not wanted."""
        make = known(self.task, {**TASKS, **LOCAL}, "task")
        for size in self.task_sizes:
            known(size, sizes_of(make), f"size of {self.task}")
        if self.task in LOCAL and self.data is None:
            raise TrainingError(f"{self.task}: wanted --data FOLDER, the files of its data set")
        if self.task in LOCAL:
            return make(Path(str(self.data)), **self.task_sizes)
        if self.data is not None:
            raise TrainingError(f"--data {self.data}: {self.task} needs no files")
        return make(**self.task_sizes)

    def starting(self, layer: Layer) -> dict[str, Any]:
        """The options of the start; TrainingError for one that the layer does not know, with those
        that it knows, and for one of another kind."""
        usual = starts_of(layer)
        for name, value in self.start.items():
            kind = type(known(name, usual, f"start of {layer}"))
            if kind is float and not (isinstance(value, int | float) and math.isfinite(value)):
                raise TrainingError(f"--start {name}={value}: wanted a finite number")
            if name == "frozen":
                known(str(value), dict.fromkeys(("system", "none")), "group to freeze")
        return dict(self.start)

    def reading(self, task: Task) -> str:
        """What the decoder reads; TrainingError if the task has its answers elsewhere."""
        read = task.read if self.read is None else self.read
        known(read, READINGS, "reading")
        each = task.read == "each"
        if each != (read == "each"):
            there = ("each step", "each") if each else ("each signal", "mean or last")
            told = f"{task.name} has an answer for {there[0]}; wanted {there[1]}"
            raise TrainingError(f"--read {read}: {told}")
        return read


def starts_of(layer: Layer) -> dict[str, str | float]:
    """The options of a layer's start with their usual values: those of its `init`, and `frozen`
    where it has parameters of a system."""
    frozen = {"frozen": "none"} if "system" in layer.kind.groups().values() else {}
    return layer.starts | frozen


def known(name: str, there: Mapping[str, Any], what: str) -> Any:
    """The entry of this name; TrainingError lists the known names."""
    if not there:
        raise TrainingError(f"unknown {what} {name!r}; there is none")
    if name not in there:
        raise TrainingError(f"unknown {what} {name!r}; wanted one of {', '.join(there)}")
    return there[name]
