"""Planted bugs in one step of a selective scan: what decays, what enters, what is read, in how
many bits, from which member of the batch."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32, to_bits
from refssm.conformance.planted.selective_scan.base import (
    EACH,
    LONG,
    PACKED,
    SCAN,
    STATEFUL,
    STEP,
    STEPPED,
    Table,
    given,
    parts,
    unrolled,
)

TABLE = Table()
plant = TABLE.plant
DEVIATIONS = TABLE.bugs


def _held(u, dt, A, B):
    """(e^{dt A} − 1)/A u B: zero-order hold."""
    rate = np.where(A == 0, 1, A)
    return np.where(A == 0, dt, np.expm1(dt * rate) / rate) * u * B


plant(STEPPED, "held_input", "B by zero-order hold, (e^(dt A) − 1)/A", parts(drive=_held))
plant(STEPPED, "euler_decay", "1 + dt A for e^(dt A)", parts(decay=lambda dt, A: 1 + dt * A))
plant(
    STEPPED,
    "bilinear_decay",
    "(1 + dt A/2)/(1 − dt A/2) for e^(dt A)",
    parts(decay=lambda dt, A: (2 + dt * A) / (2 - dt * A)),
)
plant(
    STEPPED,
    "power_for_exp",
    "(1 + dt A/1024)^1024 for e^(dt A)",
    parts(decay=lambda dt, A: (1 + dt * A / A.real.dtype.type(1024)) ** 1024),
)
plant(
    STEPPED, "undiscretized_input", "u B enters without dt", parts(drive=lambda u, dt, A, B: u * B)
)
plant(STEPPED, "step_twice", "dt² u B", parts(drive=lambda u, dt, A, B: dt * dt * u * B))
plant(
    ("selective_scan", "selective_step"),
    "input_at_padding",
    "u B enters where dt is 0",
    parts(drive=lambda u, dt, A, B: np.where(dt == 0, u, dt * u) * B),
)
plant(
    STEPPED,
    "input_decays",
    "a (x + b): the input decays in its first step",
    parts(update=lambda k, a, x, b: a * (x + b)),
)
plant(
    STEPPED,
    "reads_before",
    "y = C · x before the step",
    parts(read=lambda C, x, w: (C * w).sum(-1)),
)
plant(STEPPED, "sign_of_rate", "e^(−dt A)", parts(decay=lambda dt, A: np.exp(-dt * A)))
plant(
    ("selective_step", "mamba_scan"),
    "logarithm_of_rate",
    "−e^A for A: the logarithm is taken for granted",
    given(lambda A, **_: {"A": -np.exp(A)}),
)
plant(
    ("selective_scan", "mamba_step"),
    "B_for_C",
    "B and C exchanged",
    given(lambda B, C, **_: {"B": C, "C": B}),
)

COMPLEX = {
    "rate_conjugate": ("A* for A", lambda A, **_: {"A": A.conj()}),
    "rate_real": ("the imaginary part of A dropped", lambda A, **_: {"A": A.real.astype(A.dtype)}),
    "input_conjugate": ("B* for B", lambda B, **_: {"B": B.conj()}),
    "output_conjugate": ("C* for C: a Hermitian product", lambda C, **_: {"C": C.conj()}),
}
for _name, (_what, _change) in COMPLEX.items():
    plant(("selective_scan", "mamba_scan_packed"), _name, _what, given(_change), "value[complex64]")


def _real_part(scale):
    """Of the output, as where one of each conjugate pair is stored."""

    def core(*args):
        y, x = unrolled(*args)
        return (scale * y.real).astype(y.dtype), x

    return core


plant(STEPPED, "real_part", "the real part of y", _real_part(1), "value[complex64]")
plant(("mamba_scan",), "doubled_real_part", "2 Re y", _real_part(2), "value[complex64]")


def _imaginary_lost(*args):
    y, x = unrolled(*args)
    return (y if np.iscomplexobj(args[0]) else y.real.copy()), x


plant(SCAN, "imaginary_lost", "y of the type of u", _imaginary_lost, "value[complex64]")


def _moved(v, by):
    """A time axis −1, moved; the end that is left keeps what it has."""
    k = np.clip(np.arange(v.shape[-1]) + by, 0, max(v.shape[-1] - 1, 0))
    return v[..., k]


def _by_other_step(by):
    """The decay of one step with dt of another; dt u enters as it was."""

    def core(u, dt, A, B, C, x0, resets):
        drives = iter(np.moveaxis(dt * u, -1, 0)[..., None])
        other = _moved(dt, by)
        return unrolled(u, other, A, B, C, x0, resets, drive=lambda *args: next(drives) * args[-1])

    return core


plant(SCAN, "decay_late", "e^(dt_(k−1) A)", _by_other_step(-1))
plant(STATEFUL, "decay_early", "e^(dt_(k+1) A)", _by_other_step(1))
plant(PACKED, "decay_of_first_step", "e^(dt_0 A) at every step", _by_other_step(-4096))
plant(SCAN, "input_late", "u_(k−1)", given(lambda u, **_: {"u": np.roll(u, 1, axis=-1)}))
plant(SCAN, "C_late", "C_(k−1)", given(lambda C, **_: {"C": np.roll(C, 1, axis=-2)}))
plant(
    STATEFUL, "B_constant", "B_0 at every step", given(lambda B, **_: {"B": 0 * B + B[..., :1, :]})
)


ROUNDED = {
    "state_in_bfloat16": ("the state kept in bfloat16", bfloat16),
    "state_in_float16": ("the state kept in float16", float16),
    "state_in_tf32": ("the state kept in TF32", tf32),
    "state_in_14_bits": ("the state kept in 14 bits", lambda x: to_bits(x, 14)),
}
for _name, (_what, _cast) in ROUNDED.items():
    _core = parts(update=lambda k, a, x, b, cast=_cast: cast(a * x + b))
    plant(("selective_scan", "mamba_step", "mamba_scan_packed"), _name, _what, _core)

CAST = {
    "rates_in_bfloat16": ("A rounded to bfloat16", lambda A, **_: {"A": bfloat16(A)}),
    "steps_in_bfloat16": ("dt rounded to bfloat16", lambda dt, **_: {"dt": bfloat16(dt)}),
    "B_in_bfloat16": ("B rounded to bfloat16", lambda B, **_: {"B": bfloat16(B)}),
    "C_in_float16": ("C rounded to float16", lambda C, **_: {"C": float16(C)}),
    "inputs_in_tf32": ("u rounded to TF32", lambda u, **_: {"u": tf32(u)}),
}
for _name, (_what, _change) in CAST.items():
    plant(("selective_scan_stateful", "mamba_scan", "selective_step"), _name, _what, given(_change))

DECAYS = {
    "exponent_in_bfloat16": ("dt A in bfloat16", lambda dt, A: np.exp(bfloat16(dt * A))),
    "decay_in_float16": ("e^(dt A) in float16", lambda dt, A: float16(np.exp(dt * A))),
    "decay_flushed": ("e^(dt A) below 1e-4 as 0", lambda dt, A: _flushed(np.exp(dt * A))),
    "decay_clipped": ("|e^(dt A)| at most 1 − 1e-4", lambda dt, A: _clipped(np.exp(dt * A))),
    "exponent_clamped": ("dt A at least −5", lambda dt, A: np.exp(_raised(dt * A))),
}


def _flushed(a):
    return np.where(np.abs(a) < 1e-4, 0, a).astype(a.dtype)


def _clipped(a):
    limit = a.real.dtype.type(1 - 1e-4)
    return np.where(np.abs(a) > limit, a * limit, a)


def _raised(x):
    return np.where(x.real < -5, x - x.real - 5, x)


for _name, (_what, _decay) in DECAYS.items():
    plant(("selective_scan", "mamba_scan_stateful"), _name, _what, parts(decay=_decay))


def _limited(low, high):
    """Steps clipped to a range, as some models have it before the scan."""
    return given(lambda dt, **_: {"dt": np.clip(dt, low, high).astype(dt.dtype)})


plant(EACH, "step_at_least", "dt clipped at 1e-3 from below", _limited(1e-3, np.inf))
plant(EACH, "step_at_most", "dt clipped at 0.1 from above", _limited(0, 0.1))
plant(
    ("selective_scan", "selective_scan_stateful"),
    "padding_resets",
    "the state dropped where dt is 0",
    parts(decay=lambda dt, A: np.where(dt == 0, 0, np.exp(dt * A))),
)


def _of_first(v, axis):
    """The first member along an axis of the batch for all of them."""
    return np.broadcast_to(np.take(v, [0], axis=axis), v.shape) if v.ndim > -axis - 1 else v


def _by_channel(v, count):
    """Shared by the channels, but read on by one row for each of them."""
    if v.ndim < 4 or v.shape[-3] != 1 or count == 1:
        return v
    return np.concatenate([np.roll(v, i, axis=-1) for i in range(count)], axis=-3)


def _batch_by_channel(v, count):
    """Shared by the channels, but taken from the member of the batch with the channel's number."""
    if v.ndim < 4 or v.shape[-3] != 1:
        return v
    picked = v[np.arange(count) % v.shape[0], 0]
    return np.broadcast_to(picked, (v.shape[0], count, *v.shape[-2:]))


SHARED = {
    "B_of_first_batch": ("the first member's B for all", lambda B, **_: {"B": _of_first(B, -4)}),
    "C_of_first_batch": ("the first member's C for all", lambda C, **_: {"C": _of_first(C, -4)}),
    "rates_of_first_channel": ("one A for all channels", lambda A, **_: {"A": _of_first(A, -2)}),
    "B_by_channel": (
        "B read on from channel to channel, which share it",
        lambda u, B, **_: {"B": _by_channel(B, u.shape[-2] if u.ndim > 1 else 1)},
    ),
    "C_batch_by_channel": (
        "C of the batch's member with the number of the channel",
        lambda u, C, **_: {"C": _batch_by_channel(C, u.shape[-2] if u.ndim > 1 else 1)},
    ),
}
for _name, (_what, _change) in SHARED.items():
    plant(("selective_scan", "mamba_scan_packed", "mamba_step"), _name, _what, given(_change))


def _spread(u, dt, A, B, C, x0, resets):
    """Masked by multiplication: 0 · NaN reaches the past."""
    y, x = unrolled(u, dt, A, B, C, x0, resets)
    return y + 0 * u.sum(-1, keepdims=True), x


def _even_only(C):
    """Nothing of the last entry where their number is odd."""
    return np.where(np.arange(C.shape[-1]) < C.shape[-1] // 2 * 2, C, 0)


def _contiguous(v):
    return v.ravel(order="K").reshape(v.shape)


plant(
    LONG,
    "nan_spread",
    "masked by multiplication: 0 · NaN reaches the past",
    _spread,
    "nan[float32]",
)
plant(
    EACH,
    "strides_of_C_ignored",
    "C read as if it were contiguous",
    given(lambda C, **_: {"C": _contiguous(C)}),
    "strides[float32]",
)
plant(
    SCAN,
    "offset",
    "1e-12 added to u against division by zero",
    given(lambda u, **_: {"u": u + u.dtype.type(1e-12)}),
    "zero[float32]",
)
plant(
    STEP,
    "channel_dropped",
    "a state of odd size without its last entry",
    given(lambda C, **_: {"C": _even_only(C)}),
)
