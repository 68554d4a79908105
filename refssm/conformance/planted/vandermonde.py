"""Planted bugs in Vandermonde kernels and their gradients, in both forms."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL


def _steps(x, l):
    return np.arange(l, dtype=np.finfo(x.dtype).dtype)


def _summed(v, E):
    return (v[..., :, None] * E).sum(-2)


def rounded_root(v, x, *, l):
    """e^x rounded once, then raised to every power."""
    return _summed(v, np.exp(x)[..., None] ** _steps(x, l))


def repeated_products(v, x, *, l):
    """Each power from the one before it."""
    factors = np.repeat(np.exp(x)[..., None], l, axis=-1)
    factors[..., :1] = 1
    return _summed(v, np.cumprod(factors, axis=-1))


def euler(v, x, *, l):
    """(1 + x)^j for e^{xj}."""
    return _summed(v, (1 + x)[..., None] ** _steps(x, l))


def restarted(v, x, *, l):
    """The phase starts anew every 256 steps."""
    j = _steps(x, l)
    turn = 1j * x.imag[..., None] * (j % 256) if np.iscomplexobj(x) else 0
    return _summed(v, np.exp(x.real[..., None] * j + turn)).astype(np.result_type(v, x))


def steps_in_eight_bits(v, x, *, l):
    """The steps counted in bfloat16: exact up to 256."""
    j = _steps(x, l)
    rounding = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(j, 1))) - 7, 0)
    return _summed(v, np.exp(x[..., None] * (np.round(j / rounding) * rounding).astype(j.dtype)))


def tail_dropped(x):
    """Modes beyond a multiple of 32 left out."""
    n = x.shape[-1]
    return x[..., : n // 32 * 32] if n > 32 else x


def clipped(x, limit):
    """Re x at most `limit`."""
    real = np.minimum(x.real, limit).astype(x.real.dtype)
    return real + x.dtype.type(1j) * x.imag if np.iscomplexobj(x) else real


def flushed(k, share):
    """Entries below a share of the largest set to zero."""
    size = np.abs(k)
    return np.where(size < share * size.max(-1, keepdims=True, initial=0), 0, k).astype(k.dtype)


def written_up_to(k, length):
    """Nothing written from `length` on."""
    k[..., length:] = 0
    return k


TOTALS = {  # wrong sums, of which the other form takes twice the real part
    "rounded_root": (rounded_root, "powers of a rounded root"),
    "repeated_products": (repeated_products, "drift of repeated products"),
    "euler": (euler, "(1 + x)^j for e^{xj}"),
    "restarted": (restarted, "the phase starts anew every 256 steps"),
    "steps_in_eight_bits": (steps_in_eight_bits, "steps counted in bfloat16"),
}


def _plant_arguments(p: Planting) -> None:
    """Right sums of wrong arguments."""
    right, both = p.right, p.forward
    both("coefficients_conjugated", "v* for v", dtype="complex64")(
        lambda v, x, *, l: right(v.conj(), x, l=l)
    )
    both("modes_conjugated", "x* for x", dtype="complex64")(
        lambda v, x, *, l: right(v, x.conj(), l=l)
    )
    both("sign", "e^{−xj}")(lambda v, x, *, l: right(v, -x, l=l))
    both("one_step_late", "k_{j−1} for k_j")(lambda v, x, *, l: right(v * np.exp(-x), x, l=l))
    both("one_step_early", "k_{j+1} for k_j")(lambda v, x, *, l: right(v * np.exp(x), x, l=l))
    both("reversed", "time backwards")(lambda v, x, *, l: right(v, x, l=l)[..., ::-1].copy())
    both("doubled", "the factor 2 once more")(lambda v, x, *, l: 2 * right(v, x, l=l))
    both("halved", "half of it")(lambda v, x, *, l: right(v, x, l=l) / 2)
    both("coefficients_forgotten", "Σ e^{xj}")(lambda v, x, *, l: right(0 * v + 1, x, l=l))
    both("modes_shifted", "x_{n−1} for x_n")(lambda v, x, *, l: right(v, np.roll(x, 1, -1), l=l))
    both("mean", "the mean over modes")(lambda v, x, *, l: right(v, x, l=l) / max(1, v.shape[-1]))
    both("last_mode", "the last mode of several left out")(
        lambda v, x, *, l: right(*(a[..., : max(1, a.shape[-1] - 1)] for a in (v, x)), l=l)
    )
    both("mode_tail", "modes beyond a multiple of 32 left out")(
        lambda v, x, *, l: right(tail_dropped(v), tail_dropped(x), l=l)
    )
    both("mode_block", "only the last block of 64 modes kept")(
        lambda v, x, *, l: right(*(a[..., (a.shape[-1] - 1) // 64 * 64 :] for a in (v, x)), l=l)
    )
    both("endpoint", "steps spread over l − 1")(
        lambda v, x, *, l: right(v, (x * (l / max(1, l - 1))).astype(x.dtype), l=l)
    )
    both("rates_clipped", "Re x clipped at −1e-4")(
        lambda v, x, *, l: right(v, clipped(x, -1e-4), l=l)
    )
    both("growth_clipped", "Re x clipped at 0")(lambda v, x, *, l: right(v, clipped(x, 0), l=l))
    both("late_flushed", "late entries below 1e-5 of the largest set to zero")(
        lambda v, x, *, l: flushed(right(v, x, l=l), 1e-5)
    )
    both("tail_unwritten", "nothing written beyond a multiple of 64")(
        lambda v, x, *, l: written_up_to(right(v, x, l=l), l // 64 * 64 if l > 64 else l)
    )
    both("beyond_1024", "nothing written beyond 1024")(
        lambda v, x, *, l: written_up_to(right(v, x, l=l), 1024)
    )
    both("last_step", "the last step unwritten")(
        lambda v, x, *, l: written_up_to(right(v, x, l=l), l - 1)
    )


def _plant_gradients(p: Planting) -> None:
    right = p.right_vjp

    @p.gradient("steps_forgotten", "dx without the factor j")
    def _(dk, v, x, *, l):
        dv, dx = right(dk, v, x, l=l)
        return dv, (v.conj() * dv + 0 * dx).astype(dx.dtype) if dx.dtype.kind == "c" else (
            (v.conj() * dv).real.astype(dx.dtype) + 0 * dx
        )

    @p.gradient("steps_from_one", "dx with j + 1 for j")
    def _(dk, v, x, *, l):
        _, dx = right(np.concatenate([0 * dk[..., :1], dk], -1), v, x, l=l + 1)
        return right(dk, v, x, l=l)[0], dx

    @p.gradient("coefficient_forgotten", "dx without the factor v")
    def _(dk, v, x, *, l):
        return right(dk, v, x, l=l)[0], right(dk, 0 * v + 1, x, l=l)[1]

    @p.gradient("last_step_dropped", "the last step left out")
    def _(dk, v, x, *, l):
        return right(dk[..., :-1], v, x, l=l - 1)

    @p.gradient("modes_not_conjugated", "E for E*", "complex64")
    def _(dk, v, x, *, l):
        return right(dk, v, x.conj(), l=l)

    @p.gradient("as_jax", "the conjugate convention", "complex64")
    def _(dk, v, x, *, l):
        return tuple(g.conj() for g in right(dk, v, x, l=l))

    @p.gradient("real_parts", "gradients reduced to their real parts", "complex64")
    def _(dk, v, x, *, l):
        return tuple(g.real.astype(g.dtype) for g in right(dk, v, x, l=l))

    @p.gradient("doubled", "the factor 2 once more")
    def _(dk, v, x, *, l):
        return right(2 * dk, v, x, l=l)

    @p.gradient("dx_sign", "dx with the other sign")
    def _(dk, v, x, *, l):
        dv, dx = right(dk, v, x, l=l)
        return dv, -dx


COMPLEX = Planting(VANDERMONDE_KERNEL, "float32")
REAL = Planting(VANDERMONDE_KERNEL_REAL, "float32")
for _p in (COMPLEX, REAL):
    _p.usual()
    _plant_arguments(_p)
    _plant_gradients(_p)
for _name, (_total, _what) in TOTALS.items():
    COMPLEX.forward(_name, _what, dtype="complex64")(_total)
    REAL.forward(_name, _what, dtype="complex64")(
        lambda v, x, *, l, total=_total: 2 * total(v, x, l=l).real
    )

_right = COMPLEX.right
COMPLEX.forward("real_part", "only the real part kept", dtype="complex64")(
    lambda v, x, *, l: _right(v, x, l=l).real.astype(np.result_type(v, x))
)
COMPLEX.forward("pairs_added", "conjugate modes added that nobody gave", dtype="complex64")(
    lambda v, x, *, l: _right(v, x, l=l) + _right(v.conj(), x.conj(), l=l)
)
REAL.forward("factor_forgotten", "Re in place of 2 Re")(lambda v, x, *, l: _right(v, x, l=l).real)
REAL.forward("imaginary_part", "Im in place of Re", dtype="complex64")(
    lambda v, x, *, l: 2 * np.imag(_right(v, x, l=l)).astype(x.real.dtype)
)
REAL.forward("modulus", "the modulus in place of the real part", dtype="complex64")(
    lambda v, x, *, l: 2 * np.abs(_right(v, x, l=l))
)
REAL.forward("complex_result", "a complex result", dtype="complex64")(
    lambda v, x, *, l: (2 * _right(v, x, l=l).real).astype(np.result_type(v, x, np.complex64))
)
REAL.forward("real_modes_halved", "the factor 2 for complex modes only")(
    lambda v, x, *, l: 2 * _right(np.where(np.imag(x) == 0, v / 2, v), x, l=l).real
)

DEVIATIONS = [*COMPLEX.bugs, *REAL.bugs]
