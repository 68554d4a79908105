"""Tasks with noise: digits that are followed by it, and a random wave that is to be delayed."""

from functools import partial

import numpy as np

from refssm.training.tasks.digits import TEST, marks, scanned
from refssm.training.tasks.task import TEST_SEED, Examples, Task, generated, sized


def padded_digits(*, noise: int = 64) -> Task:
    """Digits row by row, then `noise` steps of normal noise; read at the end [yu2024hope].

    The noise is new in every batch and does not depend on the digit: what is known of a digit is
    known 64 steps after its begin, and must be kept. The baseline is that of `digits`: the nearest
    training digit, by pixels.
    """
    sized("padded_digits", {"noise": (noise, 1)})
    signals, labels = scanned("padded_digits")
    train, test = (signals[:-TEST], labels[:-TEST]), (signals[-TEST:], labels[-TEST:])

    def draw(rng, count):
        chosen = rng.integers(0, len(train[0]), count)
        return _padded(rng, train[0][chosen], train[1][chosen], noise)

    given = _padded(np.random.default_rng(TEST_SEED), *test, noise)
    return Task(
        "padded_digits", 10, given.signals[:0], given.labels[:0], given.signals, given.labels,
        read="last", draw=draw, marks=marks("padded_digits"),
    )  # fmt: skip


def _padded(rng, pixels: np.ndarray, labels: np.ndarray, noise: int) -> Examples:
    after = rng.standard_normal((len(pixels), noise), np.float32)
    return Examples(np.concatenate([pixels, after], -1)[..., None], labels)


def delay(*, l: int = 256, lag: int = 64) -> Task:
    """y_k = u_{k−lag} of band-limited noise u, for k ≥ lag [voelker2019lmu; gu2023train].

    u has the lowest quarter of the frequencies of 2l samples, each with an independent normal
    amplitude, E u² = 1; l of the samples are given. Steps before the lag do not count. The answer 0
    has the error 1; the right answer is in the signal, so the best error is 0.
    """
    sized("delay", {"l": (l, 8), "lag": (lag, 1), "l − lag": (l - lag, 1)})
    draw = partial(_delayed, l=l, lag=lag)
    facts = {"read": "each", "loss": "squared", "marks": {"chance": 1.0, "best": 0.0}}
    return generated("delay", 1, draw, **facts)


def _delayed(rng, count: int, *, l: int, lag: int) -> Examples:
    u = waves(rng, count, 2 * l)[:, :l].astype(np.float32)
    labels, weights = np.zeros_like(u), np.zeros_like(u)
    labels[:, lag:], weights[:, lag:] = u[:, :-lag], 1
    return Examples(u[..., None], labels[..., None], weights)


def waves(rng, count: int, l: int) -> np.ndarray:
    """Sums of the first l/8 complex waves of l samples with normal amplitudes, E u² = 1. The real
    waves of l samples have l/2 frequencies, of which these are the lowest quarter."""
    kept = l // 8
    spectrum = np.zeros((count, l // 2 + 1), complex)
    x, y = rng.standard_normal((2, count, kept))
    spectrum[:, 1 : kept + 1] = (x + 1j * y) / 2
    return np.fft.irfft(spectrum, l) * l / np.sqrt(kept)
