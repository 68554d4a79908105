"""Decayed sums by differences of one cumulative sum over the whole row, and their error rules.

    x_t = Σ_{s≤t} e^{L_t − L_s} b_s,    L_t = log a_0 + … + log a_t

L_t − L_s keeps the digits that L has, not those of the difference. Most chunked kernels compute so
inside their chunks, whose sums are shorter; the whole row bounds every chunk size, as long as L has
digits. The rules run in O(l): the error of a term depends on t and s only through L_t and L_s.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from refssm._numerics.overridable import overridable
from refssm.conformance.gauges.rules import product_charge, rule, tree
from refssm.conformance.gauges.tracked import (
    FUNCTIONS,
    Tracked,
    lifted,
    met,
    modulus,
    rounded,
    spread,
)


class Way(NamedTuple):
    """A way to compute x_t = a_t x_{t-1} + b_t; from t = −1 on, where a state is x0.

    `first` says where a sequence begins: there a_t counts as 0. The decays are given as a, or as
    log a; then the axis of states may have size 1, for one decay of all states.
    """

    scanned: Callable  # (a, b, x0, first) to all states, (…, l + 1, n)
    scanned_back: Callable  # (d, a, b, x0, first) to the cotangents of a, b and x0
    states: Callable  # (log a, b, x0, first) to all states
    pulled_back: Callable  # (d, log a, b, x, first) to those of x0 and all b_t, and of log a


ALLOWED = 16  # times the error that a program may have
CHUNK = 256  # steps of the longest chunks in which kernels sum gradients of logarithms
EXPONENTIAL = 6  # roundings of a complex exponential; a real one has 4


@overridable
def prefix_sums(x):
    """Σ_{s≤t} x_s along time, the last axis but one."""
    return np.cumsum(x, axis=-2)


@overridable
def decayed_sums(L, b, first):
    """x_t = Σ e^{L_t − L_s} b_s over s ≤ t of the same sequence; `first` where a sequence begins.

    Signature ``(l,n),(l,n),(l)->(l,n)``; leading axes and n broadcast.
    """
    x, number = [], np.cumsum(first, axis=-1)
    for t in range(b.shape[-2]):
        same = (number[..., t, None] == number[..., : t + 1])[..., None]
        T = np.where(same, L[..., t, None, :] - L[..., : t + 1, :], 0)
        x.append(np.where(same, np.exp(T) * b[..., : t + 1, :], 0).sum(-2))
    return np.stack(x, axis=-2)


@overridable
def without_errors(x):
    """x; of a tracked array its values."""
    return x


@rule(FUNCTIONS, without_errors)
def _without_errors(x):
    return x.value


@rule(FUNCTIONS, prefix_sums)
def _prefix_sums(x):
    """Each sum as a balanced tree, as the rule of numpy.sum."""
    z = np.cumsum(x.value, axis=-2)
    met(np.abs(z))
    made = tree(x.shape[-2]) * modulus(x.value)[..., None]
    return Tracked(z, np.cumsum(x.errors + made, axis=-3))


@rule(FUNCTIONS, decayed_sums)
def _decayed_sums(L, b, first):
    """The errors of L_t and L_s and of b_s, and the roundings of each term and of the sum.

    An exponential whose argument may be off by 1/2 has no digits. Where the errors of L reach that,
    a new sum begins, as in a program by chunks: a long row must not excuse short chunks.
    """
    L, b = lifted(L), lifted(b)
    shape = np.broadcast_shapes(L.shape, b.shape, (*first.shape, 1))
    decay = np.exp(np.broadcast_to(np.diff(L.value, axis=-2, prepend=L.value[..., :1, :]), shape))
    decay = np.where(first[..., None], 0, decay)
    value = np.broadcast_to(b.value, shape)
    steps = (np.abs(decay), np.abs(value), *(np.broadcast_to(e, (*shape, 2)) for e in _errors(L)))
    steps = (*steps, np.broadcast_to(b.errors, (*shape, 2)))
    sizes, carried = _carried(*(np.moveaxis(a, len(shape) - 2, 0) for a in steps))
    x = _recurrence(decay, value)
    met(np.abs(x))
    charge = EXPONENTIAL + product_charge(L.value, b.value) + 1 + ceil(log2(shape[-2]))
    sizes, carried = (np.moveaxis(a, 0, len(shape) - 2) for a in (sizes, carried))
    return Tracked(x, rounded(sizes, charge, carried).errors)


def _errors(L):
    """The errors of L, and how far L may be off by them in a program that passes."""
    return L.errors, ALLOWED * (spread(L) - np.abs(L.value)[..., None])


def _carried(decay, size, of_L, off, of_b):
    """The sums of all moduli, and the errors of the terms; all arrays begin with time.

    A term of b_s has the errors of L_t and of L_s since their sums began, times its modulus. `by_s`
    has the part of L_s; `ended` what entered when sums of logarithms ended.
    """
    terms = np.zeros_like(size[0])
    by_s, ended = np.zeros_like(of_b[0]), np.zeros_like(of_b[0])
    since, lost = _since_begun(of_L, off)
    sizes, errors = [], []
    for t in range(len(size)):
        if lost[t].any():
            before = by_s + since[max(t - 1, 0)] * terms[..., None]
            ended, by_s = np.where(lost[t], ended + before, ended), np.where(lost[t], 0, by_s)
        kept = decay[t][..., None]
        terms, by_s, ended = (
            np.where(k == 0, 0, k * c)  # a NaN does not pass
            for k, c in ((decay[t], terms), (kept, by_s), (kept, ended))
        )
        errors.append(since[t] * terms[..., None] + by_s + ended + of_b[t])
        terms = terms + size[t]
        sizes.append(terms)
        by_s, ended = by_s + size[t][..., None] * since[t], ended + of_b[t]
    return np.stack(sizes), np.stack(errors)


def _since_begun(of_L, off):
    """The errors of each L_t since its sum began, and whether another sum began at t.

    Where a sum has lost its digits the next one goes on from its middle: a program's own sums begin
    at other steps. They run from the first step on, also where a scan runs in reversed time; the
    errors of L are least where its sum began.
    """
    if np.nansum(np.abs(of_L[0])) > np.nansum(np.abs(of_L[-1])):
        since, lost = _since_begun(of_L[::-1], off[::-1])
        return since[::-1], np.concatenate([np.zeros_like(lost[:1]), lost[:0:-1]])
    begun = middle = (np.zeros_like(of_L[0]), np.zeros_like(off[0]))
    found, ended, last = [], [], 0
    for t in range(len(of_L)):
        half = (4 * np.abs(off[t] - begun[1]) >= 1) & (middle[1] == begun[1])
        middle = _where(half, (of_L[last], off[last]), middle)
        lost = 2 * np.abs(off[t] - begun[1]) >= 1
        begun = _where(lost, middle, begun)
        middle = _where(lost, (of_L[last], off[last]), middle)
        found.append(np.abs(of_L[t] - begun[0]))
        ended.append(lost)
        last = t
    return np.stack(found), np.stack(ended)


def _where(chosen, new, old):
    """Both parts of `new` where chosen, else of `old`."""
    return tuple(np.where(chosen, x, y) for x, y in zip(new, old, strict=True))


def _recurrence(decay, b):
    """x_t = a_t x_{t-1} + b_t along the last axis but one; a_t = 0 drops the state, also a NaN."""
    x = [b[..., 0, :]]
    for t in range(1, b.shape[-2]):
        a_t = decay[..., t, :]
        x.append(np.where(a_t == 0, 0, a_t * x[-1]) + b[..., t, :])
    return np.stack(x, axis=-2)


def log_sums(log_a):
    """L, with L = 0 of the step before the first: (…, l + 1, n)."""
    start = np.zeros_like(log_a, shape=(*log_a.shape[:-2], 1, log_a.shape[-1]))
    return np.concatenate([start, prefix_sums(log_a)], axis=-2)


def states(log_a, b, x0, first, sums):
    """x_{-1} = x0, then x_t from decays e^{log a_t} and inputs b_t: (…, l + 1, n)."""
    return decayed_sums(sums(log_a), _joined(x0, b), _before(first))


def pulled_back(d, log_a, b, x, first, sums, chunk=CHUNK):
    """The cotangents of x0 and of all b_t, (…, l + 1, n), and of log a_t.

    d_t are those of x_t. With g_t = Σ_{s≥t} (e^{L_s − L_t})* d_s, that of L_t is
    x_t* d_t − b_t* g_t, and log a_t has the sum of those of L_s for all s ≥ t of its sequence, as a
    difference of two sums that reach to the end of the row. From the end of a chunk on that sum is
    (a_t x_{t−1})* g_t, which kernels pass from chunk to chunk: a longer sum has more roundings.
    """
    L, none = sums(log_a), np.zeros_like(d[..., 0, :])
    last = np.roll(_before(first), -1, axis=-1)  # the next step begins a sequence
    g = _turned(decayed_sums(_turned(-L.conj()), _turned(_joined(none, d)), last[..., ::-1]))
    dL = x[..., 1:, :].conj() * d - b.conj() * g[..., 1:, :]
    if log_a.shape[-1] == 1:  # one decay for all states
        dL = dL.sum(-1, keepdims=True)
    ends = range(chunk, d.shape[-2], chunk)
    D = _from_the_end(dL, ends, [_passed(t, log_a, x, g, first) for t in ends])
    return g, D - _of_next_sequence(D, first) if first.any() else D


def _passed(t, log_a, x, g, first):
    """(a_t x_{t−1})* g_t, the cotangent of log a_t alone; 0 where a sequence begins."""
    product = np.exp(log_a[..., t : t + 1, :]) * x[..., t : t + 1, :]
    product = np.where(first[..., t : t + 1, None], 0, product).conj() * g[..., t + 1 : t + 2, :]
    return product.sum(-1, keepdims=True) if log_a.shape[-1] == 1 else product


def _from_the_end(dL, ends, passed):
    """Σ_{s≥t} dL_s: the sums of a chunk and of the next one, and what is passed from there.

    Chunks of a program may begin anywhere: one that holds step t ends at most `CHUNK` steps later.
    """
    edges, sums = [0, *ends, dL.shape[-2]], []
    for i, (start, end) in enumerate(pairwise(edges)):
        after = edges[min(i + 2, len(edges) - 1)]
        D = _turned(prefix_sums(_turned(dL[..., start:after, :])))
        D = D + passed[i + 1] if i + 1 < len(passed) else D
        sums.append(D[..., : end - start, :])
    return np.concatenate(sums, axis=-2)


def _turned(x):
    """In reversed time."""
    return np.flip(x, axis=-2)


def _joined(x0, b):
    """x0, then b, along time."""
    batch = np.broadcast_shapes(x0.shape[:-1], b.shape[:-2])
    x0 = np.broadcast_to(x0[..., None, :], (*batch, 1, b.shape[-1]))
    return np.concatenate([x0, np.broadcast_to(b, (*batch, *b.shape[-2:]))], axis=-2)


def _before(first):
    """`first` with one more step before; it begins no sequence."""
    return np.concatenate([np.zeros((*first.shape[:-1], 1), bool), first], axis=-1)


def _of_next_sequence(D, first):
    """D at the first step of the next sequence; 0 in the last one."""
    l = first.shape[-1]
    begins = np.where(first, np.arange(l), l)
    after = np.concatenate([begins[..., 1:], np.full_like(begins[..., :1], l)], axis=-1)
    nearest = np.minimum.accumulate(after[..., ::-1], axis=-1)[..., ::-1]
    ended = np.concatenate([D, np.zeros_like(D[..., :1, :])], axis=-2)
    place = np.broadcast_to(nearest[..., None], D.shape)
    return np.take_along_axis(ended, place, axis=-2)


def _logarithms(a):
    """The products of the signs up to each step, and log|a|; 1 and log a if `a` is complex."""
    if np.iscomplexobj(a):
        return np.ones(()), np.log(a)
    return np.cumprod(np.sign(a), axis=-2), np.log(np.abs(a))


def scanned(a, b, x0, first, sums):
    """All states, x0 before them, with the signs of `a` put back.

    The decay a_t is s_t e^{log|a_t|} with its sign s_t, which is exact; a complex one is
    e^{log a_t}. A decay of 0 has no logarithm: from there on the form gives no bound.
    """
    signs, log_a = _logarithms(a)
    x = states(log_a, signs * b, x0, first, sums)
    return np.concatenate([x[..., :1, :], signs * x[..., 1:, :]], axis=-2)


def scanned_back(d, a, b, x0, first, sums):
    """Cotangents of a, b and x0."""
    signs, log_a = _logarithms(a)
    x = states(log_a, signs * b, x0, first, sums)
    g, dlog_a = pulled_back(signs * d, log_a, signs * b, x, first, sums)
    return dlog_a / a.conj(), signs * g[..., 1:, :], g[..., 0, :]


def _way(sums) -> Way:
    """The way with these cumulative sums of logarithms."""
    return Way(*(partial(f, sums=sums) for f in (scanned, scanned_back, states, pulled_back)))


CUMULATED = _way(log_sums)
# the roundings of the terms and of their sums alone, which no program by differences can avoid
OF_TERMS = _way(lambda log_a: without_errors(log_sums(log_a)))
