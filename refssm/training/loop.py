"""The training loop: batch, loss, gradients, update; a state that a checkpoint holds whole."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from refssm.layers.model import Model, part, under
from refssm.training import checkpoint
from refssm.training.losses import cross_entropy, cross_entropy_grad
from refssm.training.optimizer import GROUPS, AdamW, clipped, cosine, norm
from refssm.training.tasks import Task


class Diverged(ArithmeticError):
    """The loss or a gradient is not finite."""


@dataclass(frozen=True)
class Plan:
    """How long and how fast a model is trained."""

    steps: int = 2000
    batch: int = 50
    pieces: int = 1  # a batch is computed in so many pieces, whose gradients are added
    rate: float = 4e-3
    warm_up: int = 100
    decay: float = 0.05
    clip: float = 1.0
    seed: int = 0


@dataclass
class State:
    """All that changes from step to step."""

    step: int
    parameters: dict[str, np.ndarray]
    moments: dict[str, np.ndarray]
    rng: np.random.Generator


@dataclass(frozen=True)
class Trainer:
    """A model on a task, with the operators that compute it."""

    model: Model
    task: Task
    plan: Plan
    ops: Any
    optimizer: AdamW = field(init=False)

    def __post_init__(self):
        groups = {name: GROUPS[kind] for name, kind in self.model.groups().items()}
        object.__setattr__(self, "optimizer", AdamW(decay=self.plan.decay, groups=groups))

    def start(self) -> State:
        """The state before the first step."""
        rng = np.random.default_rng(self.plan.seed)
        parameters = self.model.init(rng)
        return State(0, parameters, self.optimizer.start(parameters), rng)

    def step(self, state: State) -> dict[str, float]:
        """One step, in place; returns loss, accuracy and the norm of the gradient."""
        chosen = state.rng.choice(len(self.task.signals), self.plan.batch, replace=False)
        u, labels = self.task.signals[chosen], self.task.labels[chosen]
        shape = (*u.shape[:-1], self.model.h)
        masks = self.model.masks(state.rng, shape, u.dtype)
        loss, right, gradients = self._gradients(state.parameters, u, labels, masks)
        step = state.step + 1
        size = norm(gradients)
        if not (math.isfinite(loss) and math.isfinite(size)):
            raise Diverged(_not_finite(step, loss, gradients))
        rate = cosine(step, rate=self.plan.rate, warm_up=self.plan.warm_up, steps=self.plan.steps)
        parameters, moments = self.optimizer.update(
            state.parameters, clipped(gradients, self.plan.clip), state.moments, step, rate
        )
        state.step, state.parameters, state.moments = step, parameters, moments
        return {"step": step, "loss": loss, "accuracy": right, "gradient": size, "rate": rate}

    def _gradients(self, p, u, labels, masks):
        """Loss, accuracy and gradients of a batch, piece by piece."""
        total, loss, right = {}, 0.0, 0
        for piece in np.array_split(np.arange(len(u)), self.plan.pieces):
            share = len(piece) / len(u)
            its = labels[piece]
            y, grads = self.model.gradients(
                self.ops, p, u[piece],
                lambda y, its=its, share=share: cross_entropy_grad(y, its) * y.dtype.type(share),
                masks and [mask[piece] for mask in masks],
            )  # fmt: skip
            loss += share * cross_entropy(y, its)
            right += int((y.argmax(-1) == its).sum())
            total = {n: total[n] + g if total else g for n, g in grads.items()}
        return loss, right / len(u), total

    def test(self, parameters) -> dict[str, float]:
        """Loss and accuracy on the test set."""
        y = self.model.forward(self.ops, parameters, self.task.test_signals)
        labels = self.task.test_labels
        right = float((y.argmax(-1) == labels).mean())
        return {"test_loss": cross_entropy(y, labels), "test_accuracy": right}


def _not_finite(step: int, loss: float, gradients) -> str:
    """One sentence: the step, and the first parameter whose gradient is not finite."""
    bad = next((n for n, g in gradients.items() if not np.isfinite(g).all()), None)
    what = f"the gradient of `{bad}` is not finite" if bad else f"the loss is {loss}"
    return f"step {step}: {what}"


def save(path: Path, trainer: Trainer, state: State) -> None:
    """A checkpoint of this state."""
    arrays = {**under("parameters.", state.parameters), **under("moments.", state.moments)}
    facts = {
        "step": state.step,
        "generator": state.rng.bit_generator.state,
        "plan": asdict(trainer.plan),
        "layer": trainer.model.layer.name,
        "task": trainer.task.name,
    }
    checkpoint.write(path, arrays, facts)


def resumed(path: Path, trainer: Trainer) -> State:
    """The state of a checkpoint; CheckpointError if it is of another run."""
    arrays, facts = checkpoint.read(path)
    new = trainer.start()
    wanted = {**under("parameters.", new.parameters), **under("moments.", new.moments)}
    checkpoint.check_shapes(path, arrays, wanted)
    new.rng.bit_generator.state = facts["generator"]
    return State(facts["step"], part(arrays, "parameters."), part(arrays, "moments."), new.rng)
