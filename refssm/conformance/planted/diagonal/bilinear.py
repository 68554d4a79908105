"""Planted bugs in S4D's kernel under the bilinear map."""

import numpy as np

from refssm.conformance.planted.diagonal import every_kernel as every
from refssm.conformance.planted.diagonal.every_kernel import first_gradient
from refssm.conformance.planted.planting import of_result
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR
from refssm.diagonal.sums import bilinear_powers, times

BILINEAR = every.planted(DIAGONAL_KERNEL_BILINEAR)


def _with(powers=bilinear_powers, gain=lambda h, step: step / (1 - h)):
    """The kernel with other powers of Ā, from h = ½dt·w, or another gain B̄/B."""

    def kernel(right, w, B, C, dt, *, l):
        step = dt[..., None]
        h = step * w / 2
        return every.summed(C * gain(h, step) * B, powers(h, l), w, B, C, dt)

    return kernel


def _with_root(root):
    return _with(lambda h, l: root(h)[..., None] ** times(h, l))


def _with_log(log):
    return _with(lambda h, l: np.exp(log(h)[..., None] * times(h, l)))


def _clipped(h, l):
    size = np.abs((1 + h) / (1 - h))
    shrunk = np.minimum(1, 0.999 / np.maximum(size, 0.5)).astype(size.dtype)
    return bilinear_powers(h, l) * shrunk[..., None] ** times(h, l)


BILINEAR.plant(
    ("rounded_root", "powers of a rounded root", _with_root(lambda h: (1 + h) / (1 - h))),
    # 2 artanh h, which real h < −1 do not have
    ("real_logarithm", "NaN for dt·w ≤ −2", _with_log(lambda h: 2 * np.arctanh(h))),
    # for real h within 1 only
    ("one_sided", "log(1 + h), for dt·w < −2 too", _with_log(lambda h: np.log1p(h) - np.log1p(-h))),
    ("signs_exchanged", "Ā for −w", _with_root(lambda h: (1 - h) / (1 + h))),
    ("input_signs", "B̄ with 1 + h", _with(gain=lambda h, step: step / (1 + h))),
    ("half_forgotten", "dt·w for ½dt·w", _with_root(lambda h: (1 + 2 * h) / (1 - 2 * h))),
    ("backward", "backward Euler's Ā", _with_root(lambda h: 1 / (1 - 2 * h))),
    ("forward", "Euler's Ā", _with_root(lambda h: 1 + 2 * h)),
    ("exponential", "e^{dt·w} for Ā", _with_log(lambda h: 2 * h)),
    ("held", "B̄ of zero-order hold", _with(gain=lambda h, step: step * every.held(2 * h))),
    ("euler_input", "B̄ = dt·B", _with(gain=lambda h, step: step)),
    ("undivided", "B̄ without dt", _with(gain=lambda h, step: 1 / (1 - h))),
    ("sqrt_step", "√dt: the orthogonal form of the map",
     _with(gain=lambda h, step: np.sqrt(step) / (1 - h))),
    ("shifted_convention", "SciPy's C and D: (K_k + K_{k−1})/2",
     of_result(lambda k: (k + every.late(k)) / 2)),
    ("unstable_guard", "|Ā| clipped at 0.999", _with(_clipped)),
    ("length_kept", "C (I − Ā^l) in the place of C: truncation undone twice",
     lambda right, w, B, C, dt, *, l:
     right(w, B, C * (1 - bilinear_powers(dt[..., None] * w / 2, l + 1)[..., l]), dt, l=l)),
)  # fmt: skip
BILINEAR.plant(
    # as S4D's code takes it; real through complex numbers
    ("log_of_root", "the logarithm of the rounded root",
     _with_log(lambda h: np.log((1 + h) / (1 - h) + 0j))),
    by="value[complex64]",
)  # fmt: skip


def _input_constant(right, dk, w, B, C, dt, *, l):
    dw, dB, *others = right(dk, w, B, C, dt, l=l)
    step = dt[..., None]
    return every.more(dw, -dB * (B * step / (2 - step * w)).conj()), dB, *others


BILINEAR.plant(
    ("input_constant", "B̄ held constant in dw", _input_constant),
    ("zero_dropped", "E_{k−1} by dividing by Ā: NaN where Ā is 0", first_gradient(
        lambda dw, w, B, C, dt: np.where(dt[..., None] * w + 2 == 0, np.nan, dw))),
    ("as_held", "dw of zero-order hold's exponential", first_gradient(
        lambda dw, w, B, C, dt: dw * ((1 - dt[..., None] * w / 2) ** 2).conj())),
    ("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}),
    ("dB_negated", "dB with the other sign", {"B": np.negative}),
    by="gradient",
)  # fmt: skip
BILINEAR.plant(("dC_real", "the real part of dC", {"C": every.real_part}), by="gradient[complex64]")
