"""Tasks that need no download: signals and labels, for training and for testing."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np


class TrainingError(ValueError):
    """The run cannot be as asked; the message is one sentence for the user."""


TEST = 360  # of 1797 digits


@dataclass(frozen=True)
class Task:
    """A classification of signals (examples, l, inputs)."""

    name: str
    classes: int
    signals: np.ndarray
    labels: np.ndarray
    test_signals: np.ndarray
    test_labels: np.ndarray

    @property
    def inputs(self) -> int:
        """Channels of a signal."""
        return self.signals.shape[-1]


def digits() -> Task:
    """Scanned digits of 8 × 8 pixels, read row by row: l = 64 [alpaydin1998digits]."""
    return _digits("digits", np.arange(64))


def permuted_digits() -> Task:
    """The same in one fixed random order of the pixels."""
    return _digits("permuted_digits", np.random.default_rng(0).permutation(64))


def _digits(name: str, order: np.ndarray) -> Task:
    if find_spec("sklearn") is None:
        raise TrainingError(f"{name}: the digits are in scikit-learn: pip install scikit-learn")
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    signals = (found.data[:, order] / 8 - 1).astype(np.float32)[..., None]
    mixed = np.random.default_rng(0).permutation(len(signals))
    signals, labels = signals[mixed], found.target[mixed]
    return Task(name, 10, signals[:-TEST], labels[:-TEST], signals[-TEST:], labels[-TEST:])


TASKS: dict[str, Callable[[], Task]] = {"digits": digits, "permuted_digits": permuted_digits}
