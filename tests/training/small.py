"""A small task and runs on it that take milliseconds a step."""

import numpy as np

from refssm.training.loop import Plan
from refssm.training.setup import Setup
from refssm.training.tasks import TASKS, Task

EXAMPLES, LENGTH, CLASSES = 40, 6, 3


def task():
    """Which of three waves a noisy signal is."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, EXAMPLES)
    t = np.arange(LENGTH) / LENGTH
    waves = np.cos(2 * np.pi * labels[:, None] * t) + 0.1 * rng.standard_normal((EXAMPLES, LENGTH))
    u = waves.astype(np.float32)[..., None]
    return Task("waves", CLASSES, u[10:], labels[10:], u[:10], labels[:10])


def setup(steps=12, *, layer="s5", seed=0, pieces=1, **model):
    """Settings of a small run, with the task `waves`."""
    usual = {"ops": "reference", "h": 4, "depth": 2, "norm": "batch", "sizes": {"n": 2}}
    plan = Plan(steps=steps, batch=8, warm_up=2, rate=0.01, seed=seed, pieces=pieces)
    return Setup("waves", layer, plan=plan, **{**usual, **model})


TASKS["waves"] = task
