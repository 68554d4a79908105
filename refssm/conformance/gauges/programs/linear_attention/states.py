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
    found = []
    for t in range(run.k.shape[-2]):
        now = run.at(t)
        X = _applied(now, X) + outer(now.b, now.c)
        found.append(X)
    return np.stack(found, axis=-3)


def apart(run: StateRun, X, *, chunk=0):
    """What steps have written and what they have taken away: two sums of a chunk, or of 128 steps.

    So a chunk adds: its sums are of their own, beside the solution of its system. No later step
    corrects their rounding errors, and nothing is taken away before the end. What was taken away
    errs by a rounding more, to the side where it shows: a sum of a few terms may be exact by luck,
    and another one is not.
    """
    written, taken, found = X, np.zeros_like(X), []
    for t in range(run.k.shape[-2]):
        now = run.at(t)
        if t and t % max(chunk, LONG) == 0:
            X = written = written - taken
            taken = np.zeros_like(X)
        decay, b, c = np.exp(now.g)[..., None], now.b, now.c
        X = decay * X
        omega = now.beta * recalled(X, now.k)
        X = X - outer(now.k, omega) + outer(b, c)
        written, taken = decay * written + outer(b, c), decay * taken + outer(now.k, omega)
        found.append((written, _farther(written, taken)))
    return tuple(np.stack(parts, axis=-3) for parts in zip(*found, strict=True))


def _farther(x, y):
    """y with an error of a rounding, up or down, where it is farther from x."""
    up, down = NEXT * y, y / NEXT
    return np.where(np.abs(x - up) > np.abs(x - down), up, down)


def in_blocks(run: StateRun, X, **_):
    """Blocks of √l steps side by side from rest; then the state before each block goes through."""
    l = run.k.shape[-2]
    size = ceil(sqrt(l))
    count = -(-l // size)
    cut = StateRun(*(_cut(x, count, size) for x in run))
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


def _cut(x, count, size):
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
    span, omega, found = run.g[..., :0, :], [], []  # the gates from each step before to this one
    whole = 0
    for i in range(run.k.shape[-2]):
        now = run.at(i)
        span, whole = span + now.g[..., None, :], whole + now.g
        decays, start = np.exp(span), np.exp(whole)[..., None] * X
        taken = recalled(start, now.k)
        keys, drives = run.k[..., :i, :] * decays, run.b[..., :i, :] * decays
        by_k = (keys * now.k[..., None, :]).sum(-1)
        by_b = (drives * now.k[..., None, :]).sum(-1)
        before = np.stack(omega, axis=-2) if omega else run.c[..., :0, :]
        taken = taken + (by_b[..., None] * run.c[..., :i, :]).sum(-2)
        omega.append(now.beta * (taken - (by_k[..., None] * before).sum(-2)))
        span = np.concatenate([span, np.zeros_like(run.g[..., :1, :])], axis=-2)
        written = np.concatenate([drives, run.b[..., i : i + 1, :]], axis=-2)
        taken_by = np.concatenate([keys, run.k[..., i : i + 1, :]], axis=-2)
        sums = product(written.mT, run.c[..., : i + 1, :])
        found.append(start + sums - product(taken_by.mT, np.stack(omega, axis=-2)))
    return np.stack(found, axis=-3)


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
