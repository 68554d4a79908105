"""All states of a delta rule: by steps, in chunks (a triangular system), in blocks, doubled, apart.

States and their cotangents are runs of one kind, X_t = (I − β_t k_t k_tᵀ) diag(e^{g_t}) X_{t−1} +
b_t c_tᵀ. A reset is a gate of −∞. `apart` returns two arrays, whose difference the states are.
"""

from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from refssm.conformance.gauges.columns.steps import LONG
from refssm.conformance.gauges.programs.arithmetic import product

CHUNK = 16
NEXT = np.float32(1 + 2**-23)


class StateRun(NamedTuple):
    """A run: X_t = (I − β_t k_t k_tᵀ) diag(e^{g_t}) X_{t−1} + b_t c_tᵀ; arrays (…, l, …)."""

    k: np.ndarray
    beta: np.ndarray
    g: np.ndarray  # (…, l, n), or (…, l, 1) for one gate of all keys
    b: np.ndarray
    c: np.ndarray

    def at(self, w):
        """The same at a time, or in a window."""
        return StateRun(*(x[..., w, :] for x in (self.k, self.beta, self.g, self.b, self.c)))


def _applied(run: StateRun, X):
    """(I − β k kᵀ) diag(e^g) X of one step."""
    Z = np.exp(run.g)[..., None] * X
    return Z - (run.beta * run.k)[..., None] * recalled(Z, run.k)[..., None, :]


def recalled(S, k):
    """Sᵀ k, as a sum that arrays round at random."""
    return (S * k[..., None]).sum(-2)


def outer(b, c):
    """b cᵀ."""
    return b[..., :, None] * c[..., None, :]


def by_steps(run: StateRun, X, **_):
    """One step after the other, each as it is defined: v − Sᵀ k first."""
    found, driven = [], outer(run.b, run.c)
    for t in range(run.k.shape[-2]):
        X = _applied(run.at(t), X) + driven[..., t, :, :]
        found.append(X)
    return np.stack(found, axis=-3)


def apart(run: StateRun, X, *, chunk=0):
    """What steps have written and what they have taken away: two sums of a chunk, or of 128 steps.

    So a chunk adds: its sums are of their own, beside the solution of its system. No later step
    corrects their rounding errors, and nothing is taken away before the end. What was taken away
    errs by a rounding of its largest sum more, to the side where it shows: a sum of a few terms may
    be exact by luck, or a large one be small again at its end, and another program's are not.
    """
    written, taken, found = X, np.zeros_like(X), []
    largest = taken
    decays, driven = np.exp(run.g)[..., None], outer(run.b, run.c)
    for t in range(run.k.shape[-2]):
        k, decay, drive = run.k[..., t, :], decays[..., t, :, :], driven[..., t, :, :]
        if t and t % max(chunk, LONG) == 0:
            X = written = written - taken
            largest = taken = np.zeros_like(X)
        X = decay * X
        away = outer(k, run.beta[..., t, :] * recalled(X, k))
        X = X - away + drive
        written, taken = decay * written + drive, decay * taken + away
        largest = np.maximum(decay * largest, np.abs(taken))
        found.append((written, taken, largest))
    written, *others = (np.stack(parts, axis=-3) for parts in zip(*found, strict=True))
    return written, farther(written, *others)


def cotangents_apart(run: StateRun, X, *, chunk=0):
    """The same for the cotangents of the states, in reverse time: sums of what outputs bring, b cᵀ,
    and of what the steps take away. So a chunk adds, also where a step leaves nothing of it."""
    written, taken, found = X, np.zeros_like(X), []
    decays, driven = np.exp(run.g)[..., None], outer(run.b, run.c)
    largest, steps = taken, run.k.shape[-2]
    for t in reversed(range(steps)):
        k = run.k[..., t, :]
        if t + 1 < steps and (t + 1) % max(chunk, LONG) == 0:  # chunks begin at the start
            written = written - taken
            largest = taken = np.zeros_like(written)
        written = written + driven[..., t, :, :]
        found.append((written, taken, largest))
        away = outer(k, run.beta[..., t, :] * recalled(written - taken, k))
        taken = taken + away
        largest = np.maximum(largest, np.abs(taken))
        written, taken, largest = (decays[..., t, :, :] * x for x in (written, taken, largest))
    written, *others = (np.stack(parts[::-1], axis=-3) for parts in zip(*found, strict=True))
    return [written, farther(written, *others)]


def farther(x, y, largest=None):
    """y with an error of a rounding, up or down, where it is farther from x: a rounding of y, or of
    the largest sum on the way to it."""
    error = (NEXT - 1) * np.abs(y if largest is None else largest)
    up, down = y + error, y - error
    return np.where(np.abs(x - up) > np.abs(x - down), up, down)


def in_blocks(run: StateRun, X, **_):
    """Blocks of √l steps side by side from rest; then the state before each block goes through."""
    l = run.k.shape[-2]
    size = ceil(sqrt(l))
    count = -(-l // size)
    cut = StateRun(*(cut_in_blocks(x, count, size) for x in run))
    rest = by_steps(cut, np.zeros_like(X)[..., None, :, :])
    blocks = []
    for j in range(count):
        carried = []
        for t in range(size):
            X = _applied(StateRun(*(x[..., j, t, :] for x in cut)), X)
            carried.append(X)
        blocks.append(rest[..., j, :, :, :] + np.stack(carried, axis=-3))
        X = blocks[-1][..., -1, :, :]
    return np.concatenate(blocks, axis=-3)[..., :l, :, :]


def cut_in_blocks(x, count, size):
    """(…, l, n) as (…, count, size, n), with zeros at the end."""
    more = np.zeros((*x.shape[:-2], count * size - x.shape[-2], x.shape[-1]), x.dtype)
    return np.concatenate([x, more], axis=-2).reshape(*x.shape[:-2], count, size, x.shape[-1])


def in_chunks(run: StateRun, X, **_):
    """Chunks of 16: what each step takes away solves a triangular system, row by row.

    X_i = e^{G_i} X + Σ_{j≤i} e^{G_i − G_j} (b_j c_jᵀ − k_j ω_jᵀ) with the sums G of g in the chunk.
    """
    found = []
    for start in range(0, run.k.shape[-2], CHUNK):
        part = run.at(slice(start, start + CHUNK))
        found.append(_chunk(part, X))
        X = found[-1][..., -1, :, :]
    return np.concatenate(found, axis=-3)


def _chunk(run: StateRun, X):
    l = run.k.shape[-2]
    start, decays = decayed(run.g, X)
    drives, keys = (x[..., None, :, :] * decays for x in (run.b, run.k))
    before = (np.tri(l, k=-1) > 0)[..., None]
    by_b, by_k = ((x * run.k[..., None, :]).sum(-1)[..., None] for x in (drives, keys))
    taken = recalled(start, run.k) + (np.where(before, by_b, 0) * run.c[..., None, :, :]).sum(-2)
    omega = []
    for i in range(l):
        missing = taken[..., i, :]
        if omega:
            missing = missing - (by_k[..., i, :i, :] * np.stack(omega, axis=-2)).sum(-2)
        omega.append(run.beta[..., i, :] * missing)
    sums = product(drives.mT, run.c[..., None, :, :])
    return start + sums - product(keys.mT, np.stack(omega, axis=-2)[..., None, :, :])


def decayed(g, X):
    """The state decayed to each step of a chunk, and the decays to each step from those before it.

    The sums of gates are taken step by step, so that an array that rounds at random does it there.
    """
    l, whole = g.shape[-2], 0
    span, spans, sums = np.zeros_like(g), [], []
    for i in range(l):
        earlier = (np.arange(l) < i)[:, None]
        span, whole = np.where(earlier, span + g[..., i : i + 1, :], 0), whole + g[..., i, :]
        spans.append(span)
        sums.append(whole)
    decays = np.where((np.tri(l) > 0)[..., None], np.exp(np.stack(spans, axis=-3)), 0)
    return np.exp(np.stack(sums, axis=-2))[..., None] * X[..., None, :, :], decays


def doubled(run: StateRun, X, **_):
    """The associative scan of pairs: whole matrices, sums of 2m terms from those of m."""
    n = run.k.shape[-1]
    gates = np.broadcast_to(np.exp(run.g), run.k.shape)
    M = (np.eye(n, dtype=run.k.dtype) - outer(run.beta * run.k, run.k)) * gates[..., None, :]
    B, shift = outer(run.b, run.c), 1
    B = np.concatenate([B[..., :1, :, :] + product(M[..., 0, :, :], X)[..., None, :, :],
                        B[..., 1:, :, :]], axis=-3)  # fmt: skip
    while shift < B.shape[-3]:
        late = M[..., shift:, :, :]
        added = B[..., shift:, :, :] + product(late, B[..., :-shift, :, :])
        B = np.concatenate([B[..., :shift, :, :], added], axis=-3)
        M = np.concatenate([M[..., :shift, :, :], product(late, M[..., :-shift, :, :])], axis=-3)
        shift *= 2
    return B
