"""Planted bugs of selective scans in chunks, by exponentials of sums, and by associative scans."""

import numpy as np

from refssm.conformance.honest.scan.base import hillis_steele, started
from refssm.conformance.honest.selective_scan.orders import discrete, masked_sums
from refssm.conformance.planted.selective_scan.programs import PACKED, SCAN, STATEFUL, Bugs, parts

CHUNKS = Bugs()
plant = CHUNKS.plant


def _carry(size, only=None, kept=0):
    """Every chunk of `size`, or only one of them, starts from a part of the carry."""

    def update(k, a, x, b):
        lost = k > 0 and k % size == 0 and only in (None, k // size)
        return a * (x * x.real.dtype.type(kept) if lost else x) + b

    return parts(update=update)


def _ragged(right, u, *others):
    whole = u.shape[-1] // 32 * 32

    def update(k, a, x, b):
        return b + (0 * x if k and k == whole else a * x)

    return right(u, *others, update=update)


def _short_refused(right, u, *others):
    if u.shape[-1] < 16:
        raise IndexError("block of 16 out of range")
    return right(u, *others)


def _one_step(right, u, dt, A, B, C, x0, resets):
    """A length of one goes through a path of its own, from rest."""
    return right(u, dt, A, B, C, x0 if u.shape[-1] > 1 else 0 * x0, resets)


plant(
    SCAN,
    ("carry_lost_64", "the carry lost at chunks of 64", _carry(64)),
    ("carry_lost_128", "the carry lost at chunks of 128", _carry(128)),
    ("carry_lost_fourth", "the carry lost at the fourth chunk of 64 only", _carry(64, 3)),
)
plant(SCAN[:1], ("carry_lost_256", "the carry lost at chunks of 256", _carry(256)))
plant(
    PACKED,
    ("carry_lost_16", "the carry lost at chunks of 16", _carry(16)),
    ("short_refused", "lengths below a block of 16 raise", _short_refused),
)
plant(
    STATEFUL,
    ("carry_halved", "half of the carry at chunks of 128", _carry(128, None, 0.5)),
    ("length_one", "x0 left out where l is 1", _one_step),
)
plant(
    (*SCAN, *STATEFUL, "selective_scan_packed"),
    ("ragged_tail", "the tail beyond a multiple of 32 scanned from rest", _ragged),
)


def carried_by(sums):
    """Chunks of 64 by the exponentials of sums(dt) at their ends, carry included."""

    def wrong(right, u, dt, A, B, C, x0, resets):
        a, b = discrete(u, dt, A, B, C, x0)
        y, state = [], x0
        for start in range(0, u.shape[-1], 64):
            w = slice(start, start + 64)
            local = started(hillis_steele)(a[..., w, :], b[..., w, :], 0 * state)
            carried = np.exp(sums(dt[..., w])[..., None] * A[..., None, :])
            x = local + carried * state[..., None, :]
            y.append((C[..., w, :] * x).sum(-1))
            state = x[..., -1, :]
        return np.concatenate(y, axis=-1), state

    return wrong


plant(
    STATEFUL,
    ("carry_from_wrong_end", "the carry of a chunk of 64 decays by the steps to come",
     carried_by(lambda dt: np.cumsum(dt[..., ::-1], axis=-1)[..., ::-1])),
    ("carry_exclusive", "the carry of a chunk of 64 without the decay of the step itself",
     carried_by(lambda dt: np.cumsum(dt, axis=-1) - dt)),
    ("carry_undecayed", "the carry of a chunk of 64 without its decay",
     carried_by(lambda dt: 0 * dt)),
    ("carry_decayed_whole", "the carry of a chunk of 64 decays by the whole chunk at every step",
     carried_by(lambda dt: 0 * dt + dt.sum(-1, keepdims=True))),
)  # fmt: skip


def scores(size, weigh):
    """Chunks by weigh(s, A, mask), e^{A s_kj} for k ≥ j of the sums s_kj of their steps."""

    def wrong(right, u, dt, A, B, C, x0, resets):
        v, y, state = (dt * u)[..., None], [], x0
        for start in range(0, u.shape[-1], size or u.shape[-1]):
            w = slice(start, start + (size or u.shape[-1]))
            S, below = np.cumsum(dt[..., w], axis=-1), np.tri(dt[..., w].shape[-1], dtype=bool)
            s = S[..., :, None] - S[..., None, :]
            s = np.where(below & (size > 0), masked_sums(dt[..., w])[..., 1:], s)
            E = weigh(s, A, below)  # (…, k, j, n)
            x = np.einsum("...kjn,...jn->...kn", E, v[..., w, :] * B[..., w, :])
            x = x + np.exp(S[..., None] * A[..., None, :]) * state[..., None, :]
            y.append((C[..., w, :] * x).sum(-1))
            state = x[..., -1, :]
        return np.concatenate(y, axis=-1), state

    return wrong


def _exponentials(s, A):
    return np.exp(s[..., None] * A[..., None, None, :])


def _then_masked(s, A, below):
    return _exponentials(s, A) * below[..., None]


def _masked_first(s, A, below):
    return np.where(below[..., None], _exponentials(np.where(below, s, 0), A), 0)


def _diagonal_masked(s, A, below):
    return _masked_first(s, A, below & ~np.eye(len(below), dtype=bool))


plant(
    ("selective_scan", "mamba_scan_stateful"),
    ("exponentiated_then_masked", "e^(A s) above the diagonal too, then multiplied by 0: ∞ · 0",
     scores(64, _then_masked)),
)  # fmt: skip
plant(
    ("mamba_scan",),
    ("differences_of_sums", "differences of one cumulative sum of dt over the whole sequence",
     scores(0, _masked_first)),
)  # fmt: skip
plant(
    ("selective_scan_stateful", "mamba_scan"),
    ("diagonal_masked", "the input of the step itself masked too", scores(64, _diagonal_masked)),
)


def _divided(right, u, dt, A, B, C, x0, resets):
    """e^{A S} (x0 + Σ e^{−A S} dt u B): the second factor overflows."""
    E = np.exp(np.cumsum(dt, axis=-1)[..., None] * A[..., None, :])
    x = E * (np.cumsum((dt * u)[..., None] * B / E, axis=-2) + x0[..., None, :])
    return (C * x).sum(-1), x[..., -1, :]


def _by_scan(scan):
    """All states by some scan of (a, b)."""

    def wrong(right, u, dt, A, B, C, x0, resets):
        a, b = discrete(u, dt, A, B, C, x0)
        x = started(scan)(a, b, x0)
        return (C * x).sum(-1), x[..., -1, :].copy()

    return wrong


def _sides_exchanged(a, b):
    a, x, step = a.astype(b.dtype), b.copy(), 1
    while step < x.shape[-2]:
        before, after = a[..., :-step, :].copy(), a[..., step:, :].copy()
        x[..., step:, :] = before * x[..., step:, :] + x[..., :-step, :]
        a[..., step:, :], step = before * after, 2 * step
    return x


def _exclusive(a, b):
    """x_{k−1} for x_k."""
    x = hillis_steele(a, b)
    return np.concatenate([0 * x[..., :1, :], x[..., :-1, :]], axis=-2)


def _backwards(a, b):
    return hillis_steele(a[..., ::-1, :], b[..., ::-1, :])[..., ::-1, :].copy()


def _eight_levels(a, b):
    """Seven doublings, whatever the length."""
    a, x = a.astype(b.dtype), b.copy()
    for step in (1, 2, 4, 8, 16, 32, 64):
        x[..., step:, :] = a[..., step:, :] * x[..., :-step, :] + x[..., step:, :]
        a[..., step:, :] = a[..., step:, :] * a[..., :-step, :]
    return x


plant(
    SCAN,
    ("divided_by_decays", "inputs divided by the product of all decays", _divided),
    ("sides_exchanged", "the associative operator with its sides exchanged",
     _by_scan(_sides_exchanged)),
    ("exclusive", "an exclusive scan for the inclusive one", _by_scan(_exclusive)),
    ("backwards", "scanned from the end", _by_scan(_backwards)),
    ("eight_levels", "only seven doublings: inputs 128 steps back are lost",
     _by_scan(_eight_levels)),
)  # fmt: skip


def _tuned(bad, limit=lambda n: n - 1):
    """A choice that is wrong where bad(l, n): entries of the state from limit(n) on not read."""

    def wrong(right, u, dt, A, B, C, *others):
        l, n = C.shape[-2:]
        return right(
            u, dt, A, B, np.where(np.arange(n) < limit(n), C, 0) if bad(l, n) else C, *others
        )

    return wrong


LOST = "one of the state's entries lost for"
plant(
    ("selective_scan",),
    ("wrong_for_long", f"{LOST} l > 128", _tuned(lambda l, n: l > 128)),
    ("wrong_for_blocks", f"{LOST} l a multiple of 64", _tuned(lambda l, n: l % 64 == 0)),
    ("wrong_for_wide", f"{LOST} n > 64: entries beyond are left out",
     _tuned(lambda l, n: n > 64, lambda n: 64)),
    ("wrong_for_odd_state", f"{LOST} n odd", _tuned(lambda l, n: n % 2 == 1)),
)  # fmt: skip
