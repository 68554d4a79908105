"""Planted bugs in the kernels of zero-order hold, S4D's and DSS-exp's."""

import numpy as np

from refssm.conformance.planted.diagonal import every_kernel as every
from refssm.conformance.planted.diagonal.every_kernel import held, more, real_part
from refssm.conformance.planted.planting import Planting, of_result
from refssm.diagonal import DIAGONAL_KERNEL_ZOH, DSS_EXP_KERNEL
from refssm.diagonal.sums import exponentials, times


def _with_unit_input(wrong):
    """A wrong kernel of S4D made one of DSS-exp, where B is 1."""
    return lambda right, w, C, dt, *, l: wrong(
        lambda w, B, C, dt, *, l: right(w, B * C, dt, l=l), w, np.ones_like(C), C, dt, l=l
    )


def _with(gain=lambda w, h: h * held(h * w), powers=exponentials):
    """The kernel with another gain B̄/B, of w and the step h, or other powers of e^{h·w}."""

    def kernel(right, w, B, C, dt, *, l):
        h = dt[..., None]
        return every.summed(C * gain(w, h) * B, powers(h * w, l), w, B, C, dt)

    return kernel


ZOH, EXP = every.planted(DIAGONAL_KERNEL_ZOH), every.planted(DSS_EXP_KERNEL)
EXP_WITH_INPUT = Planting(DSS_EXP_KERNEL, "float32", adapt=_with_unit_input)
for _p in (ZOH, EXP_WITH_INPUT):
    _p.plant(
        ("textbook", "(e^z − 1)/w without expm1",  # dt where w is 0
         _with(lambda w, h: np.where(w == 0, h, (np.exp(h * w) - 1) / np.where(w == 0, 1, w)))),
        ("undefined", "NaN for w = 0", _with(lambda w, h: np.expm1(h * w) / w)),
        ("published", "w*/max(|w|², 1e-7) for 1/w",  # DSS-exp as published
         _with(lambda w, h: np.expm1(h * w) * w.conj() / np.maximum(np.abs(w) ** 2, 1e-7))),
        ("euler", "B̄ = dt·B", _with(lambda w, h: h)),  # as Mamba's code has it
        ("impulse", "B̄ = B", _with(lambda w, h: 1)),  # the impulse response itself
        ("state_only", "B̄ = (e^z − 1) B", _with(lambda w, h: np.expm1(h * w))),  # without the 1/w
        ("bilinear", "the other discretization",  # which the paper lets one choose
         _with(lambda w, h: h / (1 - h * w / 2),
               lambda z, l: ((1 + z / 2) / (1 - z / 2))[..., None] ** times(z, l))),
        ("rounded_root", "powers of a rounded root",  # e^{dt·w} rounded once
         _with(powers=lambda z, l: np.exp(z)[..., None] ** times(z, l))),
        ("one_step_late", "K_{k−1} for K_k",  # C x_k with x_0 = 0: SciPy's shifted recurrence
         of_result(every.late)),
        ("clipped", "Re w clipped at −1e-4", {"w": lambda w: w - np.maximum(w.real + 1e-4, 0)}),
        ("sign", "w without its minus sign", {"w": np.negative}),
        ("step_per_length", "steps spread over l − 1", lambda right, w, B, C, dt, *, l:
         right(w, B, C, dt * dt.dtype.type(l / max(1, l - 1)), l=l)),
    )  # fmt: skip
    _p.plant(
        ("imaginary_clipped", "Im w clipped at ±100",
         {"w": lambda w: (w.real + 1j * np.clip(w.imag, -100, 100)).astype(w.dtype)}),
        by="value[complex64]",
    )  # fmt: skip
ZOH.plant(("input_forgotten", "B = 1", {"B": lambda B: 0 * B + 1}))
ZOH.plant(
    ("input_conjugated", "B* for B", {"B": np.conj}),
    ("output_conjugated", "C* for C", {"C": np.conj}),
    by="value[complex64]",
)


def _hold_constant(right, dk, *args, l):
    """Only e^{zk} is differentiated."""
    w, dt, C = args[0], args[-1], args[-2]
    v = C * held(dt[..., None] * w) * dt[..., None] * (args[1] if len(args) > 3 else 1)
    E = exponentials(dt[..., None] * w, l)
    T = (np.arange(l) * dk[..., None, :] * (v[..., None] * E).conj()).sum(-1)
    dw, *others, ddt = right(dk, *args, l=l)
    return more(0 * dw, dt[..., None] * T), *others, more(0 * ddt, (w.conj() * T).sum(-1))


for _p in (ZOH, EXP):
    _p.plant(
        ("hold_constant", "B̄ held constant in dw and ddt", _hold_constant),
        ("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}),
        ("dw_scaled", "dw without the factor dt",
         every.first_gradient(lambda dw, *args: dw / args[-1][..., None])),
        by="gradient",
    )  # fmt: skip
    _p.plant(
        ("dC_real", "the real part of dC", {"C": real_part}),
        ("dw_imaginary", "Re dw without Im dw", {"w": real_part}),
        by="gradient[complex64]",
    )
ZOH.plant(("dB_negated", "dB with the other sign", {"B": np.negative}), by="gradient")

BUGS = [*ZOH.bugs, *EXP.bugs, *EXP_WITH_INPUT.bugs]
