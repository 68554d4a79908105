"""Losses, averaged over the batch, with their gradients."""

import numpy as np


def cross_entropy(logits, labels):
    """Mean of log Σ_c e^{z_c} − z_label over all leading axes; labels are integers."""
    return float(-_log_softmax(logits)[*np.indices(labels.shape), labels].mean())


def cross_entropy_grad(logits, labels, count=None):
    """(softmax − one at the label) divided by the number of labels, or of those of the batch of
    which these are a part."""
    p = np.exp(_log_softmax(logits))
    p[*np.indices(labels.shape), labels] -= 1
    return p / p.dtype.type(labels.size if count is None else count)


def _log_softmax(z):
    """z − log Σ e^z; the largest is subtracted first, so nothing overflows."""
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def mean_squared_error(y, target):
    """The mean of |y − target|²."""
    return float((np.abs(y - target) ** 2).mean())


def mean_squared_error_grad(y, target):
    """2 (y − target) divided by the number of entries."""
    return 2 * (y - target) / y.real.dtype.type(y.size)
