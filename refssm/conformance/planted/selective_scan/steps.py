"""Planted bugs in one step of a selective scan.

They change what decays, what enters, what is read, in how many bits, or from which batch member.
"""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32, to_bits
from refssm.conformance.planted.planting import in_memory_order
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.programs import Bugs, given, parts, real

STEPS = Bugs()
plant = STEPS.plant
COMPLEX = "value[complex64]"


def _held(u, dt, A, B):
    """(e^{dt A} − 1)/A u B: zero-order hold."""
    rate = np.where(A == 0, 1, A)
    return np.where(A == 0, dt, np.expm1(dt * rate) / rate) * u * B


def of_y(change):
    """Change only y, by change(y, u)."""

    def wrong(right, u, *others):
        y, x = right(u, *others)
        return change(y, u), x

    return wrong


plant(on.STEPPED,
      ("held_input", "B by zero-order hold, (e^(dt A) − 1)/A", parts(drive=_held)),
      ("euler_decay", "1 + dt A for e^(dt A)", parts(decay=lambda dt, A: 1 + dt * A)),
      ("bilinear_decay", "(1 + dt A/2)/(1 − dt A/2) for e^(dt A)",
       parts(decay=lambda dt, A: (2 + dt * A) / (2 - dt * A))),
      ("power_for_exp", "(1 + dt A/1024)^1024 for e^(dt A)",
       parts(decay=lambda dt, A: (1 + dt * A / A.real.dtype.type(1024)) ** 1024)),
      ("undiscretized_input", "u B enters without dt", parts(drive=lambda u, dt, A, B: u * B)),
      ("step_twice", "dt² u B", parts(drive=lambda u, dt, A, B: dt * dt * u * B)),
      ("input_decays", "a (x + b): the input decays in its first step",
       parts(update=lambda k, a, x, b: a * (x + b))),
      ("sign_of_rate", "e^(−dt A)", parts(decay=lambda dt, A: np.exp(-dt * A))))  # fmt: skip
plant((*on.EACH, *on.PIECES),
      ("reads_before", "y = C · x before the step",
       parts(read=lambda C, x, before: (C * before).sum(-1))))  # fmt: skip
plant(on.SCAN + on.STATEFUL,
      ("decay_below_e_40", "e^(dt A) below e^-40 taken as 0",
       parts(decay=lambda dt, A: np.where((dt * A).real < -40, 0, np.exp(dt * A)))),
      by="value[float64]")  # fmt: skip
plant(("selective_scan", "selective_step"),
      ("input_at_padding", "u B enters where dt is 0",
       parts(drive=lambda u, dt, A, B: np.where(dt == 0, u, dt * u) * B)))  # fmt: skip
plant(("selective_step", "mamba_scan"),
      ("logarithm_of_rate", "−e^A for A: the logarithm is taken for granted",
       {"A": lambda A: -np.exp(A)}))  # fmt: skip
plant(("selective_scan", "mamba_step"),
      ("B_for_C", "B and C exchanged",
       lambda right, u, dt, A, B, C, *others: right(u, dt, A, C, B, *others)))  # fmt: skip
plant(("selective_scan", "mamba_scan_packed"),
      ("rate_conjugate", "A* for A", {"A": np.conj}),
      ("rate_real", "the imaginary part of A dropped", {"A": real}),
      ("input_conjugate", "B* for B", {"B": np.conj}),
      ("output_conjugate", "C* for C: a Hermitian product", {"C": np.conj}),
      by=COMPLEX)  # fmt: skip
plant(on.STEPPED, ("real_part", "the real part of y", of_y(lambda y, u: real(y))), by=COMPLEX)
plant(("mamba_scan",),  # as where one of each conjugate pair is stored
      ("doubled_real_part", "2 Re y", of_y(lambda y, u: 2 * real(y))), by=COMPLEX)  # fmt: skip
plant(on.SCAN,
      ("imaginary_lost", "y of the type of u",
       of_y(lambda y, u: y if np.iscomplexobj(u) else y.real.copy())), by=COMPLEX)  # fmt: skip


def _earlier(dt):
    """dt_(k−1), and dt_0 at the first step."""
    return np.concatenate([dt[..., :1], dt[..., :-1]], axis=-1)


def _whole_blocks(C, size=4):
    """No output of the state's entries beyond a multiple of `size`, if there is one block."""
    n = C.shape[-1]
    return np.where(np.arange(n) < (n // size * size or n), C, 0).astype(C.dtype)


def _by_other_step(by):
    """The decay with another step's dt; dt u is right."""

    def wrong(right, u, dt, *others):
        drives = iter(np.moveaxis(dt * u, -1, 0)[..., None])
        l = dt.shape[-1]
        other = dt[..., np.clip(np.arange(l) + by, 0, max(l - 1, 0))]
        return right(u, other, *others, drive=lambda *args: next(drives) * args[-1])

    return wrong


plant(on.SCAN,
      ("decay_late", "e^(dt_(k−1) A)", _by_other_step(-1)),
      ("step_late", "dt_(k−1) for dt_k, in the decay and in the input", given(dt=_earlier)),
      ("state_tail", "entries of the state beyond a multiple of 4 left out", {"C": _whole_blocks}),
      ("input_late", "u_(k−1)", given(u=lambda u: np.roll(u, 1, axis=-1))),
      ("C_late", "C_(k−1)", {"C": lambda C: np.roll(C, 1, axis=-2)}))  # fmt: skip
plant(on.STATEFUL,
      ("decay_early", "e^(dt_(k+1) A)", _by_other_step(1)),
      ("B_constant", "B_0 at every step", {"B": lambda B: 0 * B + B[..., :1, :]}))  # fmt: skip
plant(on.PACKED, ("decay_of_first_step", "e^(dt_0 A) at every step", _by_other_step(-4096)))


def state_in(cast):
    """Round the state after every step."""
    return parts(update=lambda k, a, x, b: cast(a * x + b))


def decays(change):
    """Compute decays from their exponent by another function than np.exp."""
    return parts(decay=lambda dt, A: change(dt * A))


def _clipped(a):
    limit = a.real.dtype.type(1 - 1e-4)
    return np.where(np.abs(a) > limit, a * limit, a)


plant(("selective_scan", "mamba_step", "mamba_scan_packed"),
      ("state_in_bfloat16", "the state kept in bfloat16", state_in(bfloat16)),
      ("state_in_float16", "the state kept in float16", state_in(float16)),
      ("state_in_tf32", "the state kept in TF32", state_in(tf32)),
      ("state_in_14_bits", "the state kept in 14 bits", state_in(lambda x: to_bits(x, 14))),
)  # fmt: skip
plant(("selective_scan_stateful", "mamba_scan", "selective_step"),
      ("steps_in_bfloat16", "dt rounded to bfloat16", given(dt=bfloat16)),
      ("B_in_bfloat16", "B rounded to bfloat16", {"B": bfloat16}),
      ("C_in_float16", "C rounded to float16", {"C": float16}),
      ("inputs_in_tf32", "u rounded to TF32", given(u=tf32)))  # fmt: skip
plant((*on.LONG, "selective_step"),
      ("rates_in_bfloat16", "A rounded to bfloat16", {"A": bfloat16}))  # fmt: skip
plant(("selective_scan", "mamba_scan_stateful"),
      ("exponent_in_bfloat16", "dt A in bfloat16", decays(lambda x: np.exp(bfloat16(x)))),
      ("decay_in_float16", "e^(dt A) in float16", decays(lambda x: float16(np.exp(x)))),
      ("decay_flushed", "e^(dt A) below 1e-4 as 0",
       decays(lambda x: np.where(np.abs(np.exp(x)) < 1e-4, 0, np.exp(x)))),
      ("decay_clipped", "|e^(dt A)| at most 1 − 1e-4", decays(lambda x: _clipped(np.exp(x)))),
      ("exponent_clamped", "dt A at least −5",
       decays(lambda x: np.exp(np.where(x.real < -5, x - x.real - 5, x)))))  # fmt: skip
plant(on.EACH,  # steps clipped to a range, as some models have it before the scan
      ("step_at_least", "dt clipped at 1e-3 from below", given(dt=lambda dt: np.maximum(dt, 1e-3))),
      ("step_at_most", "dt clipped at 0.1 from above", given(dt=lambda dt: np.clip(dt, 0, 0.1))),
      ("step_within", "dt clipped to the range from 1e-3 to 0.1",
       given(dt=lambda dt: np.clip(dt, 1e-3, 0.1))),
)  # fmt: skip
plant(("selective_scan", "selective_scan_stateful"),
      ("padding_resets", "the state dropped where dt is 0",
       parts(decay=lambda dt, A: np.where(dt == 0, 0, np.exp(dt * A)))))  # fmt: skip


def _of_first(axis):
    """The first member along a batch axis for all members."""
    return lambda v: v if v.ndim < -axis else np.broadcast_to(np.take(v, [0], axis), v.shape)


def _B_by_channel(right, u, dt, A, B, *others):
    """B is shared by the channels, but read one row further for each channel."""
    if B.ndim > 3 and B.shape[-3] == 1:
        count = np.atleast_2d(u).shape[-2]
        B = np.concatenate([np.roll(B, i, axis=-1) for i in range(count)], axis=-3)
    return right(u, dt, A, B, *others)


def _C_batch_by_channel(right, u, dt, A, B, C, *others):
    """C is shared by the channels, but read from the batch member with the channel's number."""
    if C.ndim > 4 and C.shape[-3] == 1:
        picked = C[np.arange(np.atleast_2d(u).shape[-2]) % C.shape[0], :, 0]  # (d, g, l, n)
        C = np.repeat(np.swapaxes(picked, 0, 1)[None], C.shape[0], axis=0)
    return right(u, dt, A, B, C, *others)


plant(("selective_scan", "mamba_scan_packed", "mamba_step"),
      ("B_of_first_batch", "the first member's B for all", given(B=_of_first(-5))),
      ("C_of_first_batch", "the first member's C for all", given(C=_of_first(-5))),
      ("rates_of_first_channel", "one A for all channels of a group", {"A": _of_first(-2)}),
      ("B_by_channel", "B read on from channel to channel, which share it", _B_by_channel),
      ("C_batch_by_channel", "C of the batch's member with the number of the channel",
       _C_batch_by_channel))  # fmt: skip
plant(on.LONG, ("nan_spread", "masked by multiplication: 0 · NaN reaches the past",
                of_y(lambda y, u: y + 0 * u.sum(-1, keepdims=True))), by="nan")  # fmt: skip
plant(on.EACH, ("strides_of_C_ignored", "C read as if it were contiguous", {"C": in_memory_order}),
      by="strides")  # fmt: skip
plant(on.SCAN, ("offset", "1e-12 added to u against division by zero",
                given(u=lambda u: u + u.dtype.type(1e-12))), by="zero")  # fmt: skip
plant(on.STEP,
      ("channel_dropped", "a state of odd size without its last entry",
       {"C": lambda C: np.where(np.arange(C.shape[-1]) < C.shape[-1] // 2 * 2, C, 0)}))  # fmt: skip
