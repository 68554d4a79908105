"""The adjoint of a scan in little memory: only the states between blocks are kept.

A reverse pass needs the states x_{k-1}, which would be l·n numbers for each channel. Cut into
blocks of √l steps, the forward pass keeps the √l states at their beginnings; the reverse pass
takes the blocks from the last to the first and computes the √l states of one again. That is twice
the work of a forward pass, and O(√l·n) numbers instead of O(l·n) [chen2016training].
"""

from collections.abc import Callable, Iterator
from math import isqrt
from typing import NamedTuple

import numpy as np


class Block(NamedTuple):
    """One block of a reverse pass, q steps long; arrays are (…, q, n) but for the last."""

    window: slice
    a: np.ndarray  # a_k
    before: np.ndarray  # x_{k-1}
    x: np.ndarray  # x_k
    g: np.ndarray  # the cotangent of x_k with everything that follows from it
    carried: np.ndarray  # (…, n): the cotangent of the state before the block


def windows(l: int) -> list[slice]:
    """Consecutive pieces of √l steps."""
    size = isqrt(l - 1) + 1 if l else 1
    return [slice(start, min(start + size, l)) for start in range(0, l, size)]


def run(decay, drive, state, resets):
    """x_k = a_k x_{k-1} + b_k from `state`; at a reset x_k = b_k, whatever was before."""
    x = []
    for k in range(drive.shape[-2]):
        state = _kept(decay[..., k, :] * state, resets[..., k]) + drive[..., k, :]
        x.append(state)
    return np.stack(x, axis=-2)


def _kept(state, reset):
    """`state`, or exactly nothing of it after a reset: selected, so that no NaN comes through."""
    return np.where(reset[..., None], 0, state) if reset.any() else state


def starts_of(decay: Callable, drive: Callable, resets, x0, l: int):
    """The states before each block: √l of l."""
    starts, state = [], x0
    for window in windows(l):
        starts.append(state)
        x = run(decay(window), drive(window), state, resets[..., window])
        state = x[..., -1, :].copy()  # a view would keep all of the block
    return starts


def backwards(
    decay: Callable, drive: Callable, cotangent: Callable, resets, x0, dx_last, l: int
) -> Iterator[Block]:
    """Blocks of the reverse pass, last first: g_k = d_k + a_{k+1}* g_{k+1}.

    `decay`, `drive` and `cotangent` give a_k, b_k and the d_k that the outputs send back, for a
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
    """One sequence throughout."""
    return np.zeros(l, bool)


def joined(pieces, shape, dtype):
    """Windows of time, last first, as one array (…, l, n); zeros of `shape` where l is 0."""
    return np.concatenate(pieces[::-1], axis=-2) if pieces else np.zeros(shape, dtype)
