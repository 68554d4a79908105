"""Planted bugs in linear scans, written for a scan from x0 and planted in both operators."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.conformance.planted.arithmetic import bfloat16, float16, single, tf32
from refssm.conformance.planted.planting import every_third_call, in_memory_order, of_result
from refssm.conformance.planted.recurrences import complex_starts, starts
from refssm.conformance.planted.scan import programs
from refssm.conformance.planted.scan.programs import by_step, decay_at, from_rest, same
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM


def _carry_undecayed(right, a, b, x0):
    x = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b, x0))
    carry = x0
    for start in range(0, b.shape[-2], 64):
        piece = (..., slice(start, start + 64), slice(None))
        x[piece] = right(a[piece], b[piece], carry if start == 0 else np.zeros_like(carry))
        x[piece] += 0 if start == 0 else carry[..., None, :]
        carry = x[piece][..., -1, :]
    return x


def _combined_wrong_way(right, a, b, x0):
    a, x = (y.astype(np.result_type(a, b, x0)) for y in np.broadcast_arrays(a, b))
    x[..., :1, :] += a[..., :1, :] * x0[..., None, :]
    return programs.in_tree(lambda a, x, early, x_early: (early * a, early * x + x_early), a, x)


def _in_arithmetic(cast):
    """A scan whose products are rounded to few bits."""
    return by_step(lambda k, a_k, x, b_k: cast(cast(a_k) * cast(x)) + b_k)


def _log_domain(right, a, b, x0):
    with np.errstate(all="ignore"):
        total = np.cumsum(np.log(a), axis=-2)
        driven = np.cumsum(b * np.exp(-total), axis=-2)
        return (np.exp(total) * (driven + x0[..., None, :])).astype(np.result_type(a, b, x0))


def _divided_by_products(right, a, b, x0):
    with np.errstate(all="ignore"):
        product = np.cumprod(a, axis=-2)
        x = product * (np.cumsum(b / product, axis=-2) + x0[..., None, :])
        return x.astype(np.result_type(a, b, x0))


def _short_refused(right, a, b, x0):
    if b.shape[-2] < 16:
        raise IndexError("block of 16 out of range")
    return right(a, b, x0)


def _padded(x):
    extra = -x.shape[-2] % 32
    return np.concatenate([x, np.zeros_like(x[..., :1, :].repeat(extra, -2))], -2) if extra else x


def _overwrites_input(right, a, b, x0):
    x = right(a, b, x0)
    b[...] = x if x.dtype == b.dtype else b
    return x


def _returns_input(right, a, b, x0):
    kept = b.copy()
    x = b if b.dtype == np.result_type(a, b, x0) else kept
    x[...] = right(a, kept, x0)
    return x


def _back(*, decay=np.conj, state=np.conj, shift=1, late=False, forget=0, cast=same):
    """The VJP by the adjoint scan; each keyword replaces a part by a wrong one."""

    def vjp(right, dx, a, b, x0):
        x = programs.scan(a, b, x0)
        decays = np.broadcast_to(decay(a), x.shape)
        g = programs.adjoint(dx, lambda k, g: decays[..., k + shift, :] * g, forget, cast)
        da = state(x if late else programs.before(x, x0)) * g
        return unbroadcast_each((da, g, a[..., 0, :].conj() * g[..., 0, :]), (a, b, x0))

    return vjp


def _recurrence_forgotten(right, dx, a, b, x0):
    da, _, *dx0 = right(dx, a, b, x0)
    return da, unbroadcast(dx + 0 * b, b), *dx0


def _read_as_contiguous(dx):
    """Reads beyond the single number of an expanded cotangent."""
    memory = np.zeros(dx.size, dx.dtype)
    distinct = dx[tuple(slice(0, 1) if s == 0 else slice(None) for s in dx.strides)]
    memory[: distinct.size] = distinct.ravel()
    return memory.reshape(dx.shape)


BOTH = {
    "value": [
        ("sign", "b subtracted", {"b": np.negative}),
        ("decay_late", "a_{k-1} in place of a_k", {"a": lambda a: np.roll(a, 1, axis=-2)}),
        ("decay_early", "a_{k+1} in place of a_k", {"a": lambda a: np.roll(a, -1, axis=-2)}),
        ("decay_after", "a_k (x_{k-1} + b_k): the input decays too",
         lambda right, a, b, x0: right(a, a * b, x0)),
        ("exclusive", "x_{k-1} returned for x_k", programs.exclusive),
        ("input_late", "b_{k-1} in place of b_k", {"b": programs.late}),
        ("backwards", "scanned from the end", lambda right, a, b, x0:
         right(a[..., ::-1, :], b[..., ::-1, :], x0)[..., ::-1, :].copy()),
        *((f"carry_lost_{size}", f"the carry lost at chunks of {size}", programs.carry_lost(size))
          for size in (64, 128, 256)),
        ("carry_lost_fourth", "the carry lost at the fourth chunk of 64 only",
         decay_at(lambda k, l: k == 3 * 64)),
        ("carry_undecayed", "the carry of a chunk of 64 added without its decay",
         _carry_undecayed),
        ("combined_wrong_way", "the associative operator with its sides exchanged",
         _combined_wrong_way),
        ("last_element", "the last time step not written", of_result(lambda x:
         np.concatenate([x[..., :-1, :], 0 * x[..., -1:, :]], axis=-2))),
        ("last_channel", "the last channel left out", of_result(lambda x:
         x * (np.arange(x.shape[-1]) < x.shape[-1] // 2 * 2))),
        ("ragged_tail", "the tail beyond a multiple of 32 scanned from rest",
         decay_at(lambda k, l: k == l // 32 * 32)),
        ("decay_of_first_batch", "the first member's decay used for the batch",
         {"a": programs.of_first_member}),
        *((cast.__name__, f"{cast.__name__} arithmetic", _in_arithmetic(cast))
          for cast in (float16, bfloat16, tf32)),
        ("state_in_bfloat16", "the state kept in bfloat16",
         by_step(lambda k, a_k, x, b_k: bfloat16(a_k * x + b_k))),
        ("log_domain", "cumulative sums of logarithms of the decay", _log_domain),
        ("divided_by_products", "inputs divided by the product of decays", _divided_by_products),
        ("small_flushed", "values below the smallest normal flushed to zero", of_result(lambda x:
         np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x).astype(x.dtype))),
        ("small_decay_flushed", "decays below 1e-6 taken as zero",
         {"a": lambda a: np.where(np.abs(a) < 1e-6, 0, a).astype(a.dtype)}),
        ("decay_clipped", "|a| clipped to 1 − 1e-4", {"a": programs.clipped}),
        ("growth_clipped", "|a| > 1 clipped to 1",
         {"a": lambda a: (a / np.maximum(np.abs(a), 1)).astype(a.dtype)}),
        ("zero_decay_kept", "a = 0 taken as the smallest of what log allows",
         {"a": lambda a: np.where(a == 0, 1e-4, a).astype(a.dtype)}),
        ("negative_decay", "|a| in place of a", {"a": lambda a: np.abs(a).astype(a.dtype)}),
        ("short_refused", "lengths below a block of 16 raise", _short_refused),
        ("padded_result", "the padding to a multiple of 32 returned as well", of_result(_padded)),
    ],
    "value[complex64]": [
        ("conjugate", "the decay conjugated", {"a": np.conj}),
        ("imaginary_lost", "the result allocated with the type of b", lambda right, a, b, x0:
         right(a, b, x0) if np.iscomplexobj(b) else right(a, b, x0).real.copy()),
    ],
    "value[float64]": [
        ("single_inside", "float32 arithmetic under a float64 interface", lambda right, a, b, x0:
         right(single(a), single(b), single(x0)).astype(np.result_type(a, b, x0))),
        ("narrow_result", "float32 returned for float64", of_result(single)),
    ],
    "nan": [
        ("nan_swallowed", "NaN replaced by zero", {"a": np.nan_to_num, "b": np.nan_to_num}),
        ("nan_spread", "masked by multiplication: 0 · NaN reaches the past",
         {"b": programs.masked_by_product}),
        ("infinity_clamped", "overflow clamped to the largest number", of_result(lambda x:
         np.nan_to_num(x, nan=np.nan) if x.dtype.kind == "f" else x)),
    ],
    "zero": [("offset", "1e-12 added to every input against division by zero",
              {"b": lambda b: b + b.dtype.type(1e-12)})],
    "unchanged": [("overwrites_input", "the scan done in place on b", _overwrites_input)],
    "alias": [("returns_input", "the result is a view of b's memory", _returns_input)],
    "readonly": [("writes_scratch", "an argument used as scratch memory and restored",
                  {"a": lambda a: np.multiply(a, 1, out=a)})],
    "strides": [("strides_ignored", "memory read as if it were contiguous",
                 {"b": in_memory_order})],
    "gradient": [
        ("decay_one_early", "a_k for a_{k+1} in the adjoint", _back(shift=0)),
        ("state_one_late", "da_k = x_k* g_k", _back(late=True)),
        ("carry_lost_64", "the adjoint's carry lost at chunks of 64", _back(forget=64)),
        ("float16", "the adjoint carried in float16", _back(cast=float16)),
        ("sign", "db with the other sign", {"b": np.negative}),
        ("recurrence_forgotten", "db = dx", _recurrence_forgotten),
        ("expanded_cotangent", "a stride of 0 read as contiguous", {"dx": _read_as_contiguous}),
    ],
    "gradient[complex64]": [
        ("decay_not_conjugated", "a for a* in the adjoint", _back(decay=same)),
        ("state_not_conjugated", "x for x* in da", _back(state=same)),
    ],
}  # fmt: skip
FROM = {
    "value": [
        *starts("x0", core=1),
        ("state_undecayed", "x_0 = x0 + b_0", decay_at(lambda k, l: k == 0, 1)),
        ("state_every_step", "x0 added at every step",
         lambda right, a, b, x0: right(a, b + x0[..., None, :], 0 * x0)),
    ],
    "value[complex64]": complex_starts("x0"),
    "gradient": [
        ("state_gradient_undecayed", "dx0 = g_0", programs.start_undecayed),
        ("state_gradient_missing", "dx0 = 0", {"x0": np.zeros_like}),
        ("state_ignored_in_da", "da_0 = 0 although x0 is not", programs.start_ignored),
    ],
}  # fmt: skip


def _unrepeatable():
    """The bug `unrepeatable`, with a separate counter for each operator."""
    return {"repeat": [("unrepeatable", "a result that depends on the call", every_third_call())]}


LINEAR = programs.planting(LINEAR_SCAN, BOTH, _unrepeatable(), adapt=from_rest, usual=False)
LINEAR_FROM = programs.planting(LINEAR_SCAN_FROM, BOTH, FROM, _unrepeatable(), usual=False)
for _planting in (LINEAR, LINEAR_FROM):
    _planting.kept()
    _planting.shortcuts()
