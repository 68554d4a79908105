"""Programs of the rule with a low-rank transition: by steps, in chunks, in blocks, doubled, apart.

States and their cotangents are runs of one kind, X_t = diag(e^{g_t}) X_{t−1} + w_t (r_tᵀ X_{t−1})
+ x_t y_tᵀ. States read with a and write with b. Cotangents of the states, G_t = q_t dy_tᵀ +
(e^{g_{t+1}} + a_{t+1} b_{t+1}ᵀ) G_{t+1}, read with b and write with a, in reverse time. At a reset
the gate is −∞ and nothing is read.
"""

from collections.abc import Callable
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.gauges.programs.arithmetic import product
from refssm.conformance.gauges.programs.linear_attention.recurrent import fitting
from refssm.conformance.gauges.programs.linear_attention.states import (
    CHUNK,
    LONG,
    cut_in_blocks,
    decayed,
    farther,
    outer,
    recalled,
)
from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS


class LowRankRun(NamedTuple):
    """A run: X_t = e^{g_t} ∘ X_{t−1} + write_t (read_tᵀ X_{t−1}) + x_t y_tᵀ; arrays (…, l, …)."""

    g: np.ndarray
    read: np.ndarray
    write: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def at(self, w):
        """The same at a time, or in a window."""
        return LowRankRun(*(a[..., w, :] for a in self))


def _applied(run: LowRankRun, X):
    """diag(e^g) X + write (readᵀ X) of one step."""
    return np.exp(run.g)[..., None] * X + outer(run.write, recalled(X, run.read))


def by_steps(run: LowRankRun, X, **_):
    """One step after the other."""
    found = []
    for t in range(run.g.shape[-2]):
        now = run.at(t)
        X = _applied(now, X) + outer(now.x, now.y)
        found.append(X)
    return np.stack(found, axis=-3)


def in_blocks(run: LowRankRun, X, **_):
    """Blocks of √l steps side by side from rest; then the state before each block goes through."""
    l = run.g.shape[-2]
    size = ceil(sqrt(l))
    count = -(-l // size)
    cut = LowRankRun(*(cut_in_blocks(a, count, size) for a in run))
    rest = by_steps(cut, np.zeros_like(X)[..., None, :, :])
    blocks = []
    for j in range(count):
        carried = []
        for t in range(size):
            X = _applied(LowRankRun(*(a[..., j, t, :] for a in cut)), X)
            carried.append(X)
        blocks.append(rest[..., j, :, :, :] + np.stack(carried, axis=-3))
        X = blocks[-1][..., -1, :, :]
    return np.concatenate(blocks, axis=-3)[..., :l, :, :]


def in_chunks(run: LowRankRun, X, **_):
    """Chunks of 16: what each step reads solves a triangular system, row by row.

    X_i = e^{G_i} X + Σ_{j≤i} e^{G_i − G_j} (x_j y_jᵀ + write_j z_jᵀ) with the sums G of g in the
    chunk, z_i = X_{i−1}ᵀ read_i.
    """
    found = []
    for start in range(0, run.g.shape[-2], CHUNK):
        found.append(_chunk(run.at(slice(start, start + CHUNK)), X))
        X = found[-1][..., -1, :, :]
    return np.concatenate(found, axis=-3)


def _chunk(run: LowRankRun, X):
    l = run.g.shape[-2]
    start, decays = decayed(run.g, X)
    drives, writes = (a[..., None, :, :] * decays for a in (run.x, run.write))
    # what step i reads is the state before it
    before = np.concatenate([X[..., None, :, :], start[..., :-1, :, :]], axis=-3)
    known = recalled(before, run.read)
    z = [known[..., 0, :]]
    for i in range(1, l):
        read = run.read[..., i, None, :]
        by_x, by_w = ((a[..., i - 1, :i, :] * read).sum(-1) for a in (drives, writes))
        told = (by_x[..., None] * run.y[..., :i, :]).sum(-2)
        told = told + (by_w[..., None] * np.stack(z, axis=-2)).sum(-2)
        z.append(known[..., i, :] + told)
    sums = product(drives.mT, run.y[..., None, :, :])
    return start + sums + product(writes.mT, np.stack(z, axis=-2)[..., None, :, :])


def doubled(run: LowRankRun, X, **_):
    """The associative scan of pairs: whole matrices, sums of 2m terms from those of m."""
    n = run.read.shape[-1]
    M = np.eye(n, dtype=run.read.dtype) * np.exp(run.g)[..., None, :] + outer(run.write, run.read)
    B, shift = outer(run.x, run.y), 1
    first = B[..., :1, :, :] + product(M[..., 0, :, :], X)[..., None, :, :]
    B = np.concatenate([first, B[..., 1:, :, :]], axis=-3)
    while shift < B.shape[-3]:
        late = M[..., shift:, :, :]
        added = B[..., shift:, :, :] + product(late, B[..., :-shift, :, :])
        B = np.concatenate([B[..., :shift, :, :], added], axis=-3)
        M = np.concatenate([M[..., :shift, :, :], product(late, M[..., :-shift, :, :])], axis=-3)
        shift *= 2
    return B


def apart(run: LowRankRun, X, *, chunk=0, turned=False):
    """What is above 0 of all that steps add, and what is below: two sums of a chunk, or of 128.

    So a chunk adds: what b writes may be taken away later, and a sum of all keeps its roundings.
    One of the two sums errs by a rounding more, to the side where it shows. Chunks begin at the
    first step, which is the last one of a run in reverse time (`turned`).
    """
    above, below, found = *_sides(X), []
    size, begin = max(chunk, LONG), run.g.shape[-2] if turned else 0
    decays, driven = np.exp(run.g)[..., None], outer(run.x, run.y)
    for t in range(run.g.shape[-2]):
        X = above - below
        if t and (t - begin) % size == 0:
            above, below = _sides(X)
        decay, drive = decays[..., t, :, :], driven[..., t, :, :]
        more = _sides(drive), _sides(outer(run.write[..., t, :], recalled(X, run.read[..., t, :])))
        above, below = (decay * x + y + z for x, y, z in zip((above, below), *more, strict=True))
        found.append((above, below))
    above, below = (np.stack(parts, axis=-3) for parts in zip(*found, strict=True))
    return above, farther(above, below)


def _sides(x):
    """What is above 0, and what is below it."""
    return np.maximum(x, 0), np.maximum(-x, 0)


class ByLowRankStates:
    """`run` and `back` in one way of computing all states, and all their cotangents.

    Both are lists of one array, or of two whose difference they are. Products are made of the
    parts, and then added.
    """

    def __init__(self, scan: Callable):
        self.scan = scan

    def run(self, arguments, S0, resets, **statics):
        """The outputs and the last state."""
        q, _, v, *_ = arguments
        states, start = self._states(arguments, S0, resets, statics)
        if not v.shape[-2]:
            return np.zeros((*start.shape[:-2], 0, v.shape[-1]), v.dtype), start
        return _difference([recalled(S, q) for S in states]), _difference(states)[..., -1, :, :]

    def back(self, cotangents, arguments, S0, resets, **statics):
        """The gradients: each a product of a state or what is read of it, and a cotangent."""
        q, k, v, g, a, b = arguments
        states, start = self._states(arguments, S0, resets, statics)
        dy, dS = (*cotangents, np.zeros_like(start))[:2]
        if not v.shape[-2]:
            return *(np.zeros_like(x) for x in arguments), dS
        before = [_moved(S, edge, resets) for S, edge in
                  zip(states, (start, np.zeros_like(start)), strict=False)]  # fmt: skip
        g, a_kept = _cleared(resets, g, a)
        G = self._cotangents((q, g, a_kept, b), dy, dS, statics)
        decay = np.exp(g)[..., None]
        z = _difference([recalled(S, a) for S in before])
        w = _difference([recalled(x, b) for x in G])
        of_gates = [_difference([(decay * S * x).sum(-1) for S in before]) for x in G]
        found = (
            _difference([(S * dy[..., None, :]).sum(-1) for S in states]),
            _difference([(x * v[..., None, :]).sum(-1) for x in G]),
            _difference([recalled(x, k) for x in G]),
            _difference(of_gates),
            _difference([(S * w[..., None, :]).sum(-1) for S in before]),
            _difference([(x * z[..., None, :]).sum(-1) for x in G]),
            _before_all(decay, a_kept, w, G),
        )
        return unbroadcast_each(found, (*arguments, start if S0 is None else S0))

    def _cotangents(self, given, dy, dS, statics):
        """G_t of all steps, by their parts."""
        q, g, a, b = given
        later = (np.concatenate([x[..., 1:, :], np.zeros_like(x[..., :1, :])], axis=-2)
                 for x in (g, b, a))  # fmt: skip
        turned = (np.flip(x, axis=-2) for x in (*later, q, dy))
        found = _parts(self.scan(LowRankRun(*turned), dS, **{**statics, "turned": True}))
        return [np.flip(x, axis=-3) for x in found]

    def _states(self, arguments, S0, resets, statics):
        """All states by their parts, and the one before them, with all leading axes."""
        _, k, v, g, a, b = arguments
        shapes = [x.shape[:-2] for x in arguments]
        shapes += [] if resets is None else [resets.shape[:-1]]
        shapes += [] if S0 is None else [S0.shape[:-2]]
        shape = (*np.broadcast_shapes(*shapes), k.shape[-1], v.shape[-1])
        start = np.zeros_like(k, shape=shape) if S0 is None else np.broadcast_to(S0, shape)
        if not v.shape[-2]:
            return [start[..., None, :, :]], start
        run = LowRankRun(*_cleared(resets, g, a), b, k, v)
        return _parts(self.scan(run, start, **statics)), start


def _parts(found):
    """The states as a list of one array, or of two whose difference they are."""
    return [*found] if isinstance(found, tuple) else [found]


def _difference(parts):
    """What was written less what was taken away, or the one part there is."""
    return parts[0] - parts[1] if parts[1:] else parts[0]


def _before_all(decay, a, w, G):
    """The cotangent before the first step. Two sums take its terms in and are subtracted after
    them, as by a chunk: where the first step takes all away, what is left is their roundings."""
    decay, added = decay[..., 0, :, :], outer(a[..., 0, :], w[..., 0, :])
    first = [decay * x[..., 0, :, :] for x in G]
    if not G[1:]:
        return first[0] + added
    above, below = (x + y for x, y in zip(first, _sides(added), strict=True))
    return above - farther(above, below)


def _moved(S, start, resets):
    """A part of the states one step later; nothing where a sequence begins."""
    before = np.concatenate([start[..., None, :, :], S[..., :-1, :, :]], axis=-3)
    if resets is None:
        return before
    return np.where((resets != 0)[..., None, None], 0, before).astype(before.dtype)


def _cleared(resets, g, a):
    """The gates, −∞ where a sequence begins, and a, 0 there."""
    if resets is None:
        return g, a
    begins = (resets != 0)[..., None]
    return np.where(begins, -np.inf, g).astype(g.dtype), np.where(begins, 0, a).astype(a.dtype)


WAYS = {"by_steps": by_steps, "in_chunks": in_chunks, "in_blocks": in_blocks, "doubled": doubled}
BY_CHUNKS = {"by_steps": by_steps, "in_chunks": in_chunks, "doubled": doubled, "apart": apart}


def _programs(gradient: bool) -> dict[str, dict[str, Callable]]:
    """By operator and way, its programs or those of its VJP."""
    found: dict[str, dict[str, Callable]] = {}
    for recurrence in (DELTA_DPLR_RULE, DELTA_DPLR_BY_CHUNKS):
        for name, scan in (BY_CHUNKS if recurrence.same_as else WAYS).items():
            way, whole = ByLowRankStates(scan), scan is doubled
            pairs = recurrence.mirrors(way.run, way.back, lambda op: lambda f: f)
            for op, pair in zip(recurrence.operators, pairs, strict=True):
                program, given = (pair.vjp, len(op.outputs)) if gradient else (pair.forward, 0)
                found.setdefault(op.name, {})[name] = fitting(op, program, given, matrices=whole)
    return found


OUTPUTS, GRADIENTS = _programs(gradient=False), _programs(gradient=True)
