"""Planted bugs in linear scans, each written for a scan from x0 and planted in both operators."""

import numpy as np

from refssm.conformance.planted import Deviation
from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32
from refssm.conformance.planted.scan.base import planting, right, stepwise
from refssm.conformance.planted.scan.dense import DEVIATIONS as DENSE
from refssm.conformance.planted.scan.diagonal import DEVIATIONS as DIAGONAL
from refssm.conformance.planted.scan.packed import DEVIATIONS as PACKED
from refssm.conformance.planted.scan.types import TYPES
from refssm.conformance.planted.scan.vjp import DEVIATIONS as GRADIENTS

FORWARD, planted = planting()


@planted("sign", "value[float32]", "b subtracted")
def _sign(a, b, x0):
    return stepwise(lambda k, a_k, x, b_k: a_k * x - b_k, a, b, x0)


@planted("conjugate", "value[complex64]", "the decay conjugated")
def _conjugate(a, b, x0):
    return right(a.conj(), b, x0)


@planted("decay_late", "value[float32]", "a_{k-1} in place of a_k")
def _decay_late(a, b, x0):
    return right(np.roll(a, 1, axis=-2), b, x0)


@planted("decay_early", "value[float32]", "a_{k+1} in place of a_k")
def _decay_early(a, b, x0):
    return right(np.roll(a, -1, axis=-2), b, x0)


@planted("decay_after", "value[float32]", "a_k (x_{k-1} + b_k): the input decays too")
def _decay_after(a, b, x0):
    return stepwise(lambda k, a_k, x, b_k: a_k * (x + b_k), a, b, x0)


@planted("exclusive", "value[float32]", "x_{k-1} returned for x_k")
def _exclusive(a, b, x0):
    x = right(a, b, x0)
    return np.concatenate(
        [np.broadcast_to(x0[..., None, :], x[..., :1, :].shape), x[..., :-1, :]], -2
    )


@planted("input_late", "value[float32]", "b_{k-1} in place of b_k")
def _input_late(a, b, x0):
    return right(a, np.concatenate([np.zeros_like(b[..., :1, :]), b[..., :-1, :]], -2), x0)


@planted("backwards", "value[float32]", "scanned from the end")
def _backwards(a, b, x0):
    return right(a[..., ::-1, :], b[..., ::-1, :], x0)[..., ::-1, :].copy()


def _carry_lost(size, only=None):
    """Every chunk of `size` (or only one of them) starts from rest."""

    def scan(a, b, x0):
        def step(k, a_k, x, b_k):
            lost = k > 0 and k % size == 0 and only in (None, k // size)
            return b_k + 0 * x if lost else a_k * x + b_k

        return stepwise(step, a, b, x0)

    return scan


for _size in (64, 128, 256):
    _what = f"the carry lost at chunks of {_size}"
    planted(f"carry_lost_{_size}", "value[float32]", _what)(_carry_lost(_size))
planted("carry_lost_fourth", "value[float32]", "the carry lost at the fourth chunk of 64 only")(
    _carry_lost(64, 3)
)


@planted("carry_undecayed", "value[float32]", "the carry of a chunk of 64 added without its decay")
def _carry_undecayed(a, b, x0):
    x = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b, x0))
    carry = x0
    for start in range(0, b.shape[-2], 64):
        piece = (..., slice(start, start + 64), slice(None))
        x[piece] = right(a[piece], b[piece], carry if start == 0 else 0 * x[..., 0, :])
        x[piece] += 0 if start == 0 else carry[..., None, :]
        carry = x[piece][..., -1, :]
    return x


@planted(
    "combined_wrong_way", "value[float32]", "the associative operator with its sides exchanged"
)
def _combined_wrong_way(a, b, x0):
    a, x = (y.astype(np.result_type(a, b, x0)) for y in np.broadcast_arrays(a, b))
    x[..., :1, :] += a[..., :1, :] * x0[..., None, :]
    step = 1
    while step < x.shape[-2]:
        before, after = a[..., :-step, :].copy(), a[..., step:, :].copy()
        x[..., step:, :] = before * x[..., step:, :] + x[..., :-step, :]
        a[..., step:, :] = before * after
        step *= 2
    return x


@planted("last_element", "value[float32]", "the last time step not written")
def _last_element(a, b, x0):
    x = right(a, b, x0)
    x[..., -1, :] = 0
    return x


@planted("last_channel", "value[float32]", "the last channel left out")
def _last_channel(a, b, x0):
    x = right(a, b, x0)
    x[..., x.shape[-1] // 2 * 2 :] = 0
    return x


@planted("ragged_tail", "value[float32]", "the tail beyond a multiple of 32 scanned from rest")
def _ragged_tail(a, b, x0):
    whole = b.shape[-2] // 32 * 32
    return stepwise(lambda k, a_k, x, b_k: b_k + (a_k * x if k != whole else 0 * x), a, b, x0)


@planted("decay_of_first_batch", "value[float32]", "the first member's decay used for the batch")
def _decay_of_first_batch(a, b, x0):
    return right(np.broadcast_to(a[:1], a.shape) if a.ndim > 2 else a, b, x0)


for _name, _cast in {"float16": float16, "bfloat16": bfloat16, "tf32": tf32}.items():
    planted(_name, "value[float32]", f"{_name} arithmetic")(
        lambda a, b, x0, cast=_cast: stepwise(
            lambda k, a_k, x, b_k: cast(cast(a_k) * cast(x)) + b_k, a, b, x0
        )
    )
planted("state_in_bfloat16", "value[float32]", "the state kept in bfloat16")(
    lambda a, b, x0: stepwise(lambda k, a_k, x, b_k: bfloat16(a_k * x + b_k), a, b, x0)
)


@planted("log_domain", "value[float32]", "cumulative sums of logarithms of the decay")
def _log_domain(a, b, x0):
    with np.errstate(all="ignore"):
        total = np.cumsum(np.log(a), axis=-2)
        driven = np.cumsum(b * np.exp(-total), axis=-2)
        return (np.exp(total) * (driven + x0[..., None, :])).astype(np.result_type(a, b, x0))


@planted("divided_by_products", "value[float32]", "inputs divided by the product of decays")
def _divided_by_products(a, b, x0):
    with np.errstate(all="ignore"):
        product = np.cumprod(a, axis=-2)
        x = product * (np.cumsum(b / product, axis=-2) + x0[..., None, :])
        return x.astype(np.result_type(a, b, x0))


@planted("nan_swallowed", "nan[float32]", "NaN replaced by zero")
def _nan_swallowed(a, b, x0):
    return right(np.nan_to_num(a, nan=0.0), np.nan_to_num(b, nan=0.0), x0)


@planted("nan_spread", "nan[float32]", "masked by multiplication: 0 · NaN reaches the past")
def _nan_spread(a, b, x0):
    return right(a, b, x0) + 0 * b.sum(axis=-2, keepdims=True)


@planted("infinity_clamped", "nan[float32]", "overflow clamped to the largest number")
def _infinity_clamped(a, b, x0):
    x = right(a, b, x0)
    return np.nan_to_num(x, nan=np.nan) if x.dtype.kind == "f" else x


@planted("small_flushed", "value[float32]", "values below the smallest normal flushed to zero")
def _small_flushed(a, b, x0):
    x = right(a, b, x0)
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x).astype(x.dtype)


@planted("small_decay_flushed", "value[float32]", "decays below 1e-6 taken as zero")
def _small_decay_flushed(a, b, x0):
    return right(np.where(np.abs(a) < 1e-6, 0, a).astype(a.dtype), b, x0)


@planted("decay_clipped", "value[float32]", "|a| clipped to 1 − 1e-4")
def _decay_clipped(a, b, x0):
    size = np.abs(a)
    limit = np.where(size > 1 - 1e-4, (1 - 1e-4) / np.where(size == 0, 1, size), 1)
    return right((a * limit).astype(a.dtype), b, x0)


@planted("growth_clipped", "value[float32]", "|a| > 1 clipped to 1")
def _growth_clipped(a, b, x0):
    size = np.abs(a)
    return right((a / np.maximum(size, 1)).astype(a.dtype), b, x0)


@planted("zero_decay_kept", "value[float32]", "a = 0 taken as the smallest of what log allows")
def _zero_decay_kept(a, b, x0):
    return right(np.where(a == 0, 1e-4, a).astype(a.dtype), b, x0)


@planted("negative_decay", "value[float32]", "|a| in place of a")
def _negative_decay(a, b, x0):
    return right(np.abs(a).astype(a.dtype), b, x0)


@planted("offset", "zero[float32]", "1e-12 added to every input against division by zero")
def _offset(a, b, x0):
    return right(a, b + b.dtype.type(1e-12), x0)


FROM_ONLY = [
    ("state_ignored", "value[float32]", "x0 taken as zero", lambda a, b, x0: right(a, b, 0 * x0)),
    (
        "state_undecayed",
        "value[float32]",
        "x_0 = x0 + b_0",
        lambda a, b, x0: right(np.concatenate([0 * a[..., :1, :] + 1, a[..., 1:, :]], -2), b, x0),
    ),
    (
        "state_ignored_in_batch_of_one",
        "value[float32]",
        "x0 taken as zero where the batch is 1",
        lambda a, b, x0: right(a, b, x0 * (x0.shape[0] != 1) if x0.ndim > 1 else x0),
    ),
    (
        "state_in_half",
        "value[float32]",
        "x0 rounded to float16",
        lambda a, b, x0: right(a, b, float16(x0)),
    ),
    (
        "state_real",
        "value[complex64]",
        "the imaginary part of x0 dropped",
        lambda a, b, x0: right(a, b, x0.real.astype(x0.dtype)),
    ),
    (
        "state_every_step",
        "value[float32]",
        "x0 added at every step",
        lambda a, b, x0: right(a, b + x0[..., None, :], 0 * x0),
    ),
]


def _from_rest(scan):
    """A scan from x0 as one from rest."""
    return lambda a, b: scan(a, b, np.zeros_like(b[..., 0, :] if b.shape[-2] else b.sum(-2)))


DEVIATIONS = [
    *(Deviation("linear_scan", n, c, w, _from_rest(f)) for n, c, w, f in [*FORWARD, *TYPES]),
    *(Deviation("linear_scan_from", n, c, w, f) for n, c, w, f in [*FORWARD, *TYPES, *FROM_ONLY]),
    *GRADIENTS,
    *PACKED,
    *DENSE,
    *DIAGONAL,
]
