"""Planted bugs in the kernels of zero-order hold, S4D's and DSS-exp's."""

import numpy as np

from refssm.conformance.planted.diagonal.base import (
    held,
    plant_gradients,
    plant_sums,
    powers,
    summed,
)
from refssm.conformance.planted.planting_old import Planting
from refssm.diagonal import DIAGONAL_KERNEL_ZOH, DSS_EXP_KERNEL


def _textbook(w, B, C, dt, *, l):
    """(e^{dt·w} − 1)/w as it stands, dt where w is 0."""
    z = dt[..., None] * w
    H = np.where(w == 0, dt[..., None], (np.exp(z) - 1) / np.where(w == 0, 1, w))
    return summed(C * H * B, powers(z, l), w, B, C, dt)


def _undefined(w, B, C, dt, *, l):
    """expm1(dt·w)/w, also for w = 0."""
    z = dt[..., None] * w
    return summed(C * (np.expm1(z) / w) * B, powers(z, l), w, B, C, dt)


def _published(w, B, C, dt, *, l):
    """DSS-exp as published: 1/w by w*/max(|w|², 1e-7)."""
    z, small = dt[..., None] * w, w.real.dtype.type(1e-7)
    H = np.expm1(z) * w.conj() / np.maximum(np.abs(w) ** 2, small)
    return summed(C * H * B, powers(z, l), w, B, C, dt)


def _euler(w, B, C, dt, *, l):
    """B̄ = dt·B, as Mamba's code has it."""
    h = dt[..., None]
    return summed(C * h * B, powers(h * w, l), w, B, C, dt)


def _impulse(w, B, C, dt, *, l):
    """B̄ = B: the impulse response itself."""
    return summed(C * B, powers(dt[..., None] * w, l), w, B, C, dt)


def _state_only(w, B, C, dt, *, l):
    """B̄ = (e^{dt·w} − 1) B, without the 1/w."""
    z = dt[..., None] * w
    return summed(C * np.expm1(z) * B, powers(z, l), w, B, C, dt)


def _bilinear(w, B, C, dt, *, l):
    """The bilinear map, which the paper lets one choose."""
    h = dt[..., None] * w / 2
    k = np.arange(l, dtype=h.real.dtype)
    v = C * (dt[..., None] / (1 - h)) * B
    return summed(v, ((1 + h) / (1 - h))[..., None] ** k, w, B, C, dt)


def _rounded_root(w, B, C, dt, *, l):
    """e^{dt·w} rounded once, then raised to every power."""
    h = dt[..., None]
    z, k = h * w, np.arange(l, dtype=dt.dtype)
    return summed(C * (h * held(z)) * B, np.exp(z)[..., None] ** k, w, B, C, dt)


def _one_step_late(w, B, C, dt, *, l):
    """C x_k with x_0 = 0: SciPy's shifted recurrence."""
    h = dt[..., None]
    E = powers(h * w, l)
    late = np.concatenate([0 * E[..., :1], E[..., :-1]], axis=-1) if l else E
    return summed(C * (h * held(h * w)) * B, late, w, B, C, dt)


def _clipped(w, B, C, dt, *, l):
    """Re w at most −1e-4."""
    real = np.minimum(w.real, -1e-4).astype(w.real.dtype)
    clipped = real + 1j * w.imag if np.iscomplexobj(w) else real
    return RIGHT(clipped.astype(w.dtype), B, C, dt, l=l)


def _imaginary_clipped(w, B, C, dt, *, l):
    """Im w clipped as well, to ±100."""
    turned = w.real + 1j * np.clip(w.imag, -100, 100)
    return RIGHT(turned.astype(w.dtype), B, C, dt, l=l)


RIGHT = DIAGONAL_KERNEL_ZOH.reference
WRONG = {
    "textbook": (_textbook, "(e^z − 1)/w without expm1", ""),
    "undefined": (_undefined, "NaN for w = 0", ""),
    "published": (_published, "w*/max(|w|², 1e-7) for 1/w", ""),
    "euler": (_euler, "B̄ = dt·B", ""),
    "impulse": (_impulse, "B̄ = B", ""),
    "state_only": (_state_only, "B̄ = (e^z − 1) B", ""),
    "bilinear": (_bilinear, "the other discretization", ""),
    "rounded_root": (_rounded_root, "powers of a rounded root", ""),
    "one_step_late": (_one_step_late, "K_{k−1} for K_k", ""),
    "clipped": (_clipped, "Re w clipped at −1e-4", ""),
    "imaginary_clipped": (_imaginary_clipped, "Im w clipped at ±100", "complex64"),
    "sign": (lambda w, B, C, dt, *, l: RIGHT(-w, B, C, dt, l=l), "w without its minus sign", ""),
    "step_per_length": (
        lambda w, B, C, dt, *, l: RIGHT(w, B, C, dt * dt.dtype.type(l / max(1, l - 1)), l=l),
        "steps spread over l − 1",
        "",
    ),
}


def _without_B(kernel):
    return lambda w, C, dt, *, l: kernel(w, np.ones_like(C), C, dt, l=l)


ZOH, EXP = Planting(DIAGONAL_KERNEL_ZOH, "float32"), Planting(DSS_EXP_KERNEL, "float32")
for _p, _modes in ((ZOH, (0, 1, 2)), (EXP, (0, 1))):
    _p.usual()
    plant_sums(_p, _modes)
    plant_gradients(_p)
for _name, (_kernel, _what, _dtype) in WRONG.items():
    ZOH.forward(_name, _what, dtype=_dtype)(_kernel)
    EXP.forward(_name, _what, dtype=_dtype)(_without_B(_kernel))

ZOH.forward("input_conjugated", "B* for B", dtype="complex64")(
    lambda w, B, C, dt, *, l: RIGHT(w, B.conj(), C, dt, l=l)
)
ZOH.forward("output_conjugated", "C* for C", dtype="complex64")(
    lambda w, B, C, dt, *, l: RIGHT(w, B, C.conj(), dt, l=l)
)
ZOH.forward("input_forgotten", "B = 1")(lambda w, B, C, dt, *, l: RIGHT(w, 0 * B + 1, C, dt, l=l))


def _gradients(p: Planting) -> None:
    right = p.right_vjp

    @p.gradient("hold_constant", "B̄ held constant in dw and ddt")
    def _(dk, *args, l):
        """Only e^{zk} is differentiated."""
        w, dt, C = args[0], args[-1], args[-2]
        v = C * held(dt[..., None] * w) * dt[..., None] * (args[1] if len(args) > 3 else 1)
        E = powers(dt[..., None] * w, l)
        T = (np.arange(l) * dk[..., None, :] * (v[..., None] * E).conj()).sum(-1)
        right_ones = list(right(dk, *args, l=l))
        dw, ddt = dt[..., None] * T, (w.conj() * T).sum(-1)
        right_ones[0] = _like(dw, right_ones[0])
        right_ones[-1] = _like(ddt, right_ones[-1])
        return tuple(right_ones)

    p.changed_gradient("ddt_halved", "ddt by ½", dt=lambda g, _: g / 2)
    p.changed_gradient("dw_scaled", "dw without the factor dt", w=lambda g, dt: g / dt[..., None])
    p.changed_gradient("dC_real", "the real part of dC", "complex64", C=_real)
    p.changed_gradient("dw_imaginary", "Re dw without Im dw", "complex64", w=_real)


def _like(g, right):
    """In the kind and shape of the right gradient, if it was not broadcast."""
    g = g if np.iscomplexobj(right) else g.real
    return (g if g.shape == right.shape else right).astype(right.dtype)


def _real(g, _):
    return g.real.astype(g.dtype)


_gradients(ZOH)
_gradients(EXP)
ZOH.changed_gradient("dB_negated", "dB with the other sign", B=lambda g, _: -g)

DEVIATIONS = [*ZOH.bugs, *EXP.bugs]
