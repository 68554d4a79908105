"""Planted bugs in Vandermonde kernels and their VJPs, in both forms."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16
from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL

COMPLEX = Planting(VANDERMONDE_KERNEL, "float32")
REAL = Planting(VANDERMONDE_KERNEL_REAL, "float32")


def _sum_of(powers):
    """Σ v_n E_nj with other powers E, as a function of x and the steps j."""

    def program(right, v, x, *, l):
        E = powers(x[..., None], np.arange(l, dtype=np.finfo(x.dtype).dtype))
        return (v[..., :, None] * E).sum(-2).astype(np.result_type(v, x))

    return program


def _written_up_to(length):
    """Nothing is written from length(l) on."""
    return of_result(lambda k: np.where(np.arange(k.shape[-1]) < length(k.shape[-1]), k, 0))


TOTALS = [  # of which the other form takes twice the real part
    ("rounded_root", "powers of a rounded root", _sum_of(lambda x, j: np.exp(x) ** j)),
    ("repeated_products", "drift of repeated products",
     _sum_of(lambda x, j: np.cumprod(np.where(j == 0, 1, np.exp(x)), axis=-1))),
    ("euler", "(1 + x)^j for e^{xj}", _sum_of(lambda x, j: (1 + x) ** j)),
    ("restarted", "the phase starts anew every 256 steps",
     _sum_of(lambda x, j: np.exp(x.real * j + (x - x.real) * (j % 256)))),
    ("steps_in_eight_bits", "steps counted in bfloat16",  # exact up to 256
     _sum_of(lambda x, j: np.exp(x * bfloat16(j)))),
]  # fmt: skip


def _steps_forgotten(right, dk, v, x, *, l):
    dv, dx = right(dk, v, x, l=l)
    return dv, (v.conj() * dv + 0 * dx).astype(dx.dtype)


for _p in (COMPLEX, REAL):
    _p.usual()
    _p.plant(
        ("sign", "e^{−xj}", {"x": np.negative}),
        ("one_step_late", "k_{j−1} for k_j",
         lambda right, v, x, *, l: right(v * np.exp(-x), x, l=l)),
        ("one_step_early", "k_{j+1} for k_j",
         lambda right, v, x, *, l: right(v * np.exp(x), x, l=l)),
        ("coefficients_forgotten", "Σ e^{xj}", {"v": lambda v: 0 * v + 1}),
        ("modes_shifted", "x_{n−1} for x_n", {"x": lambda x: np.roll(x, 1, -1)}),
        ("mean", "the mean over modes",
         lambda right, v, x, *, l: right(v, x, l=l) / max(1, v.shape[-1])),
        ("last_mode", "the last mode of several left out",
         dict.fromkeys("vx", lambda a: a[..., : max(1, a.shape[-1] - 1)])),
        ("mode_tail", "modes beyond a multiple of 32 left out",
         dict.fromkeys("vx", lambda a: a[..., : a.shape[-1] // 32 * 32 or a.shape[-1]])),
        ("mode_block", "only the last block of 64 modes kept",
         dict.fromkeys("vx", lambda a: a[..., (a.shape[-1] - 1) // 64 * 64 :])),
        ("endpoint", "steps spread over l − 1", lambda right, v, x, *, l:
         right(v, (x * (l / max(1, l - 1))).astype(x.dtype), l=l)),
        ("rates_clipped", "Re x clipped at −1e-4",
         {"x": lambda x: x - np.maximum(x.real + 1e-4, 0)}),
        ("growth_clipped", "Re x clipped at 0", {"x": lambda x: x - np.maximum(x.real, 0)}),
        ("reversed", "time backwards", of_result(lambda k: k[..., ::-1].copy())),
        ("doubled", "the factor 2 once more", of_result(lambda k: 2 * k)),
        ("halved", "half of it", of_result(lambda k: k / 2)),
        ("late_flushed", "late entries below 1e-5 of the largest set to zero",
         of_result(lambda k: np.where(
             np.abs(k) < 1e-5 * np.abs(k).max(-1, keepdims=True, initial=0), 0, k))),
        ("tail_unwritten", "nothing written beyond a multiple of 64",
         _written_up_to(lambda l: l // 64 * 64 if l > 64 else l)),
        ("beyond_1024", "nothing written beyond 1024", _written_up_to(lambda l: 1024)),
        ("last_step", "the last step unwritten", _written_up_to(lambda l: l - 1)),
    )  # fmt: skip
    _p.plant(
        ("coefficients_conjugated", "v* for v", {"v": np.conj}),
        ("modes_conjugated", "x* for x", {"x": np.conj}),
        by="value[complex64]",
    )
    _p.plant(
        ("steps_forgotten", "dx without the factor j", _steps_forgotten),
        ("steps_from_one", "dx with j + 1 for j", lambda right, dk, v, x, *, l:
         (right(dk, v, x, l=l)[0],
          right(np.concatenate([0 * dk[..., :1], dk], -1), v, x, l=l + 1)[1])),
        ("coefficient_forgotten", "dx without the factor v", lambda right, dk, v, x, *, l:
         (right(dk, v, x, l=l)[0], right(dk, 0 * v + 1, x, l=l)[1])),
        ("last_step_dropped", "the last step left out",
         lambda right, dk, v, x, *, l: right(dk[..., :-1], v, x, l=l - 1)),
        ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
        ("dx_sign", "dx with the other sign", {"x": np.negative}),
        by="gradient",
    )  # fmt: skip
    _p.plant(
        ("modes_not_conjugated", "E for E*",
         lambda right, dk, v, x, *, l: right(dk, v, x.conj(), l=l)),
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("real_parts", "gradients reduced to their real parts",
         of_each_result(lambda g: g.real.astype(g.dtype))),
        by="gradient[complex64]",
    )  # fmt: skip
COMPLEX.plant(
    *TOTALS,
    ("real_part", "only the real part kept", of_result(lambda k: k.real.astype(k.dtype))),
    ("pairs_added", "conjugate modes added that nobody gave", lambda right, v, x, *, l:
     right(v, x, l=l) + right(v.conj(), x.conj(), l=l)),
    by="value[complex64]",
)  # fmt: skip
REAL.plant(
    ("factor_forgotten", "Re in place of 2 Re", of_result(lambda k: k / 2)),
    ("real_modes_halved", "the factor 2 for complex modes only", lambda right, v, x, *, l:
     right(np.where(np.imag(x) == 0, v / 2, v), x, l=l)),
)  # fmt: skip
REAL.plant(
    *((name, what, lambda *args, l, total=total: 2 * total(*args, l=l).real)
      for name, what, total in TOTALS),
    ("imaginary_part", "Im in place of Re", lambda right, v, x, *, l: right(-1j * v, x, l=l)),
    ("modulus", "the modulus in place of the real part", lambda right, v, x, *, l:
     np.hypot(right(v, x, l=l), right(-1j * v, x, l=l))),
    ("complex_result", "a complex result", of_result(lambda k: k + 0j)),
    by="value[complex64]",
)  # fmt: skip

BUGS = [*COMPLEX.bugs, *REAL.bugs]
