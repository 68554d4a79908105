"""Planted bugs in selective scans of packed sequences: where they are cut, and what leaks."""

import numpy as np

from refssm.conformance.honest.selective_scan.forms import biased
from refssm.conformance.planted.selective_scan.base import PACKED, Table, given, unrolled

TABLE = Table()
plant = TABLE.plant
DEVIATIONS = TABLE.bugs


def cut(name, what, resets, on=PACKED, check="value[float32]"):
    """A scan cut in other places."""
    change = given(lambda resets, change=resets, **_: {"resets": _changed(resets, change)})
    plant(on, name, what, change, check)


def _changed(resets, change):
    return None if resets is None else change(resets)


def _late(r):
    return np.concatenate([0 * r[..., :1], r[..., :-1]], axis=-1) != 0


def _early(r):
    return np.concatenate([r[..., 1:], 0 * r[..., :1]], axis=-1) != 0


def _on_grid(size):
    """At the beginning of the block that has one."""

    def moved(r):
        k = np.arange(r.shape[-1])
        starts = np.add.reduceat(r, k[::size], axis=-1) > 0
        return np.where(k % size == 0, np.repeat(starts, size, axis=-1)[..., : k.size], False)

    return moved


def _places(r):
    return np.arange(r.shape[-1])


cut("resets_ignored", "one sequence throughout", lambda r: r & False)
cut("reset_late", "the state dropped one step late", _late)
cut("reset_early", "the state dropped one step early", _early)
cut("reset_on_grid", "the state dropped at the beginning of the block of 16", _on_grid(16))
cut(
    "reset_lost_on_grid",
    "resets at multiples of 16 lost",
    lambda r: r & (_places(r) % 16 != 0),
    PACKED[:1],
)
cut("reset_within_64", "resets beyond the first chunk of 64 lost", lambda r: r & (_places(r) < 64))
cut("first_reset_only", "only the first reset taken", lambda r: r & (np.cumsum(r, axis=-1) <= 1))
cut(
    "last_reset_only",
    "only the last reset taken",
    lambda r: r & (np.cumsum(r[..., ::-1], axis=-1)[..., ::-1] <= 1),
)
cut("resets_of_first_batch", "the first member's resets for all", lambda r: r & False | r[:1])
cut("resets_inverted", "dropped where the sequence goes on", np.logical_not)


def _multiplied(u, dt, A, B, C, x0, resets):
    """The decay multiplied by 0: finite numbers only are dropped."""
    resets = np.zeros(u.shape[-1:], bool) if resets is None else resets
    kept = iter(np.moveaxis(1 - resets.astype(dt.dtype), -1, 0)[..., None])
    return unrolled(u, dt, A, B, C, x0, None, update=lambda k, a, x, b: next(kept) * a * x + b)


def _softened(drop):
    """Decays of −drop at a reset: e^{−drop} leaks."""

    def core(u, dt, A, B, C, x0, resets):
        resets = np.zeros(u.shape[-1:], bool) if resets is None else resets
        kept = iter(
            np.moveaxis(np.where(resets, np.exp(-drop), 1).astype(dt.dtype), -1, 0)[..., None]
        )
        return unrolled(u, dt, A, B, C, x0, None, update=lambda k, a, x, b: next(kept) * a * x + b)

    return core


plant(
    PACKED,
    "reset_by_zero_decay",
    "the decay multiplied by 0: NaN leaks",
    _multiplied,
    "nan[float32]",
)
plant(PACKED, "reset_by_small_decay", "the decay times e^(−10) at a reset", _softened(10))


def _step_masked(u, dt, A, B, C, x0, resets):
    """dt set to 0 at a reset: neither the state is dropped nor the input taken."""
    resets = np.zeros(u.shape[-1:], bool) if resets is None else resets
    return unrolled(u, np.where(resets, 0, dt), A, B, C, x0, None)


def _input_lost(u, dt, A, B, C, x0, resets):
    """The first input of a sequence dropped with the state."""
    gone = np.zeros(u.shape[-1:], bool) if resets is None else resets
    return unrolled(np.where(gone, 0, u), dt, A, B, C, x0, resets)


def _whole_sum(u, dt, A, B, C, x0, resets):
    """The old state is still read at the first step of a sequence."""
    gone = iter(np.moveaxis(np.zeros(u.shape[-1:], bool) if resets is None else resets, -1, 0))

    def read(C_k, x, before):
        return (C_k * (x + np.where(next(gone)[..., None], before, 0))).sum(-1)

    return unrolled(u, dt, A, B, C, x0, resets, read=read)


def _divided(u, dt, A, B, C, x0, resets):
    """The right scan, NaN of another sequence taken to zero by 0 · x, in the sum over all."""
    y, x = unrolled(u, dt, A, B, C, x0, resets)
    masked = np.zeros(u.shape[-1:], bool) if resets is None else np.cumsum(resets, axis=-1) > 0
    return y + (0 * (u * ~masked)).sum(-1, keepdims=True) * masked, x


plant(PACKED, "step_masked", "dt set to 0 at a reset, and nothing else", _step_masked)
plant(PACKED, "first_input_lost", "the first input of a sequence dropped too", _input_lost)
plant(PACKED, "old_state_read", "C reads the old state at the first step too", _whole_sum)
plant(PACKED, "nan_leaks", "NaN of the first sequence masked by 0 · x", _divided, "nan[float32]")
plant(
    ("mamba_scan_packed",),
    "bias_at_padding",
    "dt_bias only where dt is positive, as after masking the pre-activation",
    before=lambda dt, dt_bias: biased(np.where(dt > 0, dt + dt_bias[..., None], dt), 0 * dt_bias),
)
