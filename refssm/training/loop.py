"""The training loop: batch, loss, gradients, update.

A step is a function of a state to a new state, so an interrupted step changes nothing. The state
has all that the next step depends on; a checkpoint holds it whole.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refssm.layers._parts.norms import averaged
from refssm.layers.model import Model, part
from refssm.training import shares
from refssm.training.losses import cross_entropy, cross_entropy_grad
from refssm.training.optimizer import GROUPS, AdamW, clipped, cosine, norm
from refssm.training.tasks import Task

Arrays = dict[str, np.ndarray]


class Diverged(ArithmeticError):
    """The loss or a gradient is not finite."""


@dataclass(frozen=True)
class Plan:
    """How long and how fast a model is trained."""

    steps: int = 1000
    batch: int = 50
    pieces: int = 1  # a batch is computed in so many pieces, whose gradients are added
    rate: float = 4e-3
    warm_up: int = 100
    decay: float = 0.05
    clip: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class TrainingState:
    """All that changes from step to step."""

    step: int
    parameters: Arrays
    moments: Arrays
    averages: Arrays  # of norms over the batch
    generator: Mapping[str, Any]  # the state of NumPy's generator

    @property
    def rng(self) -> np.random.Generator:
        """A new generator in this state."""
        rng = np.random.default_rng(0)
        rng.bit_generator.state = self.generator
        return rng


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

    def start(self) -> TrainingState:
        """The state before the first step."""
        rng = np.random.default_rng(self.plan.seed)
        parameters = self.model.init(rng)
        moments = self.optimizer.start(parameters)
        return TrainingState(0, parameters, moments, self.model.averages(), rng.bit_generator.state)

    def step(self, state: TrainingState) -> tuple[TrainingState, dict[str, float]]:
        """The state after one step; its loss, accuracy, norm of the gradient, and rate."""
        rng, step = state.rng, state.step + 1
        chosen = rng.choice(len(self.task.signals), self.plan.batch, replace=False)
        u, labels = self.task.signals[chosen], self.task.labels[chosen]
        masks = self.model.masks(rng, (*u.shape[:-1], self.model.h), u.dtype)
        with np.errstate(all="ignore"):  # what is not finite ends the run, with a sentence
            loss, right, gradients, averages = self.gradients(state, u, labels, masks)
            size = norm(gradients)
        if not (math.isfinite(loss) and math.isfinite(size)):
            raise Diverged(_not_finite(step, loss, gradients))
        rate = cosine(step, rate=self.plan.rate, warm_up=self.plan.warm_up, steps=self.plan.steps)
        parameters, moments = self.optimizer.update(
            state.parameters, clipped(gradients, self.plan.clip), state.moments, step, rate
        )
        new = TrainingState(step, parameters, moments, averages, rng.bit_generator.state)
        return new, {"step": step, "loss": loss, "accuracy": right, "gradient": size, "rate": rate}

    def gradients(
        self, state: TrainingState, u, labels, masks
    ) -> tuple[float, float, Arrays, Arrays]:
        """Loss, accuracy and gradients of a batch, piece by piece; averages after it."""
        total, averages, loss, right = {}, state.averages, 0.0, 0
        for piece in np.array_split(np.arange(len(u)), self.plan.pieces):
            its = labels[piece]
            y, grads, seen = shares.gradients(
                self.model, self.ops, state.parameters, u[piece],
                lambda y, rows, its=its: cross_entropy_grad(y, its[rows], len(u)),
                masks and [mask[piece] for mask in masks],
            )  # fmt: skip
            loss += cross_entropy(y, its) * len(piece) / len(u)
            right += int((y.argmax(-1) == its).sum())
            averages = averaged(averages, seen)
            total = {n: total[n] + g if total else g for n, g in grads.items()}
        return loss, right / len(u), total, averages

    def test(self, state: TrainingState) -> dict[str, float]:
        """Loss and accuracy on the test set; Diverged if they are not finite."""
        signals, labels = self.task.test_signals, self.task.test_labels
        with np.errstate(all="ignore"):
            y = self.model.forward(self.ops, state.parameters, signals, state.averages)
            loss = cross_entropy(y, labels)
        if not math.isfinite(loss):
            raise Diverged(f"step {state.step}: the loss on the test set is {loss}")
        return {"test_loss": loss, "test_accuracy": float((y.argmax(-1) == labels).mean())}


def _not_finite(step: int, loss: float, gradients: Arrays) -> str:
    """One sentence: the step, and the first parameter whose gradient is not finite."""
    bad = next((n for n, g in gradients.items() if not np.isfinite(g).all()), None)
    what = f"the gradient of `{bad}` is not finite" if bad else f"the loss is {loss}"
    return f"step {step}: {what}"


def arrays_of(state: TrainingState) -> Arrays:
    """All arrays of a state under one name each, as a checkpoint stores them."""
    return {
        f"{kind}.{name}": a
        for kind in ("parameters", "moments", "averages")
        for name, a in getattr(state, kind).items()
    }


def state_of(arrays: Arrays, step: int, generator: Mapping[str, Any]) -> TrainingState:
    """The state that has these arrays."""
    parameters, moments, averages = (
        part(arrays, f"{kind}.") for kind in ("parameters", "moments", "averages")
    )
    return TrainingState(step, parameters, moments, averages, generator)
