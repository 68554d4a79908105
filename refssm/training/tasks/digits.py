"""Scanned digits of 8 × 8 pixels, read pixel by pixel [alpaydin1998digits].

Of 1797 digits, in one fixed random order, the last 360 are the test. Pixels are from −1 to 1. How
well the nearest training digit answers is the baseline; the best possible answer is not known.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from refssm.training.tasks.task import Task, TrainingError

TEST = 360  # of 1797 digits


def digits() -> Task:
    """Row by row: l = 64."""
    return _digits("digits", np.arange(64))


def permuted_digits() -> Task:
    """The same in one fixed random order of the pixels."""
    return _digits("permuted_digits", np.random.default_rng(0).permutation(64))


def _digits(name: str, order: np.ndarray) -> Task:
    signals, labels = scanned(name)
    signals = signals[:, order][..., None]
    halves = signals[:-TEST], labels[:-TEST], signals[-TEST:], labels[-TEST:]
    return Task(name, 10, *halves, marks=marks(name))


def scanned(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All digits (1797, 64) row by row, and their classes; TrainingError without scikit-learn."""
    if find_spec("sklearn") is None:
        raise TrainingError(f"{name}: the digits are in scikit-learn: pip install scikit-learn")
    return _loaded()


@cache
def _loaded() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    signals = (found.data / 8 - 1).astype(np.float32)
    mixed = np.random.default_rng(0).permutation(len(signals))
    return signals[mixed], found.target[mixed]


def marks(name: str) -> dict[str, float]:
    """The share of the test in the commonest class, and the accuracy of the nearest neighbour."""
    signals, labels = scanned(name)
    wanted = labels[-TEST:]
    chance = (wanted == np.bincount(labels[:-TEST]).argmax()).mean()
    nearest = (labels[:-TEST][nearest_of(signals[-TEST:], signals[:-TEST])] == wanted).mean()
    return {"chance": float(chance), "nearest neighbour": float(nearest)}


def nearest_of(x: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each row of x the index of the row of `known` at the smallest distance: the pixels are
    multiples of 1/8, so no sum is rounded."""
    return ((known**2).sum(-1) - 2 * x @ known.T).argmin(-1)
