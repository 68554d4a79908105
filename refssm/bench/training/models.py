"""Models that are timed: one layer, four blocks of 128 channels, ten classes, and one step of each.

A step is the loss, all gradients, and AdamW's update. Signals and parameters are drawn once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from refssm.bench.work.steps import CHANNELS, CLASSES, DEPTH, Setting
from refssm.layers import operators
from refssm.layers.catalog import NAMED
from refssm.layers.model import Model
from refssm.training import shares
from refssm.training.losses import cross_entropy, cross_entropy_grad
from refssm.training.optimizer import AdamW

RATE = 1e-3


def model_of(setting: Setting) -> Model:
    """The model of a setting."""
    layer = NAMED[setting.layer]
    return Model(layer, inputs=1, outputs=CLASSES, h=CHANNELS, depth=DEPTH, sizes=setting.sizes)


@dataclass
class StartingPoint:
    """What all implementations start from."""

    setting: Setting
    signals: np.ndarray = field(init=False)
    labels: np.ndarray = field(init=False)
    parameters: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(0)
        self.parameters = model_of(self.setting).init(rng)
        shape = (self.setting.batch, self.setting.l, 1)
        self.signals = rng.standard_normal(shape).astype(np.float32)
        self.labels = rng.integers(0, CLASSES, self.setting.batch)


def step_of(given: StartingPoint, role: str) -> Callable[[], float]:
    """One step on the operators of this role; each call continues from the last one."""
    model, ops, optimizer = model_of(given.setting), operators(role), AdamW()
    parameters, moments, count = given.parameters, optimizer.start(given.parameters), 0

    def cotangent(y, rows):
        return cross_entropy_grad(y, given.labels[rows], len(given.labels))

    def step() -> float:
        nonlocal parameters, moments, count
        y, gradients, _ = shares.gradients(model, ops, parameters, given.signals, cotangent)
        count += 1
        parameters, moments = optimizer.update(parameters, gradients, moments, count, RATE)
        return cross_entropy(y, given.labels)

    return step
