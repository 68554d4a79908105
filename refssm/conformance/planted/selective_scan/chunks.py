"""Planted bugs of selective scans in chunks, by exponentials of sums, and by associative scans."""

import numpy as np

from refssm.conformance.honest.scan.base import hillis_steele, started
from refssm.conformance.honest.selective_scan.orders import discrete, masked_sums
from refssm.conformance.planted.selective_scan.base import (
    PACKED,
    SCAN,
    STATEFUL,
    Table,
    parts,
    unrolled,
)

TABLE = Table()
plant = TABLE.plant
DEVIATIONS = TABLE.bugs


def _carry(size, only=None, kept=0):
    """Every chunk of `size`, or only one of them, starts from a part of the carry."""

    def update(k, a, x, b):
        lost = k > 0 and k % size == 0 and only in (None, k // size)
        return a * (x * x.real.dtype.type(kept) if lost else x) + b

    return parts(update=update)


for _size, _on in {64: SCAN, 128: SCAN, 256: SCAN[:1]}.items():
    plant(_on, f"carry_lost_{_size}", f"the carry lost at chunks of {_size}", _carry(_size))
plant(PACKED, "carry_lost_16", "the carry lost at chunks of 16", _carry(16))
plant(SCAN, "carry_lost_fourth", "the carry lost at the fourth chunk of 64 only", _carry(64, 3))
plant(STATEFUL, "carry_halved", "half of the carry at chunks of 128", _carry(128, None, 0.5))


def _ragged(*args):
    whole = args[0].shape[-1] // 32 * 32

    def update(k, a, x, b):
        return b + (0 * x if k and k == whole else a * x)

    return unrolled(*args, update=update)


plant(
    (*SCAN, *STATEFUL, "selective_scan_packed"),
    "ragged_tail",
    "the tail beyond a multiple of 32 scanned from rest",
    _ragged,
)


def _short_refused(u, *others):
    if u.shape[-1] < 16:
        raise IndexError("block of 16 out of range")
    return unrolled(u, *others)


def _one_step(u, dt, A, B, C, x0, resets):
    """A length of one goes through a path of its own, from rest."""
    return unrolled(u, dt, A, B, C, x0 if u.shape[-1] > 1 else 0 * x0, resets)


plant(PACKED, "short_refused", "lengths below a block of 16 raise", _short_refused)
plant(STATEFUL, "length_one", "x0 left out where l is 1", _one_step)


def chunks_of(size, sums):
    """Chunks by the exponentials of sums(dt) at their ends, carry included."""

    def core(u, dt, A, B, C, x0, resets):
        del resets
        a, b = discrete(u, dt, A, B, C, x0)
        y, state = [], x0
        for start in range(0, u.shape[-1], size):
            w = slice(start, start + size)
            local = started(hillis_steele)(a[..., w, :], b[..., w, :], 0 * state)
            carried = np.exp(sums(dt[..., w])[..., None] * A[..., None, :])
            x = local + carried * state[..., None, :]
            y.append((C[..., w, :] * x).sum(-1))
            state = x[..., -1, :]
        return np.concatenate(y, axis=-1), state

    return core


WRONG_SUMS = {
    "carry_from_wrong_end": (
        "the carry of a chunk of 64 decays by the steps to come",
        lambda dt: np.cumsum(dt[..., ::-1], axis=-1)[..., ::-1],
    ),
    "carry_exclusive": (
        "the carry of a chunk of 64 without the decay of the step itself",
        lambda dt: np.cumsum(dt, axis=-1) - dt,
    ),
    "carry_undecayed": ("the carry of a chunk of 64 without its decay", lambda dt: 0 * dt),
    "carry_decayed_whole": (
        "the carry of a chunk of 64 decays by the whole chunk at every step",
        lambda dt: 0 * dt + dt.sum(-1, keepdims=True),
    ),
}
for _name, (_what, _sums) in WRONG_SUMS.items():
    plant(STATEFUL, _name, _what, chunks_of(64, _sums))


def scores(size, weigh):
    """Chunks by weigh(s, A, mask), e^{A s_kj} for k ≥ j of the sums s_kj of their steps."""

    def core(u, dt, A, B, C, x0, resets):
        del resets
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

    return core


def _exponentials(s, A):
    return np.exp(s[..., None] * A[..., None, None, :])


def _then_masked(s, A, below):
    return _exponentials(s, A) * below[..., None]


def _masked_first(s, A, below):
    return np.where(below[..., None], _exponentials(np.where(below, s, 0), A), 0)


plant(
    ("selective_scan", "mamba_scan_stateful"),
    "exponentiated_then_masked",
    "e^(A s) above the diagonal too, then multiplied by 0: ∞ · 0",
    scores(64, _then_masked),
)
plant(
    ("mamba_scan",),
    "differences_of_sums",
    "differences of one cumulative sum of dt over the whole sequence",
    scores(0, _masked_first),
)
plant(
    ("selective_scan_stateful", "mamba_scan"),
    "diagonal_masked",
    "the input of the step itself masked too",
    scores(64, lambda s, A, below: _masked_first(s, A, below & ~np.eye(len(below), dtype=bool))),
)


def _divided(u, dt, A, B, C, x0, resets):
    """e^{A S} (x0 + Σ e^{−A S} dt u B): the second factor overflows."""
    del resets
    E = np.exp(np.cumsum(dt, axis=-1)[..., None] * A[..., None, :])
    x = E * (np.cumsum((dt * u)[..., None] * B / E, axis=-2) + x0[..., None, :])
    return (C * x).sum(-1), x[..., -1, :]


plant(SCAN, "divided_by_decays", "inputs divided by the product of all decays", _divided)


def _by_scan(scan):
    """All states by some scan of (a, b)."""

    def core(u, dt, A, B, C, x0, resets):
        del resets
        a, b = discrete(u, dt, A, B, C, x0)
        x = started(scan)(a, b, x0)
        return (C * x).sum(-1), x[..., -1, :].copy()

    return core


def _sides_exchanged(a, b):
    """The associative operator with its sides exchanged."""
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
    """Scanned from the end."""
    return hillis_steele(a[..., ::-1, :], b[..., ::-1, :])[..., ::-1, :].copy()


def _eight_levels(a, b):
    """Eight doublings, whatever the length."""
    a, x = a.astype(b.dtype), b.copy()
    for step in (1, 2, 4, 8, 16, 32, 64):
        x[..., step:, :] = a[..., step:, :] * x[..., :-step, :] + x[..., step:, :]
        a[..., step:, :] = a[..., step:, :] * a[..., :-step, :]
    return x


for _scan, _what in (
    (_sides_exchanged, "the associative operator with its sides exchanged"),
    (_exclusive, "an exclusive scan for the inclusive one"),
    (_backwards, "scanned from the end"),
    (_eight_levels, "only seven doublings: inputs 128 steps back are lost"),
):
    plant(SCAN, _scan.__name__[1:], _what, _by_scan(_scan))


def _tuned(bad, wrong):
    """A choice that is wrong where bad(l, n)."""

    def core(u, dt, A, B, C, x0, resets):
        args = wrong(u, dt, A, B, C) if bad(u.shape[-1], A.shape[-1]) else (u, dt, A, B, C)
        return unrolled(*args, x0, resets)

    return core


def _without_last(u, dt, A, B, C):
    """The last entry of the state not read."""
    return u, dt, A, B, np.where(np.arange(C.shape[-1]) < C.shape[-1] - 1, C, 0)


def _beyond(limit):
    """The state beyond `limit` entries not read."""
    return lambda u, dt, A, B, C: (u, dt, A, B, np.where(np.arange(C.shape[-1]) < limit, C, 0))


TUNED = {
    "wrong_for_long": ("l > 128", lambda l, n: l > 128, _without_last),
    "wrong_for_blocks": ("l a multiple of 64", lambda l, n: l % 64 == 0, _without_last),
    "wrong_for_wide": ("n > 64: entries beyond are left out", lambda l, n: n > 64, _beyond(64)),
    "wrong_for_odd_state": ("n odd", lambda l, n: n % 2 == 1, _without_last),
}
for _name, (_what, _bad, _wrong) in TUNED.items():
    plant(
        ("selective_scan",),
        _name,
        f"one of the state's entries lost for {_what}",
        _tuned(_bad, _wrong),
    )
