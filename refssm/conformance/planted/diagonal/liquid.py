"""Planted bugs in the kernel of products of inputs, and in its VJP."""

import numpy as np

from refssm.conformance.planted.diagonal import every_kernel as every
from refssm.conformance.planted.diagonal.every_kernel import first_gradient, real_part
from refssm.conformance.planted.planting import of_result
from refssm.diagonal import LIQUID_KERNEL

LIQUID = every.planted(LIQUID_KERNEL)


def _with(inputs=lambda B, degree: B**degree, powers=lambda a, m: a[..., None] ** m):
    """The kernel with one of its parts replaced."""

    def kernel(right, a, B, C, *, l, degree):
        kind = np.result_type(a, B, C)
        E = powers(a.astype(kind), np.arange(l))
        return every.summed(C * inputs(B, degree), E, a, B, C)

    return kernel


LIQUID.plant(
    ("linear", "B for B^d", _with(inputs=lambda B, degree: B)),
    ("one_factor_more", "B^{d+1} for B^d", _with(inputs=lambda B, degree: B ** (degree + 1))),
    ("always_square", "B² for every d", _with(inputs=lambda B, degree: B**2)),
    ("degree_times", "d B for B^d", _with(inputs=lambda B, degree: degree * B)),
    # as Liquid-S4's code reads the sum over the state
    ("summed_inputs", "(Σ B) B^{d−1} for B^d",
     _with(inputs=lambda B, degree: B.sum(-1, keepdims=True) * B ** (degree - 1))),
    ("input_forgotten", "B = 1", {"B": lambda B: 0 * B + 1}),
    ("decay_of_products", "a^{dm} for a^m", lambda right, a, B, C, *, l, degree:
     right(a**degree, B, C, l=l, degree=degree)),
    ("one_step_late", "K_{m−1} for K_m", of_result(every.late)),
    ("one_step_early", "K_{m+1} for K_m", lambda right, a, B, C, *, l, degree:
     right(a, B, a * C, l=l, degree=degree)),
    ("lag_of_degree", "K_{m+d−1} for K_m", lambda right, a, B, C, *, l, degree:
     right(a, B, a ** (degree - 1) * C, l=l, degree=degree)),
    ("growth_clipped", "|a| clipped at 1",
     {"a": lambda a: a / np.maximum(1, np.abs(a)).astype(a.dtype)}),
    ("roots_exchanged", "a_{n−1} for a_n", {"a": lambda a: np.roll(a, 1, -1)}),
    ("mean", "the mean over modes", lambda right, a, B, C, *, l, degree:
     right(a, B, C, l=l, degree=degree) / max(1, C.shape[-1])),
)  # fmt: skip
LIQUID.plant(
    ("moduli", "|B|^d for B^d", _with(inputs=lambda B, degree: np.abs(B) ** degree)),
    ("output_conjugated", "C* for C", {"C": np.conj}),
    ("input_conjugated", "B* for B", {"B": np.conj}),
    ("mixed_products", "B B* for B²", _with(
        inputs=lambda B, degree: B * B.conj() ** (degree - 1))),
    ("pairs_added", "conjugate modes added that nobody gave", lambda right, a, B, C, *, l, degree:
     right(a, B, C, l=l, degree=degree) + right(a.conj(), B.conj(), C.conj(), l=l, degree=degree)),
    by="value[complex64]",
)  # fmt: skip


def _input_slope(change):
    """The right gradients but for dB, changed by a function of it, B and d."""

    def vjp(right, dk, a, B, C, *, l, degree):
        da, dB, dC = right(dk, a, B, C, l=l, degree=degree)
        return da, change(dB, B, degree).astype(dB.dtype), dC

    return vjp


LIQUID.plant(
    ("degree_forgotten", "dB without the factor d", _input_slope(lambda dB, B, d: dB / d)),
    ("dc_doubled", "dC twice", {"C": lambda g: 2 * g}),
    ("db_sign", "dB with the other sign", {"B": np.negative}),
    ("own_power", "m a^m for m a^{m−1} in da",
     first_gradient(lambda da, a, *_: da * a.conj())),
    by="gradient",
)  # fmt: skip
LIQUID.plant(("dc_real", "the real part of dC", {"C": real_part}), by="gradient[complex64]")
