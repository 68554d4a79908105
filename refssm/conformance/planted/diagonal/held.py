"""Planted bugs in the kernels of zero-order hold, S4D's and DSS-exp's."""

import numpy as np

from refssm.conformance.planted.diagonal.every_kernel import (
    held,
    late,
    planted,
    powers,
    real_part,
    steps,
    summed,
)
from refssm.conformance.planted.planting import Planting
from refssm.diagonal import DIAGONAL_KERNEL_ZOH, DSS_EXP_KERNEL


def _with_unit_input(wrong):
    """A wrong kernel of S4D made one of DSS-exp, where B is 1."""

    def kernel(right, w, C, dt, *, l):
        def of_product(w, B, C, dt, *, l):
            return right(w, C * B, dt, l=l)

        return wrong(of_product, w, np.ones_like(C), C, dt, l=l)

    return kernel


ZOH, EXP = planted(DIAGONAL_KERNEL_ZOH), planted(DSS_EXP_KERNEL)
EXP_WITH_INPUT = Planting(DSS_EXP_KERNEL, "float32", adapt=_with_unit_input)


def _with(gain=lambda w, h: h * held(h * w), powers=powers):
    """The kernel with another gain B̄/B, of w and the step h, or other powers of e^{h·w}."""

    def kernel(right, w, B, C, dt, *, l):
        h = dt[..., None]
        return summed(C * gain(w, h) * B, powers(h * w, l), w, B, C, dt)

    return kernel


def _textbook(w, h):
    """(e^{dt·w} − 1)/w as it stands, dt where w is 0."""
    return np.where(w == 0, h, (np.exp(h * w) - 1) / np.where(w == 0, 1, w))


def _published(w, h):
    """DSS-exp as published: 1/w by w*/max(|w|², 1e-7)."""
    return np.expm1(h * w) * w.conj() / np.maximum(np.abs(w) ** 2, w.real.dtype.type(1e-7))


def _clipped(w):
    """Re w at most −1e-4."""
    real = np.minimum(w.real, -1e-4).astype(w.real.dtype)
    return (real + 1j * w.imag if np.iscomplexobj(w) else real).astype(w.dtype)


def _imaginary_clipped(w):
    return (w.real + 1j * np.clip(w.imag, -100, 100)).astype(w.dtype)


for _p in (ZOH, EXP_WITH_INPUT):
    _p.plant(
        ("textbook", "(e^z − 1)/w without expm1", _with(_textbook)),
        ("undefined", "NaN for w = 0", _with(lambda w, h: np.expm1(h * w) / w)),
        ("published", "w*/max(|w|², 1e-7) for 1/w", _with(_published)),
        ("euler", "B̄ = dt·B", _with(lambda w, h: h)),  # as Mamba's code has it
        ("impulse", "B̄ = B", _with(lambda w, h: 1)),  # the impulse response itself
        ("state_only", "B̄ = (e^z − 1) B", _with(lambda w, h: np.expm1(h * w))),  # without the 1/w
        ("bilinear", "the other discretization",  # which the paper lets one choose
         _with(lambda w, h: h / (1 - h * w / 2),
               lambda z, l: ((1 + z / 2) / (1 - z / 2))[..., None] ** steps(z, l))),
        ("rounded_root", "powers of a rounded root",  # e^{dt·w} rounded once
         _with(powers=lambda z, l: np.exp(z)[..., None] ** steps(z, l))),
        ("one_step_late", "K_{k−1} for K_k",  # C x_k with x_0 = 0: SciPy's shifted recurrence
         _with(powers=lambda z, l: late(powers(z, l)))),
        ("clipped", "Re w clipped at −1e-4", {"w": _clipped}),
        ("sign", "w without its minus sign", {"w": np.negative}),
        ("step_per_length", "steps spread over l − 1", lambda right, w, B, C, dt, *, l:
         right(w, B, C, dt * dt.dtype.type(l / max(1, l - 1)), l=l)),
    )  # fmt: skip
    _p.plant(
        ("imaginary_clipped", "Im w clipped at ±100", {"w": _imaginary_clipped}),
        by="value[complex64]",
    )
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
    E = powers(dt[..., None] * w, l)
    T = (np.arange(l) * dk[..., None, :] * (v[..., None] * E).conj()).sum(-1)
    dw, *others, ddt = right(dk, *args, l=l)
    return _like(dt[..., None] * T, dw), *others, _like((w.conj() * T).sum(-1), ddt)


def _like(g, right):
    """In the kind and shape of the right gradient, if it was not broadcast."""
    g = g if np.iscomplexobj(right) else g.real
    return (g if g.shape == right.shape else right).astype(right.dtype)


def _dw_scaled(right, dk, *args, l):
    dw, *others = right(dk, *args, l=l)
    return dw / args[-1][..., None], *others


for _p in (ZOH, EXP):
    _p.plant(
        ("hold_constant", "B̄ held constant in dw and ddt", _hold_constant),
        ("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}),
        ("dw_scaled", "dw without the factor dt", _dw_scaled),
        by="gradient",
    )
    _p.plant(
        ("dC_real", "the real part of dC", {"C": real_part}),
        ("dw_imaginary", "Re dw without Im dw", {"w": real_part}),
        by="gradient[complex64]",
    )
ZOH.plant(("dB_negated", "dB with the other sign", {"B": np.negative}), by="gradient")

BUGS = [*ZOH.bugs, *EXP.bugs, *EXP_WITH_INPUT.bugs]
