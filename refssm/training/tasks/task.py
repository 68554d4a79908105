"""What a task is: signals and wanted answers, for training and for testing.

A signal is real, (l, inputs), or has symbols, (l) integers. The answer is a class or, with the loss
`squared`, a vector of real numbers; one for each signal, or one for each step. Weights say which
answers count. Gaps (l) are the times between the samples of a signal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

TEST = 512  # examples in the test of a generated task
TEST_SEED = 2**31 - 1  # of the test; training draws from the seed of the run


class TrainingError(ValueError):
    """The run cannot be as asked; the message is one sentence for the user."""


class Examples(NamedTuple):
    """Examples as the first axis of each array."""

    signals: np.ndarray  # (e, l, inputs), or integers (e, l)
    labels: np.ndarray  # (e), or (e, l); for real answers one more axis
    weights: Any = None  # like the labels, without the axis of a real answer; or None
    gaps: Any = None  # (e, l), or None

    def rows(self, which) -> "Examples":
        """Some of the examples: an array of indices, or a slice."""
        others = (None if a is None else a[which] for a in (self.weights, self.gaps))
        return Examples(self.signals[which], self.labels[which], *others)


@dataclass(frozen=True)
class Task:
    """Signals (examples, l, inputs) and what is wanted of them.

    `symbols` is how many symbols there are, 0 for real signals. `read` is what the decoder reads:
    mean, last, or each where there is an answer for each step. `draw(rng, count)` makes new
    examples for every batch; without it, batches are chosen from `signals`. `marks` has figures to
    compare with: chance, the best possible or a named baseline. TrainingError says which array has
    another shape than wanted.
    """

    name: str
    classes: int  # or numbers of a real answer
    signals: np.ndarray
    labels: np.ndarray
    test_signals: np.ndarray
    test_labels: np.ndarray
    read: str = "mean"
    loss: str = "cross_entropy"
    symbols: int = 0
    weights: np.ndarray | None = None
    test_weights: np.ndarray | None = None
    gaps: np.ndarray | None = None
    test_gaps: np.ndarray | None = None
    draw: Callable[[np.random.Generator, int], Examples] | None = None
    marks: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        self.check(self.train, "")
        self.check(self.test, "test_")

    @property
    def inputs(self) -> int:
        """Channels of a signal, or the number of symbols."""
        return self.symbols or self.signals.shape[-1]

    @property
    def train(self) -> Examples:
        """The examples from which batches are chosen."""
        return Examples(self.signals, self.labels, self.weights, self.gaps)

    @property
    def test(self) -> Examples:
        """The examples of the test."""
        return Examples(self.test_signals, self.test_labels, self.test_weights, self.test_gaps)

    def batch(self, rng: np.random.Generator, count: int) -> Examples:
        """So many examples for one step."""
        if self.draw is not None:
            return self.draw(rng, count)
        return self.train.rows(rng.choice(len(self.signals), count, replace=False))

    def check(self, given: Examples, prefix: str) -> None:
        """TrainingError if an array has another shape than wanted, or another kind of numbers."""
        signals, real = given.signals, self.loss == "squared"
        if signals.ndim != (2 if self.symbols else 3):
            axes = "(examples, l) integers" if self.symbols else "(examples, l, inputs)"
            raise self._wrong(f"{prefix}signals", signals, axes)
        times = signals.shape[:2] if self.read == "each" else signals.shape[:1]
        wanted = {
            "labels": (*times, self.classes) if real else times,
            "weights": times,
            "gaps": signals.shape[:2],
        }
        for name, shape in wanted.items():
            array = getattr(given, name)
            if array is not None and array.shape != shape:
                raise self._wrong(f"{prefix}{name}", array, shape)
        ranges = {"signals": self.symbols, "labels": 0 if real else self.classes}
        for name, count in ranges.items():
            self._check_integers(f"{prefix}{name}", getattr(given, name), count)
        weights = given.weights
        if weights is not None and not (weights > 0).any(tuple(range(1, weights.ndim))).all():
            raise TrainingError(f"{self.name}: `{prefix}weights` has an example without any weight")

    def _check_integers(self, name: str, array: np.ndarray, count: int) -> None:
        """Symbols and classes are integers from 0 to count − 1."""
        if not count or (array.dtype.kind in "iu" and not array.size):
            return
        if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= count:
            found = f"{array.dtype} from {array.min()} to {array.max()}"
            wanted = f"wanted integers from 0 to {count - 1}"
            raise TrainingError(f"{self.name}: `{name}` has {found}, {wanted}")

    def _wrong(self, name: str, array: np.ndarray, wanted) -> TrainingError:
        shape = str(wanted)
        return TrainingError(f"{self.name}: `{name}` has shape {array.shape}, wanted {shape}")


def generated(
    name: str, classes: int, draw: Callable[[np.random.Generator, int], Examples], **facts
) -> Task:
    """A task whose batches are drawn; `facts` are the fields of a `Task` after its arrays. The test
    has 512 examples, the same in every run."""
    test = draw(np.random.default_rng(TEST_SEED), TEST)
    none = test.rows(slice(0))
    return Task(
        name, classes, none.signals, none.labels, test.signals, test.labels,
        weights=none.weights, test_weights=test.weights, gaps=none.gaps, test_gaps=test.gaps,
        draw=draw, **facts,
    )  # fmt: skip


def sized(name: str, needed: Mapping[str, tuple[int, int]]) -> None:
    """TrainingError for a size below the least one that makes sense: name to (size, least)."""
    for size, (value, least) in needed.items():
        if value < least:
            raise TrainingError(f"{name}: wanted {size} ≥ {least}, got {value}")
