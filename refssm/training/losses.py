"""Losses, averaged over the batch, with their gradients.

Weights (…) count entries: the loss is a weighted mean, and an entry of weight 0 does not matter.
Both a batch and the steps of its signals are leading axes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


def cross_entropy(logits, labels, weights=None):
    """Mean of log Σ_c e^{z_c} − z_label over all leading axes; labels are integers."""
    losses = -_log_softmax(logits)[*np.indices(labels.shape), labels]
    return float(losses.mean() if weights is None else (weights * losses).sum() / weights.sum())


def cross_entropy_grad(logits, labels, count=None, weights=None):
    """w (softmax − one at the label) divided by the sum of weights, or by that of the batch of
    which these are a part; without weights, by the number of labels."""
    p = np.exp(_log_softmax(logits))
    p[*np.indices(labels.shape), labels] -= 1
    if weights is not None:
        p *= weights[..., None]
    return p / p.dtype.type(weight_of(labels, weights) if count is None else count)


def _log_softmax(z):
    """z − log Σ e^z; the largest is subtracted first, so nothing overflows."""
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def mean_squared_error(y, target, weights=None):
    """The mean of |y − target|²; weights are those of rows (…) of the entries (…, outputs)."""
    squares = np.abs(y - target) ** 2
    if weights is None:
        return float(squares.mean())
    return float((weights[..., None] * squares).sum() / entries_of(target, weights))


def mean_squared_error_grad(y, target, count=None, weights=None):
    """2 w (y − target) divided by the number of entries, or by that of the batch of which these are
    a part; with weights, an entry counts w times."""
    apart = y - target if weights is None else weights[..., None] * (y - target)
    return 2 * apart / y.real.dtype.type(entries_of(target, weights) if count is None else count)


def weight_of(labels, weights=None) -> float:
    """The sum of weights; the number of labels if there are none."""
    return labels.size if weights is None else float(weights.sum(dtype=np.float64))


def entries_of(target, weights=None) -> float:
    """How many entries targets (…, outputs) have, each as often as the weight of its row says."""
    return target.size if weights is None else weight_of(target, weights) * target.shape[-1]


def right_of(logits, labels, weights=None) -> float:
    """The number, or the weight, of entries whose largest logit is at the label."""
    right = logits.argmax(-1) == labels
    return int(right.sum()) if weights is None else float((weights * right).sum(dtype=np.float64))


def squares_of(y, target, weights=None) -> float:
    """Σ w |y − target|²."""
    squares = np.abs(y - target).astype(np.float64) ** 2
    return float((squares if weights is None else weights[..., None] * squares).sum())


def _relative(total, target, weights):
    """√(total / Σ w |target|²): 1 for the answer 0."""
    return float(np.sqrt(total / squares_of(0 * target, target, weights)))


class Loss(NamedTuple):
    """A loss, and the figure that people read beside it. All have `weights` last, which may be
    None; sums over the parts of a batch are those of the whole."""

    value: Callable  # value(y, wanted, weights)
    gradient: Callable  # gradient(y, wanted, count, weights)
    count: Callable  # count(wanted, weights): what both are divided by
    figure: str
    total: Callable  # total(y, wanted, weights): a sum over entries
    of_total: Callable  # of_total(total, wanted, weights): the figure


LOSSES = {
    "cross_entropy": Loss(
        cross_entropy, cross_entropy_grad, weight_of, "accuracy", right_of,
        lambda total, labels, weights: total / weight_of(labels, weights),
    ),
    "squared": Loss(
        mean_squared_error, mean_squared_error_grad, entries_of, "error", squares_of, _relative
    ),
}  # fmt: skip
