"""Planted bugs in packed scans, whose sequences must be independent, and in single steps."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import of_result
from refssm.conformance.planted.recurrences import RESETS
from refssm.conformance.planted.scan import programs
from refssm.conformance.planted.scan.programs import same
from refssm.scan import LINEAR_SCAN_PACKED, LINEAR_STEP

PACKED, STEP = programs.planting(LINEAR_SCAN_PACKED), programs.planting(LINEAR_STEP)


def _by_step(step):
    """A scan from x_k = step(k, a_k, x_{k-1}, b_k, r_k)."""

    def stepped(right, a, b, resets):
        first, rest = resets[..., None] != 0, np.zeros_like(b[..., 0, :])
        return programs.stepwise(lambda k, *given: step(k, *given, first[..., k, :]), a, b, rest)

    return stepped


def _with_chunks_that_have_one(resets):
    """The resets, and one more at the start of every chunk of 64 steps with a reset."""
    starts = np.zeros_like(resets)
    for k in range(0, resets.shape[-1], 64):
        starts[..., k] = resets[..., k : k + 64].any(-1)
    return resets | starts


def _flags_not_combined(right, a, b, resets):
    """An associative scan that uses only the flag of the last step of a span."""
    a, x = (y.astype(np.result_type(a, b)) for y in np.broadcast_arrays(a, b))
    ended = np.moveaxis(np.broadcast_to(resets[..., None] != 0, x.shape), -2, 0)

    def combined(a, x, a_early, x_early):
        return a * a_early, np.where(ended[-len(x) :], 0, a * x_early) + x

    return programs.in_tree(combined, a, x)


PACKED.plant(
    *RESETS,
    ("reset_of_chunk_start", "a chunk of 64 with a reset in it begins from rest",
     {"resets": _with_chunks_that_have_one}),
    ("flags_not_combined", "an associative scan that sees the last step's flag only",
     _flags_not_combined),
    ("input_dropped", "x_k = 0 at a reset",
     lambda right, a, b, r: right(a, np.where(r[..., None], 0, b).astype(b.dtype), r)),
    ("first_dropped", "x_0 = 0 where the first step is flagged", lambda right, a, b, r:
     right(a, b * ((r == 0) | (np.arange(r.shape[-1]) > 0))[..., None], r)),
    ("input_decays", "the input decays at a reset",
     lambda right, a, b, r: right(a, np.where(r[..., None], a * b, b), r)),
    ("half_forgotten", "the state halved at a reset", lambda right, a, b, r:
     right(np.where(r[..., None], a / 2, a), b, np.zeros_like(r))),
    ("carry_lost_64", "the carry lost at chunks of 64",
     {"resets": lambda r: r | (np.arange(r.shape[-1]) % 64 == 0)}),
    ("decay_late", "a_{k-1} in place of a_k", {"a": lambda a: np.roll(a, 1, -2)}),
    ("backwards", "scanned from the end", lambda right, a, b, r:
     right(a[..., ::-1, :], b[..., ::-1, :], r[..., ::-1])[..., ::-1, :].copy()),
    ("state_in_bfloat16", "the state kept in bfloat16", _by_step(
        lambda k, a_k, x, b_k, first: bfloat16(np.where(first, 0, a_k * x) + b_k))),
    ("input_late", "b_{k-1} in place of b_k", {"b": programs.late}),
)  # fmt: skip
PACKED.plant(("conjugate", "the decay conjugated", {"a": np.conj}), by="value[complex64]")
PACKED.plant(
    ("nan_leaks", "a decay of zero in place of the reset: 0 · NaN is NaN", lambda right, a, b, r:
     right(np.where(r[..., None], 0, a).astype(a.dtype), b, np.zeros_like(r))),
    ("masked_by_product", "the state times 0 at a reset: 0 · NaN is NaN", _by_step(
        lambda k, a_k, x, b_k, first: (a_k * (x * ~first) if k else 0) + b_k)),
    ("nan_spread", "0 · NaN of the future reaches the past", {"b": programs.masked_by_product}),
    by="nan",
)  # fmt: skip


def _back(*, conj=np.conj, conj_x=np.conj, cut=True, cut_a=True, at=0, cast=same):
    """The VJP; `cut` and `cut_a`: does the adjoint, or da, stop at a reset, `at` steps later?"""

    def vjp(right, dx, a, b, resets):
        first, rest = resets[..., None] != 0, np.zeros_like(b[..., 0, :])
        x, ended = programs.scan(np.where(first, 0, a), b, rest), np.roll(first, at, axis=-2) & cut
        back = np.where(ended, 0, conj(a))
        g = programs.adjoint(dx, lambda k, g: back[..., k + 1, :] * g, cast=cast)
        da = conj_x(programs.before(x, rest)) * g
        return unbroadcast(np.where(first & cut_a, 0, da), a), unbroadcast(g, b), None

    return vjp


PACKED.plant(
    ("leaks", "db goes on through a reset", _back(cut=False)),
    ("decay_leaks", "da_k = x_{k-1}* g_k at a reset", _back(cut_a=False)),
    ("both_leak", "no gradient cut", _back(cut=False, cut_a=False)),
    ("cut_late", "the adjoint cut one step after the reset", _back(at=1)),
    ("cut_early", "the adjoint cut one step before the reset", _back(at=-1)),
    ("float16", "the adjoint carried in float16", _back(cast=float16)),
    ("sign", "db with the other sign", {"b": np.negative}),
    by="gradient",
)
PACKED.plant(
    ("decay_not_conjugated", "the decay not conjugated", _back(conj=same)),
    ("state_not_conjugated", "the state not conjugated", _back(conj_x=same)),
    by="gradient[complex64]",
)

STEP.plant(
    ("decay_and_state_apart", "a + x + b", lambda right, a, b, x: a + x + b),
    ("input_decays", "a (x + b)", lambda right, a, b, x: a * (x + b)),
    ("sign", "a x − b", {"b": np.negative}),
    ("exchanged", "b x + a: decay and input exchanged", lambda right, a, b, x: right(b, a, x)),
    ("state_and_input", "a b + x: state and input exchanged",
     lambda right, a, b, x: right(a, x, b)),
    ("state_forgotten", "b alone", {"x": programs.zero}),
    ("not_updated", "the state as it was", lambda right, a, b, x: x + 0 * a * b),
    ("negative_decay", "|a| in place of a", {"a": lambda a: np.abs(a).astype(a.dtype)}),
    ("state_in_bfloat16", "the new state rounded to bfloat16", of_result(bfloat16)),
    ("state_in_half", "the state before rounded to float16", {"x": float16}),
    ("small_input_lost", "inputs below 1e-3 of the state dropped", lambda right, a, b, x:
     right(a, np.where(np.abs(b) < 1e-3 * np.abs(x), 0, b).astype(b.dtype), x)),
)  # fmt: skip
STEP.plant(("conjugate", "the decay conjugated", {"a": np.conj}), by="value[complex64]")
STEP.plant(
    ("masked_by_product", "a x dropped where a is 0, NaN and all",
     lambda right, a, b, x: np.where(a == 0, b, np.nan_to_num(a, nan=1) * x + b)), by="nan"
)  # fmt: skip
STEP.plant(
    ("exchanged", "da and dx exchanged", lambda right, *args: right(*args)[::-1]),
    ("decay_for_state", "da = a* dx'",
     lambda right, d, a, b, x: (unbroadcast(a.conj() * d, a), *right(d, a, b, x)[1:])),
    ("decay_forgotten", "dx = dx'",
     lambda right, d, a, b, x: (*right(d, a, b, x)[:2], unbroadcast(d + 0 * a, x))),
    by="gradient",
)  # fmt: skip
STEP.plant(
    ("a_not_conjugated", "a for a*",
     lambda right, d, a, b, x: (*right(d, a, b, x)[:2], unbroadcast(a * d, x))),
    ("x_not_conjugated", "x for x*",
     lambda right, d, a, b, x: (unbroadcast(x * d, a), *right(d, a, b, x)[1:])),
    by="gradient[complex64]",
)  # fmt: skip
