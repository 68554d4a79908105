"""The adjoint of a scan in little memory: stores only the states between blocks.

A reverse pass needs the states x_{k-1}, which would be l·n numbers per channel. With blocks of √l
steps, the forward pass stores only the √l states at the block starts. The reverse pass goes through
the blocks from the last to the first and computes the √l states of one block again. That doubles
the work of a forward pass, but needs O(√l·n) numbers instead of O(l·n) [chen2016training].
"""

from collections.abc import Callable, Iterator
from math import isqrt
from typing import NamedTuple

import numpy as np


class Block(NamedTuple):
    """One block of a reverse pass, q steps long; arrays are (…, q, n), except `carried`."""

    window: slice
    a: np.ndarray  # a_k
    before: np.ndarray  # x_{k-1}
    x: np.ndarray  # x_k
    g: np.ndarray  # the cotangent of x_k, including that of all later steps
    carried: np.ndarray  # (…, n): the cotangent of the state before the block


def windows(l: int) -> list[slice]:
    """Consecutive windows of √l steps."""
    size = isqrt(l - 1) + 1 if l else 1
    return [slice(start, min(start + size, l)) for start in range(0, l, size)]


def run(decay, drive, state, resets):
    """x_k = a_k x_{k-1} + b_k from `state`; at a reset x_k = b_k, whatever came before."""
    x = []
    for k in range(drive.shape[-2]):
        state = _kept(decay[..., k, :] * state, resets[..., k]) + drive[..., k, :]
        x.append(state)
    return np.stack(x, axis=-2)


def _kept(state, reset):
    """`state`, or exactly 0 after a reset; selected, so NaN does not pass."""
    return np.where(reset[..., None], 0, state) if reset.any() else state


def starts_of(decay: Callable, drive: Callable, resets, x0, l: int):
    """The states before each block: √l states for l steps."""
    starts, state = [], x0
    for window in windows(l):
        starts.append(state)
        x = run(decay(window), drive(window), state, resets[..., window])
        state = x[..., -1, :].copy()  # a copy: a view would keep the whole block in memory
    return starts


def backwards(
    decay: Callable, drive: Callable, cotangent: Callable, resets, x0, dx_last, l: int
) -> Iterator[Block]:
    """Blocks of the reverse pass, the last first: g_k = d_k + a_{k+1}* g_{k+1}.

    `decay`, `drive` and `cotangent` return a_k, b_k and the cotangents d_k from the outputs, for a
    window; `dx_last` is the cotangent of the last state.
    """
    starts, carried = starts_of(decay, drive, resets, x0, l), dx_last
    for window, start in zip(reversed(windows(l)), reversed(starts), strict=True):
        a, b, d, reset = decay(window), drive(window), cotangent(window), resets[..., window]
        x, g = run(a, b, start, reset), []
        for k in range(d.shape[-2] - 1, -1, -1):
            g.append(d[..., k, :] + carried)
            carried = _kept(a[..., k, :].conj() * g[-1], reset[..., k])
        g = np.stack(g[::-1], axis=-2)
        yield Block(window, a, _before(start, x), x, g, carried)


def _before(start, x):
    """The states one step earlier."""
    first = np.broadcast_to(start[..., None, :], x[..., :1, :].shape)
    return np.concatenate([first, x[..., :-1, :]], axis=-2)


def no_resets(l: int) -> np.ndarray:
    """Resets for one sequence: all False."""
    return np.zeros(l, bool)


def joined(pieces, shape, dtype):
    """Join windows (the last first) along time, (…, l, n); zeros of `shape` if there are none."""
    return np.concatenate(pieces[::-1], axis=-2) if pieces else np.zeros(shape, dtype)
