"""Planted bugs of selective scans in chunks, by exponentials of sums, and associative scans."""

import numpy as np

from refssm.conformance.planted.scan.right import hillis_steele, started
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.programs import Bugs, parts
from refssm.conformance.planted.selective_scan.right import differences, discrete, masked_sums

CHUNKS = Bugs()
plant = CHUNKS.plant


def _carry(size, only=None, kept=0):
    """Chunks of `size`, or only one of them, start from a part `kept` of the carry."""
    return parts(update=lambda k, a, x, b:
        a * x * (kept if k and k % size == 0 and only in (None, k // size) else 1) + b)  # fmt: skip


def _short_refused(right, u, *others):
    if u.shape[-1] < 16:
        raise IndexError("block of 16 out of range")
    return right(u, *others)


plant(on.SCAN,
      ("carry_lost_64", "the carry lost at chunks of 64", _carry(64)),
      ("carry_lost_128", "the carry lost at chunks of 128", _carry(128)),
      ("carry_lost_fourth", "the carry lost at the fourth chunk of 64 only", _carry(64, only=3)),
)  # fmt: skip
plant(on.SCAN[:1], ("carry_lost_256", "the carry lost at chunks of 256", _carry(256)))
plant(on.PACKED,
      ("carry_lost_16", "the carry lost at chunks of 16", _carry(16)),
      ("short_refused", "lengths below a block of 16 raise", _short_refused))  # fmt: skip
plant(on.STATEFUL,
      ("carry_halved", "half of the carry at chunks of 128", _carry(128, kept=0.5)),
      ("length_one", "x0 left out where l is 1",  # on a path of its own, from rest
       lambda right, u, dt, A, B, C, x0, resets:
       right(u, dt, A, B, C, x0 * (u.shape[-1] > 1), resets)))  # fmt: skip
plant((*on.SCAN, *on.STATEFUL, "selective_scan_packed"),
      ("ragged_tail", "the tail beyond a multiple of 32 scanned from rest",
       lambda right, u, *others: right(u, *others, update=lambda k, a, x, b:
       b + (0 if k and k == u.shape[-1] // 32 * 32 else a) * x)))  # fmt: skip


def in_chunks(size, states):
    """Chunks of `size` steps, or one chunk, with states(u, dt, A, B, C, x0)."""

    def wrong(right, u, dt, A, B, C, x0, resets):
        y, l = [], u.shape[-1]
        for start in range(0, l, size or l):
            w = slice(start, start + (size or l))
            x = states(u[..., w], dt[..., w], A, B[..., w, :], C[..., w, :], x0)
            y.append((C[..., w, :] * x).sum(-1))
            x0 = x[..., -1, :].copy()
        return np.concatenate(y, axis=-1), x0

    return wrong


def _grown(s, A):
    """e^{A s}."""
    return np.exp(s[..., None] * A[..., None, :])


def carried_by(sums):
    """Chunks of 64 steps; the carry decays by the exponential of sums(dt) at the end."""

    def states(u, dt, A, B, C, x0):
        local = started(hillis_steele)(*discrete(u, dt, A, B, C, x0), 0 * x0)
        return local + _grown(sums(dt), A) * x0[..., None, :]

    return in_chunks(64, states)


def scores(size, sums=masked_sums, diagonal=0, first=True):
    """Chunks by e^{A s_kj}, with sums s_kj of steps, masked `first` or after the exponential."""

    def states(u, dt, A, B, C, x0):
        below = np.tri(dt.shape[-1], dtype=bool)
        s = np.where(below, sums(dt)[..., 1:], 0 if first else differences(dt)[..., 1:])
        E = _grown(s, A[..., None, :]) * np.tri(len(below), k=diagonal, dtype=bool)[..., None]
        x = np.einsum("...kjn,...jn->...kn", E, (dt * u)[..., None] * B)
        return x + _grown(np.cumsum(dt, axis=-1), A) * x0[..., None, :]

    return in_chunks(size, states)


def _late_carry(right, u, dt, A, B, C, x0, resets):
    """The carry of a chunk of 64 gets the decay of the chunk before: that of the first is 1."""
    y, before = [], np.zeros_like(dt[..., :1])
    for start in range(0, u.shape[-1], 64):
        w = slice(start, start + 64)
        given = u[..., w], dt[..., w], A, B[..., w, :], C[..., w, :], x0
        alone = started(hillis_steele)(*discrete(*given), 0 * x0)
        s = np.cumsum(dt[..., w], axis=-1)
        y.append((C[..., w, :] * (alone + _grown(s, A) * x0[..., None, :])).sum(-1))
        x0, before = alone[..., -1, :] + _grown(before, A)[..., 0, :] * x0, s[..., -1:]
    return (np.concatenate(y, axis=-1) if y else u), x0


plant((*on.SCAN, *on.STATEFUL),
      ("carry_decayed_late", "the carry of a chunk of 64 decays as in the chunk before",
       _late_carry),
      ("carry_from_wrong_end", "the carry of a chunk of 64 decays by the steps to come",
       carried_by(lambda dt: np.cumsum(dt[..., ::-1], axis=-1)[..., ::-1])),
      ("carry_exclusive", "the carry of a chunk of 64 without the decay of the step itself",
       carried_by(lambda dt: np.cumsum(dt, axis=-1) - dt)),
      ("carry_undecayed", "the carry of a chunk of 64 without its decay",
       carried_by(lambda dt: 0 * dt)),
      ("carry_decayed_whole", "the carry of a chunk of 64 decays by the whole chunk at every step",
       carried_by(lambda dt: 0 * dt + dt.sum(-1, keepdims=True))))  # fmt: skip
plant(("selective_scan", "mamba_scan_stateful"),
      ("exponentiated_then_masked", "e^(A s) above the diagonal too, then multiplied by 0: ∞ · 0",
       scores(64, first=False)))  # fmt: skip
plant(("selective_scan_stateful", "mamba_scan"),
      ("diagonal_masked", "the input of the step itself masked too", scores(64, diagonal=-1)),
)  # fmt: skip


def _divided(u, dt, A, B, C, x0):
    """e^{A S} (x0 + Σ e^{−A S} dt u B): the second factor overflows."""
    E = _grown(np.cumsum(dt, axis=-1), A)
    return E * (np.cumsum((dt * u)[..., None] * B / E, axis=-2) + x0[..., None, :])


def _by_scan(scan):
    """All states by a scan of (a, b)."""
    return in_chunks(None, lambda *args: started(scan)(*discrete(*args), args[-1]))


def _exclusive(a, b):
    """x_{k−1} instead of x_k."""
    x = hillis_steele(a, b)
    return np.concatenate([0 * x[..., :1, :], x[..., :-1, :]], axis=-2)


def _doublings(levels=64, joined=lambda before, x, after, later: after * x + later):
    """The associative scan with doubled distances; `joined` combines a span with the later one."""

    def scan(a, b):
        a, x = a.astype(b.dtype), b.copy()
        for step in (2**i for i in range(levels) if 2**i < x.shape[-2]):
            before, after = a[..., :-step, :].copy(), a[..., step:, :].copy()
            x[..., step:, :] = joined(before, x[..., :-step, :], after, x[..., step:, :])
            a[..., step:, :] = before * after
        return x

    return scan


plant(on.SCAN,
      ("divided_by_decays", "inputs divided by the product of all decays",
       in_chunks(None, _divided)),
      ("sides_exchanged", "the associative operator with its sides exchanged",
       _by_scan(_doublings(joined=lambda before, x, after, later: before * later + x))),
      ("exclusive", "an exclusive scan for the inclusive one", _by_scan(_exclusive)),
      ("backwards", "scanned from the end", _by_scan(lambda a, b:
       hillis_steele(a[..., ::-1, :], b[..., ::-1, :])[..., ::-1, :])),
      ("eight_levels", "only seven doublings: inputs 128 steps back are lost",
       _by_scan(_doublings(levels=7))))  # fmt: skip


def _tuned(bad, limit=lambda n: n - 1):
    """A code path for sizes with bad(l, n), wrong there: it skips states from limit(n) on."""

    def unread(C):
        l, n = C.shape[-2:]
        return np.where(bad(l, n) & (np.arange(n) >= limit(n)), 0, C)

    return {"C": unread}


LOST = "one of the state's entries lost for"
plant(("selective_scan",),
      ("wrong_for_long", f"{LOST} l > 128", _tuned(lambda l, n: l > 128)),
      ("wrong_for_blocks", f"{LOST} l a multiple of 64", _tuned(lambda l, n: l % 64 == 0)),
      ("wrong_for_wide", f"{LOST} n > 64: entries beyond are left out",
       _tuned(lambda l, n: n > 64, lambda n: 64)),
      ("wrong_for_odd_state", f"{LOST} n odd", _tuned(lambda l, n: n % 2 == 1)))  # fmt: skip
