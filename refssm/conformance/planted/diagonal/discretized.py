"""Planted bugs in S4D's kernels, of all modes and of conjugate pairs, and in DSS-exp's.

The first functions are mistakes in any kernel that has modes, coefficients and a step.
"""

import numpy as np

from refssm.conformance.planted.planting import Epsilon, Planting, of_each_result, of_result
from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_BILINEAR_REAL,
    DIAGONAL_KERNEL_ZOH,
    DIAGONAL_KERNEL_ZOH_REAL,
    DSS_EXP_KERNEL,
)
from refssm.diagonal.sums import bilinear_powers, exponentials, times
from refssm.discretize.phi import phi1


def summed(v, E, *args):
    """Σ_n v_n E_nk in the type of the arguments."""
    return (v[..., None] * E).sum(-2).astype(np.result_type(*args))


def late(k):
    """The kernel one step late, K_{k−1}."""
    return np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1)


def real_part(x):
    """Re x in the type of x."""
    return x.real.astype(x.dtype)


def first_gradient(change):
    """The right gradients, but for the first, changed by a function of it and the arguments."""

    def vjp(right, dk, *args, **sizes):
        first, *others = right(dk, *args, **sizes)
        return change(first, *args).astype(first.dtype), *others

    return vjp


def more(g, term):
    """A gradient plus another term; twice the gradient if it was broadcast."""
    term = term if np.iscomplexobj(g) else term.real
    return (g + term).astype(g.dtype) if term.shape == g.shape else 2 * g


def _without(k, start):
    """The kernel with zeros from `start` on."""
    k = k.copy()
    k[..., start:] = 0
    return k


def planted(op, beyond=64, pairs=False):
    """The bugs of any kernel; in one of them nothing is written after `beyond` steps.

    A kernel of conjugate `pairs` is real: its real part and its conjugate are right.
    """
    p = Planting(op, "float32")
    of_modes, (first, *_) = [name for name in op.inputs if name != "dt"], op.inputs
    p.usual()
    p.plant(
        ("last_mode", "the last mode of several left out",
         dict.fromkeys(of_modes, lambda a: a[..., : max(1, a.shape[-1] - 1)])),
        ("mode_tail", "modes beyond a multiple of 32 left out",
         dict.fromkeys(of_modes, lambda a: a[..., : a.shape[-1] // 32 * 32 or a.shape[-1]])),
        ("last_step", "the last step unwritten", of_result(lambda k: _without(k, -1))),
        ("tail_unwritten", f"nothing written beyond {beyond}",
         of_result(lambda k: _without(k, beyond))),
        ("reversed", "time backwards", of_result(lambda k: k[..., ::-1].copy())),
        ("doubled", "the factor 2 of conjugate pairs", of_result(lambda k: 2 * k)),
    )  # fmt: skip
    if not pairs:
        p.plant(
            ("real_part", "only the real part kept", of_result(real_part)),
            ("conjugated", "every argument conjugated", dict.fromkeys(op.inputs, np.conj)),
            by="value[complex64]",
        )
    p.plant(
        ("last_step_dropped", "the last step left out", {"dk": lambda dk: _without(dk, -1)}),
        ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
        ("first_negated", f"d{first} with the other sign", {first: np.negative}),
        by="gradient",
    )
    p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("not_conjugated", "the arguments for their conjugates",
         lambda right, dk, *args, **sizes: right(dk, *map(np.conj, args), **sizes)),
        by="gradient[complex64]",
    )  # fmt: skip
    return p


def _with(gain=lambda w, dt: dt * phi1(dt * w), powers=exponentials):
    """The kernel with another gain B̄/B, of w and dt, or other powers of Ā, of z = dt·w and l."""

    def kernel(right, w, B, C, dt, *, l):
        dt = dt[..., None]
        return summed(C * gain(w, dt) * B, powers(dt * w, l), w, B, C, dt)

    return kernel


def _with_unit_input(wrong):
    """A wrong kernel of S4D as one of DSS-exp, where B is 1."""
    return lambda right, w, C, dt, *, l: wrong(
        lambda w, B, C, dt, *, l: right(w, B * C, dt, l=l), w, np.ones_like(C), C, dt, l=l
    )


ZOH, EXP = planted(DIAGONAL_KERNEL_ZOH), planted(DSS_EXP_KERNEL)
BILINEAR = planted(DIAGONAL_KERNEL_BILINEAR)
EXP_WITH_INPUT = Planting(DSS_EXP_KERNEL, "float32", adapt=_with_unit_input)
HELD_FORMS = (  # that do not ask the right program
        ("textbook", "(e^z − 1)/w without expm1",  # dt where w is 0
         _with(lambda w, dt: np.where(w == 0, dt, (np.exp(dt * w) - 1) / np.where(w == 0, 1, w)))),
        ("undefined", "NaN for w = 0", _with(lambda w, dt: np.expm1(dt * w) / w)),
        ("guarded", "1e-8 added to the denominator w",
         Epsilon(1e-8, lambda e:
                 _with(lambda w, dt: np.expm1(dt * w) / (w + w.real.dtype.type(e))))),
        ("published", "w*/max(|w|², 1e-7) for 1/w",  # DSS-exp as published
         Epsilon(1e-7, lambda e: _with(
             lambda w, dt: np.expm1(dt * w) * w.conj() / np.maximum(np.abs(w) ** 2, e)))),
        ("euler", "B̄ = dt·B", _with(lambda w, dt: dt)),  # as Mamba's code has it
        ("impulse", "B̄ = B", _with(lambda w, dt: 1)),  # the impulse response itself
        ("state_only", "B̄ = (e^z − 1) B", _with(lambda w, dt: np.expm1(dt * w))),  # without the 1/w
        ("bilinear", "the other discretization",  # which the paper lets one choose
         _with(lambda w, dt: dt / (1 - dt * w / 2),
               lambda z, l: ((1 + z / 2) / (1 - z / 2))[..., None] ** times(z, l))),
        ("rounded_root", "powers of a rounded root",  # e^{dt·w} rounded once
         _with(powers=lambda z, l: np.exp(z)[..., None] ** times(z, l))),
)  # fmt: skip
for _p in (ZOH, EXP_WITH_INPUT):
    _p.plant(
        *HELD_FORMS,
        ("one_step_late", "K_{k−1} for K_k",  # C x_k with x_0 = 0: SciPy's shifted recurrence
         of_result(late)),
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


def _gain(gain):
    """The bilinear map with another gain, as a function of h = ½dt·w and dt."""
    return _with(lambda w, dt: gain(dt * w / 2, dt), lambda z, l: bilinear_powers(z / 2, l))


def _powers(powers):
    """The bilinear map with other powers, as a function of h = ½dt·w and the times."""
    return _with(lambda w, dt: dt / (1 - dt * w / 2),
                 lambda z, l: powers(z[..., None] / 2, times(z, l)))  # fmt: skip


def _clipped(h, k):
    size = np.abs((1 + h) / (1 - h))
    shrunk = np.minimum(1, 0.999 / np.maximum(size, 0.5)).astype(size.dtype)
    return bilinear_powers(h[..., 0], len(k)) * shrunk**k


BILINEAR_FORMS = (
    ("rounded_root", "powers of a rounded root", _powers(lambda h, k: ((1 + h) / (1 - h)) ** k)),
    ("real_logarithm", "NaN for dt·w ≤ −2",  # 2 artanh h, which real h < −1 do not have
     _powers(lambda h, k: np.exp(2 * np.arctanh(h) * k))),
    ("one_sided", "log(1 + h), for dt·w < −2 too",  # for real h within 1 only
     _powers(lambda h, k: np.exp((np.log1p(h) - np.log1p(-h)) * k))),
    ("signs_exchanged", "Ā for −w", _powers(lambda h, k: ((1 - h) / (1 + h)) ** k)),
    ("input_signs", "B̄ with 1 + h", _gain(lambda h, dt: dt / (1 + h))),
    ("half_forgotten", "dt·w for ½dt·w", _powers(lambda h, k: ((1 + 2 * h) / (1 - 2 * h)) ** k)),
    ("backward", "backward Euler's Ā", _powers(lambda h, k: (1 / (1 - 2 * h)) ** k)),
    ("forward", "Euler's Ā", _powers(lambda h, k: (1 + 2 * h) ** k)),
    ("exponential", "e^{dt·w} for Ā", _powers(lambda h, k: np.exp(2 * h * k))),
    ("held", "B̄ of zero-order hold", _gain(lambda h, dt: dt * phi1(2 * h))),
    ("euler_input", "B̄ = dt·B", _gain(lambda h, dt: dt)),
    ("undivided", "B̄ without dt", _gain(lambda h, dt: 1 / (1 - h))),
    ("sqrt_step", "√dt: the orthogonal form of the map", _gain(lambda h, dt: dt**0.5 / (1 - h))),
    ("unstable_guard", "|Ā| clipped at 0.999", _powers(_clipped)),
)  # fmt: skip
BILINEAR.plant(
    *BILINEAR_FORMS,
    ("shifted_convention", "SciPy's C and D: (K_k + K_{k−1})/2",
     of_result(lambda k: (k + late(k)) / 2)),
    ("length_kept", "C (I − Ā^l) in the place of C: truncation undone twice",
     lambda right, w, B, C, dt, *, l:
     right(w, B, C * (1 - bilinear_powers(dt[..., None] * w / 2, l + 1)[..., l]), dt, l=l)),
)  # fmt: skip
BILINEAR.plant(
    ("log_of_root", "the logarithm of the rounded root",  # as S4D's; real through complex numbers
     _powers(lambda h, k: np.exp(np.log((1 + h) / (1 - h) + 0j) * k))),
    ("resolvent_conjugated", "1 − h* for 1 − h",
     _with(lambda w, dt: dt / (1 - dt * w.conj() / 2),
           lambda z, l: ((1 + z / 2) / (1 - z.conj() / 2))[..., None] ** times(z, l))),
    by="value[complex64]",
)  # fmt: skip


def _hold_constant(right, dk, *args, l):
    """The VJP differentiates only e^{zk}."""
    w, dt, C = args[0], args[-1], args[-2]
    v = C * phi1(dt[..., None] * w) * dt[..., None] * (args[1] if len(args) > 3 else 1)
    E = exponentials(dt[..., None] * w, l)
    T = (np.arange(l) * dk[..., None, :] * (v[..., None] * E).conj()).sum(-1)
    dw, *others, ddt = right(dk, *args, l=l)
    return more(0 * dw, dt[..., None] * T), *others, more(0 * ddt, (w.conj() * T).sum(-1))


def _input_constant(right, dk, w, B, C, dt, *, l):
    dw, dB, *others = right(dk, w, B, C, dt, l=l)
    step = dt[..., None]
    return more(dw, -dB * (B * step / (2 - step * w)).conj()), dB, *others


for _p in (ZOH, EXP):
    _p.plant(
        ("hold_constant", "B̄ held constant in dw and ddt", _hold_constant),
        ("dw_scaled", "dw without the factor dt",
         first_gradient(lambda dw, *args: dw / args[-1][..., None])),
        by="gradient",
    )  # fmt: skip
    _p.plant(("dw_imaginary", "Re dw without Im dw", {"w": real_part}), by="gradient[complex64]")
BILINEAR.plant(
    ("input_constant", "B̄ held constant in dw", _input_constant),
    ("zero_dropped", "E_{k−1} by dividing by Ā: NaN where |Ā| < 1e-2", first_gradient(
        lambda dw, w, B, C, dt: np.where(np.abs(dt[..., None] * w + 2) < 0.04, np.nan, dw))),
    ("as_held", "dw of zero-order hold's exponential", first_gradient(
        lambda dw, w, B, C, dt: dw * ((1 - dt[..., None] * w / 2) ** 2).conj())),
    by="gradient",
)  # fmt: skip
for _p in (ZOH, EXP, BILINEAR):
    _p.plant(("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}), by="gradient")
    _p.plant(("dC_real", "the real part of dC", {"C": real_part}), by="gradient[complex64]")
for _p in (ZOH, BILINEAR):
    _p.plant(("dB_negated", "dB with the other sign", {"B": np.negative}), by="gradient")

OF_MODES = [bug for p in (ZOH, EXP, EXP_WITH_INPUT, BILINEAR) for bug in p.bugs]


def _of_pairs(wrong):
    """A wrong complex kernel, which does not ask the right one, as one of conjugate pairs."""
    return lambda right, *args, l: 2 * wrong(right, *args, l=l).real


FORMS = {DIAGONAL_KERNEL_ZOH_REAL: HELD_FORMS, DIAGONAL_KERNEL_BILINEAR_REAL: BILINEAR_FORMS}
OF_PAIRS = []
for _op, _forms in FORMS.items():
    _whole, _sums = planted(_op, pairs=True), Planting(_op, "float32", adapt=_of_pairs)
    _sums.plant(*_forms)
    _whole.plant(
        ("factor_forgotten", "Re in place of 2 Re", of_result(lambda k: k / 2)),
        ("real_modes_halved", "the factor 2 for complex modes only",
         lambda right, w, B, C, dt, *, l:
         right(w, B, np.where(np.imag(w) == 0, C / 2, C), dt, l=l)),
        ("input_forgotten", "B = 1", {"B": lambda B: 0 * B + 1}),
    )  # fmt: skip
    _whole.plant(
        ("imaginary_part", "Im in place of Re",
         lambda right, w, B, C, dt, *, l: right(w, B, -1j * C, dt, l=l)),
        ("modulus", "the modulus in place of the real part",
         lambda right, w, B, C, dt, *, l:
         np.hypot(right(w, B, C, dt, l=l), right(w, B, -1j * C, dt, l=l))),
        ("complex_result", "a complex result", of_result(lambda k: k + 0j)),
        ("output_conjugated", "C* for C", {"C": np.conj}),
        ("input_conjugated", "B* for B", {"B": np.conj}),
        ("parts_of_coefficients", "Re B and Re C for B and C", {"B": real_part, "C": real_part}),
        by="value[complex64]",
    )  # fmt: skip
    _whole.plant(
        ("dC_halved", "dC of Re, not of 2 Re", {"C": lambda g: g / 2}),
        ("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}),
        ("dB_negated", "dB with the other sign", {"B": np.negative}),
        by="gradient",
    )
    _whole.plant(("dC_real", "the real part of dC", {"C": real_part}), by="gradient[complex64]")
    OF_PAIRS += [*_whole.bugs, *_sums.bugs]
