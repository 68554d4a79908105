"""Planted bugs in S4D's kernel under the bilinear map."""

import numpy as np

from refssm.conformance.planted.diagonal.base import held, plant_gradients, plant_sums, summed
from refssm.conformance.planted.planting_old import Planting
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR
from refssm.diagonal.sums import bilinear_powers

BILINEAR = Planting(DIAGONAL_KERNEL_BILINEAR, "float32")
BILINEAR.usual()
plant_sums(BILINEAR, (0, 1, 2))
plant_gradients(BILINEAR)
right, right_vjp = BILINEAR.right, BILINEAR.right_vjp


def _steps(dt, l):
    return np.arange(l, dtype=dt.dtype)


def _with(root=None, log=None, gain=None):
    """The kernel with one of its parts replaced: functions of h and of the step."""

    def kernel(w, B, C, dt, *, l):
        step = dt[..., None]
        h = step * w / 2
        v = C * (gain(h, step) if gain else step / (1 - h)) * B
        if root is not None:
            E = root(h)[..., None] ** _steps(dt, l)
        elif log is not None:
            E = np.exp(log(h)[..., None] * _steps(dt, l))
        else:
            E = bilinear_powers(h, l)
        return summed(v, E, w, B, C, dt)

    return kernel


def _logarithm(h):
    """The logarithm of the rounded root, as S4D's code takes it; real through complex numbers."""
    root = (1 + h) / (1 - h)
    return np.log(root.astype(np.result_type(root, np.complex64)))


def _through_complex(w, B, C, dt, *, l):
    k = _with(log=_logarithm)(w, B, C, dt, l=l)
    return k if np.iscomplexobj(k) else k.real


def _real_logarithm(h):
    """2 artanh h, which real h < −1 do not have."""
    return 2 * np.arctanh(h)


def _one_sided(h):
    """log1p(h) − log1p(−h): for real h within 1 only."""
    return np.log1p(h) - np.log1p(-h)


WRONG = {
    "rounded_root": (_with(root=lambda h: (1 + h) / (1 - h)), "powers of a rounded root", ""),
    "real_logarithm": (_with(log=_real_logarithm), "NaN for dt·w ≤ −2", ""),
    "one_sided": (_with(log=_one_sided), "log(1 + h), for dt·w < −2 too", ""),
    "log_of_root": (_through_complex, "the logarithm of the rounded root", "complex64"),
    "signs_exchanged": (_with(root=lambda h: (1 - h) / (1 + h)), "Ā for −w", ""),
    "input_signs": (_with(gain=lambda h, step: step / (1 + h)), "B̄ with 1 + h", ""),
    "half_forgotten": (_with(root=lambda h: (1 + 2 * h) / (1 - 2 * h)), "dt·w for ½dt·w", ""),
    "backward": (_with(root=lambda h: 1 / (1 - 2 * h)), "backward Euler's Ā", ""),
    "forward": (_with(root=lambda h: 1 + 2 * h), "Euler's Ā", ""),
    "exponential": (_with(log=lambda h: 2 * h), "e^{dt·w} for Ā", ""),
    "held": (_with(gain=lambda h, step: step * held(2 * h)), "B̄ of zero-order hold", ""),
    "euler_input": (_with(gain=lambda h, step: step + 0 * h), "B̄ = dt·B", ""),
    "undivided": (_with(gain=lambda h, step: 1 / (1 - h)), "B̄ without dt", ""),
    "sqrt_step": (
        _with(gain=lambda h, step: np.sqrt(step) / (1 - h)),
        "√dt: the orthogonal form of the map",
        "",
    ),
}
for _name, (_kernel, _what, _dtype) in WRONG.items():
    BILINEAR.forward(_name, _what, dtype=_dtype)(_kernel)


@BILINEAR.forward("shifted_convention", "SciPy's C and D: (K_k + K_{k−1})/2")
def _(w, B, C, dt, *, l):
    k = right(w, B, C, dt, l=l)
    return (k + np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1)) / 2 if l else k


@BILINEAR.forward("unstable_guard", "|Ā| clipped at 0.999")
def _(w, B, C, dt, *, l):
    h = dt[..., None] * w / 2
    E = bilinear_powers(h, l)
    size = np.abs((1 + h) / (1 - h))
    shrunk = np.minimum(1, 0.999 / np.maximum(size, 0.5)).astype(dt.dtype)
    v = C * (dt[..., None] / (1 - h)) * B
    return summed(v, E * shrunk[..., None] ** _steps(dt, l), w, B, C, dt)


@BILINEAR.forward("length_kept", "C (I − Ā^l) in the place of C: truncation undone twice")
def _(w, B, C, dt, *, l):
    h = dt[..., None] * w / 2
    kept = 1 - bilinear_powers(h, l + 1)[..., l]
    return summed(C * kept * (dt[..., None] / (1 - h)) * B, bilinear_powers(h, l), w, B, C, dt)


@BILINEAR.gradient("input_constant", "B̄ held constant in dw")
def _(dk, w, B, C, dt, *, l):
    dw, *others = right_vjp(dk, w, B, C, dt, l=l)
    step = dt[..., None]
    R = 1 / (1 - step * w / 2)
    E = bilinear_powers(step * w / 2, l)
    through = (C * B * (R * R) * step * step / 2).conj() * (dk[..., None, :] * E.conj()).sum(-1)
    through = through if np.iscomplexobj(dw) else through.real
    return (dw - through.astype(dw.dtype) if through.shape == dw.shape else 2 * dw), *others


@BILINEAR.gradient("zero_dropped", "E_{k−1} by dividing by Ā: NaN where Ā is 0")
def _(dk, w, B, C, dt, *, l):
    dw, *others = right_vjp(dk, w, B, C, dt, l=l)
    return np.where(np.abs(dt[..., None] * w + 2) == 0, np.nan, dw).astype(dw.dtype), *others


@BILINEAR.gradient("as_held", "dw of zero-order hold's exponential")
def _(dk, w, B, C, dt, *, l):
    dw, *others = right_vjp(dk, w, B, C, dt, l=l)
    R2 = (1 / (1 - dt[..., None] * w / 2) ** 2).conj()
    return (dw / R2 if np.iscomplexobj(dw) else dw / R2.real).astype(dw.dtype), *others


BILINEAR.changed_gradient("ddt_halved", "ddt by ½", dt=lambda g, _: g / 2)
BILINEAR.changed_gradient(
    "dC_real", "the real part of dC", "complex64", C=lambda g, _: g.real.astype(g.dtype)
)
BILINEAR.changed_gradient("dB_negated", "dB with the other sign", B=lambda g, _: -g)

DEVIATIONS = BILINEAR.bugs
