"""Honest oscillators: one step after the other, doubled, by chunks, by powers, in double."""

import numpy as np

from honest import Honest
from refssm._numerics.broadcasting import with_batch
from refssm.linoss import (
    IM,
    IMEX,
    explicit_slopes,
    implicit_slopes,
    puller,
    rows_of_each,
    runner,
)


def _full(M, F, x0, resets):
    """All with the same leading axes, and the first state in the first input."""
    batch = np.broadcast_shapes(M.shape[:-2], F.shape[:-3], x0.shape[:-2], resets.shape[:-1])
    kind = np.result_type(M, F, x0)
    F = with_batch(F, 3, batch).astype(kind)
    resets = np.broadcast_to(resets, (*batch, F.shape[-3]))
    if F.shape[-3]:
        carried = np.where(resets[..., 0, None, None], 0, _times(M, x0))
        F[..., 0, :, :] += carried
    return with_batch(M, 2, batch), F, resets


def _times(M, x):
    """M x, the second product first."""
    z, y = x[..., 0, :], x[..., 1, :]
    first = y * M[..., 1, :] + z * M[..., 0, :]
    return np.stack([first, y * M[..., 3, :] + z * M[..., 2, :]], axis=-2)


def _product(M, N):
    """M N for each oscillator."""
    a, b, c, d = np.moveaxis(M, -2, 0)
    e, f, g, h = np.moveaxis(N, -2, 0)
    return rows_of_each(a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)


def by_steps(M, F, x0, resets):
    """One after the other, in place."""
    M, F, resets = _full(M, F, x0, resets)
    for k in range(1, F.shape[-3]):
        F[..., k, :, :] += np.where(
            resets[..., k, None, None], 0, _times(M, F[..., k - 1, :, :])
        )  # fmt: skip
    return F


def doubled(M, F, x0, resets):
    """Hillis and Steele's scan; a span with a beginning in it ignores all before it."""
    M, x, ended = _full(M, F, x0, resets)
    ended, step, power = ended.copy(), 1, M[..., None, :, :]
    while step < x.shape[-3]:
        early, late = (..., slice(None, -step), slice(None), slice(None)), slice(step, None)
        carried = _times(power, x[early])
        x[..., late, :, :] += np.where(ended[..., late, None, None], 0, carried)
        ended[..., late] = ended[..., late] | ended[..., :-step]
        power, step = _product(power, power), 2 * step
    return x


def in_chunks(size):
    """Chunks from rest, then powers of M times the state before each."""

    def scan(M, F, x0, resets):
        M, F, resets = _full(M, F, x0, resets)
        rest, state = np.zeros_like(F[..., :1, :, :].sum(-3)), None
        for start in range(0, F.shape[-3], size):
            w = (..., slice(start, start + size), slice(None), slice(None))
            own = by_steps(M, F[w], rest, resets[..., start : start + size])
            begun, power = np.zeros(resets.shape[:-1], bool), M
            for j in range(own.shape[-3]):
                begun = begun | resets[..., start + j]
                if state is not None:
                    own[..., j, :, :] += np.where(begun[..., None, None], 0, _times(power, state))
                power = _product(M, power)
            F[w], state = own, own[..., -1, :, :].copy()
        return F

    return scan


def by_powers(M, F, x0, resets):
    """Σ_d M^d F_{k−d} over the steps of one sequence, lag by lag."""
    M, F, resets = _full(M, F, x0, resets)
    number, x, power = np.cumsum(resets, axis=-1), F.copy(), M
    for d in range(1, F.shape[-3]):
        same = (number[..., d:] == number[..., :-d])[..., None, None]
        x[..., d:, :, :] += np.where(same, _times(power[..., None, :, :], F[..., :-d, :, :]), 0)
        power = _product(power, M)
    return x


def in_double(M, F, x0, resets):
    """Double precision inside, rounded once."""
    kind = np.result_type(M, F, x0)
    wide = [a.astype(np.result_type(a, np.float64)) for a in (M, F, x0)]
    return by_steps(wide[0], wide[1], wide[2], resets).astype(kind)


def _by_quotients(A, dt):
    """The rows of IM as quotients by 1 + dt² A."""
    d = A * (dt * dt) + 1
    return rows_of_each(1 / d, -(A * dt) / d, dt / d, 1 / d, dt / d, dt * dt / d)


def _by_products(A, dt):
    """The rows of IMEX, dt (dt A) subtracted."""
    one = np.ones_like(A * dt)
    return rows_of_each(
        one, -(A * dt), dt + 0 * A, one - dt * (dt * A), dt + 0 * A, dt * dt + 0 * A
    )


SCANS = {
    "by_steps": by_steps,
    "doubled": doubled,
    "chunks_of_16": in_chunks(16),
    "powers": by_powers,
    "double_inside": in_double,
}


def _made(recurrence, rows_of, slopes_of):
    for name, scan in SCANS.items():
        pairs = recurrence.mirrors(
            runner(rows_of, scan), puller(rows_of, slopes_of, scan), lambda op: lambda f: f
        )
        for op, (forward, vjp) in zip(recurrence.operators, pairs, strict=True):
            own = vjp if name in ("by_steps", "doubled") else None
            yield Honest(op.name, name, forward, own)


IMPLEMENTATIONS = [
    *_made(IM, _by_quotients, implicit_slopes),
    *_made(IMEX, _by_products, explicit_slopes),
]
