"""The training loop: batch, loss, gradients, update.

A step is a function of a state to a new state, so an interrupted step changes nothing. The state
has all that the next step depends on; a checkpoint holds it whole.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from refssm.layers._parts.norms import averaged
from refssm.layers.model import Model, part
from refssm.training import shares
from refssm.training.losses import LOSSES, Loss
from refssm.training.optimizer import GROUPS, AdamW, clipped, cosine, norm
from refssm.training.tasks import Examples, Task

Arrays = dict[str, np.ndarray]  # with `ops` of a card, arrays of that card


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
    frozen: str = "none"  # a group that is not trained
    optimizer: AdamW = field(init=False)
    alike: frozenset[str] = field(init=False)  # parameters whose numbers are one number
    fixed: frozenset[str] = field(init=False)  # parameters that are not trained

    def __post_init__(self):
        kinds = self.model.groups()
        groups = {name: GROUPS[kind] for name, kind in kinds.items()}
        fixed = frozenset(n for n, kind in kinds.items() if kind in (self.frozen, "fixed"))
        object.__setattr__(self, "optimizer", AdamW(decay=self.plan.decay, groups=groups))
        object.__setattr__(self, "alike", frozenset(self.model.alike()))
        object.__setattr__(self, "fixed", fixed)

    def placed(self, x: Any) -> Any:
        """An array, or none, where the operators compute."""
        return x if x is None else getattr(self.ops, "placed", np.asarray)(x)

    def fetched(self, x: Any) -> np.ndarray:
        """An array in the processor's memory."""
        return getattr(self.ops, "fetched", np.asarray)(x)

    def start(self) -> TrainingState:
        """The state before the first step."""
        rng = np.random.default_rng(self.plan.seed)
        parameters = {name: self.placed(p) for name, p in self.model.init(rng).items()}
        moments = self.optimizer.start(parameters)
        averages = {name: self.placed(a) for name, a in self.model.averages().items()}
        return TrainingState(0, parameters, moments, averages, rng.bit_generator.state)

    def step(self, state: TrainingState) -> tuple[TrainingState, dict[str, float]]:
        """The state after one step; its loss, its figure (accuracy, or error), norm of the
        gradient, and rate."""
        rng, step = state.rng, state.step + 1
        given = self.task.batch(rng, self.plan.batch)
        u = state.parameters["encoder.table"] if self.model.symbols else given.signals
        masks = self.model.masks(rng, (*self.model.times(given.signals), self.model.h), u.dtype)
        masks = masks and [self.placed(mask) for mask in masks]
        with np.errstate(all="ignore"):  # what is not finite ends the run, with a sentence
            loss, figure, gradients, averages = self.gradients(state, given, masks)
            gradients = {name: self._held(name, g) for name, g in gradients.items()}
            size = norm(gradients)
        if not (math.isfinite(loss) and math.isfinite(size)):
            raise Diverged(_not_finite(step, loss, gradients))
        rate = cosine(step, rate=self.plan.rate, warm_up=self.plan.warm_up, steps=self.plan.steps)
        parameters, moments = self.optimizer.update(
            state.parameters, clipped(gradients, self.plan.clip), state.moments, step, rate
        )
        new = TrainingState(step, parameters, moments, averages, rng.bit_generator.state)
        told = {"loss": loss, self.loss.figure: figure, "gradient": size, "rate": rate}
        return new, {"step": step, **told}

    def _held(self, name: str, g: np.ndarray) -> np.ndarray:
        """0 for a parameter that is not trained; for n numbers that are one number, n times Σ g/√n:
        the norm is that of the gradient of the one number, and AdamW's direction has no scale."""
        if name in self.fixed:
            return np.zeros_like(g)
        if name in self.alike:
            return np.zeros_like(g) + g.sum() / g.dtype.type(math.sqrt(g.size))
        return g

    @property
    def loss(self) -> Loss:
        """The loss of the task."""
        return LOSSES[self.task.loss]

    def gradients(
        self, state: TrainingState, given: Examples, masks
    ) -> tuple[float, float, Arrays, Arrays]:
        """Loss, figure and gradients of a batch, piece by piece; averages after it."""
        total, averages, loss, figure = {}, state.averages, 0.0, 0
        count = self.loss.count(given.labels, given.weights)
        for piece in np.array_split(np.arange(len(given.labels)), self.plan.pieces):
            its = given.rows(piece)
            y, grads, seen = shares.gradients(
                self.model, self.ops, state.parameters, self.placed(its.signals),
                lambda y, rows, its=its: self._cotangent(y, its.rows(rows), count),
                masks and [mask[piece[0] : piece[-1] + 1] for mask in masks],
                self.placed(its.gaps),
            )  # fmt: skip
            y, wanted = self.fetched(y), (its.labels, its.weights)
            loss += self.loss.value(y, *wanted) * self.loss.count(*wanted) / count
            figure += self.loss.total(y, *wanted)
            averages = averaged(averages, seen)
            total = {n: total[n] + g if total else g for n, g in grads.items()}
        return loss, self.loss.of_total(figure, given.labels, given.weights), total, averages

    def _cotangent(self, y, its: Examples, count):
        """The loss is computed by the processor: outputs are few."""
        return self.placed(self.loss.gradient(self.fetched(y), its.labels, count, its.weights))

    def test(self, state: TrainingState) -> dict[str, float]:
        """Loss and figure on the test set; Diverged if they are not finite."""
        given = self.task.test
        wanted = given.labels, given.weights
        with np.errstate(all="ignore"):
            signals, gaps = self.placed(given.signals), self.placed(given.gaps)
            y = self.model.forward(self.ops, state.parameters, signals, state.averages, gaps)
            y = self.fetched(y)
            loss = self.loss.value(y, *wanted)
        if not math.isfinite(loss):
            raise Diverged(f"step {state.step}: the loss on the test set is {loss}")
        figure = self.loss.of_total(self.loss.total(y, *wanted), *wanted)
        return {"test_loss": loss, f"test_{self.loss.figure}": figure}


def _not_finite(step: int, loss: float, gradients: Arrays) -> str:
    """One sentence: the step, and the first parameter whose gradient is not finite."""
    bad = next((n for n, g in gradients.items() if not np.isfinite(g).all()), None)
    what = f"the gradient of `{bad}` is not finite" if bad else f"the loss is {loss}"
    return f"step {step}: {what}"


def moved(state: TrainingState, function: Callable) -> TrainingState:
    """The state with `function` of each array."""
    kinds = ("parameters", "moments", "averages")
    arrays = {kind: {n: function(a) for n, a in getattr(state, kind).items()} for kind in kinds}
    return replace(state, **arrays)


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
