"""Planted bugs in S4D's kernels of conjugate pairs: those of the sums, and of the real part."""

import numpy as np

from refssm.conformance.planted.diagonal import every_kernel as every
from refssm.conformance.planted.diagonal.discretized import BILINEAR_FORMS, HELD_FORMS
from refssm.conformance.planted.diagonal.every_kernel import real_part
from refssm.conformance.planted.planting import Planting, of_result
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR_REAL, DIAGONAL_KERNEL_ZOH_REAL


def _of_pairs(wrong):
    """A wrong complex kernel, which does not ask the right one, as one of conjugate pairs."""
    return lambda right, *args, l: 2 * wrong(right, *args, l=l).real


FORMS = {DIAGONAL_KERNEL_ZOH_REAL: HELD_FORMS, DIAGONAL_KERNEL_BILINEAR_REAL: BILINEAR_FORMS}
BUGS = []
for _op, _forms in FORMS.items():
    _whole, _sums = every.planted(_op, pairs=True), Planting(_op, "float32", adapt=_of_pairs)
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
    BUGS += [*_whole.bugs, *_sums.bugs]
