"""Scans with one decay per step in the ways of good programs: by steps, doubled, in blocks of time.

`BY_STEPS`, `DOUBLED` and `IN_BLOCKS` multiply decays. `ROUNDED` goes by steps and rounds e^{log a}
of all steps to the same side: decays that are the same at each step have the same error, which
counts as often as there are steps.
"""

from math import ceil, sqrt

import numpy as np

from refssm.conformance.gauges.cumulated.sums import Way
from refssm.conformance.gauges.programs.arithmetic import to_one_side

# Runs: x_0 = b_0, x_t = a_t x_{t−1} + b_t along the last axis but one, so a_0 is not used


def by_steps(a, b):
    """The recurrence."""
    x = [b[..., 0, :]]
    for t in range(1, b.shape[-2]):
        x.append(a[..., t, :] * x[-1] + b[..., t, :])
    return np.stack(x, axis=-2)


def doubled(a, b):
    """Sums of 2m terms from those of m: the associative scan."""
    shift = 1
    while shift < b.shape[-2]:
        b = np.concatenate(
            [b[..., :shift, :], b[..., shift:, :] + a[..., shift:, :] * b[..., :-shift, :]], axis=-2
        )
        a = np.concatenate([a[..., :shift, :], a[..., shift:, :] * a[..., :-shift, :]], axis=-2)
        shift *= 2
    return b


def in_blocks(a, b):
    """Blocks side by side from rest; then the state before each block times products of decays."""
    l = b.shape[-2]
    m = ceil(sqrt(l))
    count = -(-l // m)
    a, b = (_cut(array, count, m) for array in (a, b))
    x, decays = by_steps(a, b), np.cumprod(a, axis=-2)
    blocks = [x[..., 0, :, :]]
    for j in range(1, count):
        before = blocks[-1][..., -1:, :]
        blocks.append(x[..., j, :, :] + decays[..., j, :, :] * before)
    return np.concatenate(blocks, axis=-2)[..., :l, :]


def _cut(a, count, m):
    """(…, l, n) as (…, count, m, n), with zeros at the end."""
    more = np.zeros((*a.shape[:-2], count * m - a.shape[-2], a.shape[-1]), a.dtype)
    whole = np.concatenate([a, more], axis=-2)
    return whole.reshape(*a.shape[:-2], count, m, a.shape[-1])


def way_of(run, exp=np.exp) -> Way:
    """The way that adds with `run`, and takes decays of logarithms by `exp`."""

    def scanned(a, b, x0, first):
        return run(_after_one(_kept(a, first)), _joined(x0, b))

    def scanned_back(d, a, b, x0, first):
        da, g = costates(d, a, scanned(a, b, x0, first), first)
        return da, g[..., 1:, :], g[..., 0, :]

    def costates(d, a, x, first):
        """g_t = d_t + a*_{t+1} g_{t+1}, from t = −1 on, and the cotangents x*_{t−1} g_t of a_t."""
        kept = _after_one(np.flip(_kept(a, first).conj(), axis=-2))
        ended = _joined(np.zeros_like(d[..., 0, :]), d)
        g = np.flip(run(kept, np.flip(ended, axis=-2)), axis=-2)
        return _kept(x[..., :-1, :].conj() * g[..., 1:, :], first), g

    def states(log_a, b, x0, first):
        return scanned(exp(log_a), b, x0, first)

    def pulled_back(d, log_a, b, x, first):
        del b
        a = exp(log_a)
        da, g = costates(d, a, x, first)
        dlog_a = a.conj() * da
        return g, dlog_a.sum(-1, keepdims=True) if a.shape[-1] == 1 else dlog_a

    return Way(scanned, scanned_back, states, pulled_back)


def _kept(a, first):
    """0 where a sequence begins."""
    return np.where(first[..., None], 0, a)


def _after_one(a):
    return np.concatenate([np.ones_like(a[..., :1, :]), a], axis=-2)


def _joined(x0, b):
    """x0, then b, along time."""
    x0 = np.broadcast_to(x0[..., None, :], (*b.shape[:-2], 1, b.shape[-1]))
    return np.concatenate([x0, b], axis=-2)


def _rounded(log_a):
    wider = np.exp(log_a.astype(np.result_type(log_a, np.float64)))
    return to_one_side(wider, log_a.dtype)


BY_STEPS, DOUBLED, IN_BLOCKS = way_of(by_steps), way_of(doubled), way_of(in_blocks)
ROUNDED = way_of(by_steps, _rounded)
