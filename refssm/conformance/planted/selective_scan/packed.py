"""Planted bugs in selective scans of packed sequences: where they are cut, and what leaks."""

import numpy as np

from refssm.conformance.honest.selective_scan.forms import biased
from refssm.conformance.planted.selective_scan.programs import PACKED, Around, Bugs

RESETS = Bugs()
plant = RESETS.plant


def late(r):
    """Each reset one step later."""
    return np.concatenate([0 * r[..., :1], r[..., :-1]], axis=-1) != 0


def _early(r):
    return np.concatenate([r[..., 1:], 0 * r[..., :1]], axis=-1) != 0


def _on_grid(r):
    """At the beginning of the block of 16 that has one."""
    k = np.arange(r.shape[-1])
    starts = np.add.reduceat(r, k[::16], axis=-1) > 0
    return np.where(k % 16 == 0, np.repeat(starts, 16, axis=-1)[..., : k.size], False)


def _places(r):
    return np.arange(r.shape[-1])


plant(
    PACKED,
    ("resets_ignored", "one sequence throughout", {"resets": lambda r: r & False}),
    ("reset_late", "the state dropped one step late", {"resets": late}),
    ("reset_early", "the state dropped one step early", {"resets": _early}),
    ("reset_on_grid", "the state dropped at the beginning of the block of 16",
     {"resets": _on_grid}),
    ("reset_within_64", "resets beyond the first chunk of 64 lost",
     {"resets": lambda r: r & (_places(r) < 64)}),
    ("first_reset_only", "only the first reset taken",
     {"resets": lambda r: r & (np.cumsum(r, axis=-1) <= 1)}),
    ("last_reset_only", "only the last reset taken",
     {"resets": lambda r: r & (np.cumsum(r[..., ::-1], axis=-1)[..., ::-1] <= 1)}),
    ("resets_of_first_batch", "the first member's resets for all",
     {"resets": lambda r: r & False | r[:1]}),
    ("resets_inverted", "dropped where the sequence goes on", {"resets": np.logical_not}),
)  # fmt: skip
plant(
    PACKED[:1],
    ("reset_lost_on_grid", "resets at multiples of 16 lost",
     {"resets": lambda r: r & (_places(r) % 16 != 0)}),
)  # fmt: skip


def _decay_times(factor):
    """The decay times `factor` at a reset, where only finite numbers are dropped by 0."""

    def wrong(right, u, dt, A, B, C, x0, resets):
        kept = np.where(resets, factor, 1).astype(dt.dtype)[..., None]
        return right(
            u, dt, A, B, C, x0, None, update=lambda k, a, x, b: kept[..., k, :] * a * x + b
        )

    return wrong


def _step_masked(right, u, dt, A, B, C, x0, resets):
    """dt set to 0 at a reset: neither the state is dropped nor the input taken."""
    return right(u, np.where(resets, 0, dt), A, B, C, x0, None)


def _first_input_lost(right, u, dt, A, B, C, x0, resets):
    """The first input of a sequence dropped with the state."""
    return right(np.where(resets, 0, u), dt, A, B, C, x0, resets)


def _old_state_read(right, *args):
    """The old state is still read at the first step of a sequence."""
    gone = iter(np.moveaxis(args[-1], -1, 0))

    def read(C_k, x, before):
        return (C_k * (x + np.where(next(gone)[..., None], before, 0))).sum(-1)

    return right(*args, read=read)


def _nan_leaks(right, u, *others):
    """The right scan, NaN of another sequence taken to zero by 0 · x, in the sum over all."""
    y, x = right(u, *others)
    masked = np.cumsum(others[-1], axis=-1) > 0
    return y + (0 * (u * ~masked)).sum(-1, keepdims=True) * masked, x


plant(
    PACKED,
    ("reset_by_small_decay", "the decay times e^(−10) at a reset", _decay_times(np.exp(-10))),
    ("step_masked", "dt set to 0 at a reset, and nothing else", _step_masked),
    ("first_input_lost", "the first input of a sequence dropped too", _first_input_lost),
    ("old_state_read", "C reads the old state at the first step too", _old_state_read),
)
plant(
    PACKED,
    ("reset_by_zero_decay", "the decay multiplied by 0: NaN leaks", _decay_times(0)),
    ("nan_leaks", "NaN of the first sequence masked by 0 · x", _nan_leaks),
    by="nan",
)
plant(
    ("mamba_scan_packed",),
    ("bias_at_padding", "dt_bias only where dt is positive, as after masking the pre-activation",
     Around(before=lambda dt, dt_bias:
            biased(np.where(dt > 0, dt + dt_bias[..., None], dt), 0 * dt_bias))),
)  # fmt: skip
