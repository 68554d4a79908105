"""Honest short convolutions: by NumPy, by SciPy, by windows, in other orders, step by step."""

from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import signal

from honest import Honest
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)


def joined(s, u):
    """The earlier inputs and the new ones, joined along time."""
    batch = np.broadcast_shapes(s.shape[:-1], u.shape[:-1])
    pieces = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (s, u)]
    return np.concatenate(pieces, axis=-1)


def windows(past, k):
    """Σ_j k_j past_{i+t−1−j}: a product with every window of t inputs."""
    return np.einsum("...it,...t->...i", sliding_window_view(past, k.shape[-1], -1), k[..., ::-1])


def longest_lag_first(past, k):
    """One shifted copy of the signal after another, the longest lag first."""
    t, l = k.shape[-1], past.shape[-1] - k.shape[-1] + 1
    y = np.zeros((*np.broadcast_shapes(past.shape[:-1], k.shape[:-1]), l), np.result_type(past, k))
    for j in reversed(range(t)):
        y = y + past[..., t - 1 - j : t - 1 - j + l] * k[..., j, None]
    return y


def numpy_convolve(past, k):
    """`np.convolve` of each row."""
    return _each_row(lambda p, taps: np.convolve(p, taps, "valid")[: p.size - taps.size + 1])(
        past, k
    )


def finite_filter(past, k):
    """`scipy.signal.lfilter` of each row, without its first t − 1 outputs."""
    return _each_row(
        lambda p, taps: signal.lfilter(taps, np.ones(1, taps.dtype), p)[taps.size - 1 :]
    )(past, k)


def _each_row(convolve):
    def batched(past, k):
        batch = np.broadcast_shapes(past.shape[:-1], k.shape[:-1])
        past, k = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (past, k))
        length = past.shape[-1] - k.shape[-1] + 1
        y = np.empty((*batch, length), np.result_type(past, k))
        for i in np.ndindex(*batch):
            y[i] = convolve(past[i], k[i]) if length >= k.shape[-1] else _by_dots(past[i], k[i])
        return y

    return batched


def _by_dots(past, k):
    """Outputs one by one, if there are few: with more taps `np.convolve` swaps its arguments."""
    return [past[i : i + k.size] @ k[::-1] for i in range(past.size - k.size + 1)]


def by_steps(past, k):
    """One output after another, each from the newest t inputs."""
    t, y = k.shape[-1], []
    for i in range(past.shape[-1] - t + 1):
        y.append((k[..., ::-1] * past[..., i : i + t]).sum(-1))
    return np.stack(y, axis=-1)


def from_rest(sums):
    """From a zero state: taps that would only meet zeros are cut off, because NaN · 0 is NaN."""

    def convolution(u, k):
        k = k[..., : u.shape[-1]]
        return sums(joined(np.zeros_like(u, shape=k.shape[-1] - 1), u), k)

    return convolution


def from_inputs(sums):
    """From a state of t inputs, of which the last t − 1 count; returns the last t inputs too."""

    def convolution(u, k, s0):
        past = joined(s0, u)
        return sums(past[..., 1:], k), past[..., past.shape[-1] - k.shape[-1] :].copy()

    return convolution


def windows_vjp(dy, u, k):
    """du by a convolution of later cotangents; each tap's gradient by a product with a window."""
    return windows_back(dy, None, u, k, np.zeros_like(k))[:2]


def windows_back(dy, ds, u, k, s0):
    t, l = k.shape[-1], u.shape[-1]
    past = joined(s0, u)  # u_{-t} … u_{l-1}
    rest = np.zeros_like(dy, shape=t - 1)
    later = joined(joined(np.zeros_like(dy, shape=t), dy), rest)
    dpast = windows(later, k[..., ::-1].conj())
    dpast = dpast.astype(np.result_type(dpast, s0, u))
    if ds is not None:
        dpast[..., l:] += ds
    lagged = sliding_window_view(past, l, -1)[..., :0:-1, :]  # lags 0 … t − 1
    dk = np.einsum("...jl,...l->...j", lagged.conj(), dy)
    return unbroadcast_each((dpast[..., t:], dk, dpast[..., :t]), (u, k, s0))


def rolled(u, k, s):
    """The state is rolled and its oldest entry replaced; then a product with reversed taps."""
    batch = np.broadcast_shapes(u.shape, s.shape[:-1], k.shape[:-1])
    s = np.roll(np.broadcast_to(s, (*batch, s.shape[-1])), -1, axis=-1)
    s = s.astype(np.result_type(s, u))
    s[..., -1] = u
    return np.einsum("...t,...t->...", s, k[..., ::-1]), s


def newest_first(u, k, s):
    """The product with the new input first, then the others."""
    y = (k[..., 0] * u).astype(np.result_type(u, k, s))
    for j in range(1, k.shape[-1]):
        y = y + k[..., j] * s[..., k.shape[-1] - j]
    return y, joined(s[..., 1:], u[..., None]).copy()


def of_length_one(u, k, s):
    """A convolution of one input."""
    y, s = SHORT_CONVOLUTION_STATEFUL.reference(u[..., None], k, s)
    return y[..., 0], s


def of_length_one_vjp(dy, ds, u, k, s):
    """The gradients of `of_length_one`."""
    du, dk, ds = windows_back(dy[..., None], ds, u[..., None], k, s)
    return du[..., 0], dk, ds


def each_sequence(sums):
    """Every packed sequence of every row by itself."""

    def convolution(u, k, resets):
        batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], resets.shape[:-1])
        u, k, resets = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (u, k, resets))
        y = np.empty(u.shape, np.result_type(u, k))
        for i in np.ndindex(*batch):
            begins = [0, *(np.flatnonzero(resets[i][1:]) + 1), u.shape[-1]]
            for start, end in pairwise(begins):
                y[i][start:end] = from_rest(sums)(u[i][start:end], k[i]) if end > start else 0
        return y

    return convolution


def packed_back(dy, u, k, resets):
    """By the number of the sequence that each input belongs to; pairs of equal number count."""
    number, l = np.cumsum(resets, axis=-1), u.shape[-1]
    du, dk = np.zeros_like(dy), np.zeros((*dy.shape[:-1], k.shape[-1]), dy.dtype)
    for j in reversed(range(min(k.shape[-1], l))):
        same = number[..., j:] == number[..., : l - j]
        du[..., : l - j] += np.where(same, dy[..., j:] * k[..., j, None].conj(), 0)
        dk[..., j] = np.where(same, dy[..., j:] * u[..., : l - j].conj(), 0).sum(-1)
    return *unbroadcast_each((du, dk), (u, k)), None


SUMS = (longest_lag_first, numpy_convolve, finite_filter, by_steps)
PLAIN, STATEFUL, STEP = SHORT_CONVOLUTION, SHORT_CONVOLUTION_STATEFUL, SHORT_CONVOLUTION_STEP
PACKED = SHORT_CONVOLUTION_PACKED
IMPLEMENTATIONS = [
    Honest(PLAIN.name, "windows", from_rest(windows), windows_vjp),
    *(Honest(PLAIN.name, sums.__name__, from_rest(sums)) for sums in SUMS),
    Honest(STATEFUL.name, "windows", from_inputs(windows), windows_back),
    *(Honest(STATEFUL.name, sums.__name__, from_inputs(sums)) for sums in SUMS),
    Honest(PACKED.name, "each_sequence", each_sequence(windows), packed_back),
    Honest(PACKED.name, "each_by_numpy", each_sequence(numpy_convolve)),
    Honest(STEP.name, "rolled", rolled),
    Honest(STEP.name, "newest_first", newest_first),
    Honest(STEP.name, "of_length_one", of_length_one, of_length_one_vjp),
]
