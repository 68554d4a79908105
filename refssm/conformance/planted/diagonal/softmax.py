"""Planted bugs in DSS-softmax, the published epsilons among them."""

import numpy as np

from refssm.conformance.planted.diagonal.base import plant_gradients, plant_sums, powers, summed
from refssm.conformance.planted.planting_old import Planting
from refssm.diagonal import DSS_SOFTMAX_KERNEL

SOFTMAX = Planting(DSS_SOFTMAX_KERNEL, "float32")
SOFTMAX.usual()
plant_sums(SOFTMAX, (0, 1))
plant_gradients(SOFTMAX)
right, right_vjp = SOFTMAX.right, SOFTMAX.right_vjp
EPSILON = 1e-7


def _reciprocal(x):
    """x*/(|x|² + 1e-7): DSS's own reciprocal."""
    return x.conj() / (np.abs(x) ** 2 + x.real.dtype.type(EPSILON))


def published(w, C, dt, *, l):
    """1/(expm1(±l·z) w) by `_reciprocal`; published with exp − 1, and its real part is taken."""
    z = dt[..., None] * w
    up, k = z.real > 0, np.arange(l, dtype=dt.dtype)
    x = np.where(up, -z, z)
    E = np.exp(x[..., None] * np.where(up[..., None], l - 1 - k, k))
    return summed(C * np.expm1(x) * _reciprocal(np.expm1(l * x) * w), E, w, C, dt)


def row_epsilon(w, C, dt, *, l):
    """The Annotated S4's: the epsilon on the sum of the row."""
    z = dt[..., None] * w
    up = z.real > 0
    s = z[..., None] * np.arange(l, dtype=dt.dtype)
    E = np.exp(s - np.where(up, z * (l - 1), 0)[..., None])
    return summed(C / w * _reciprocal(E.sum(-1)), E, w, C, dt)


def _unshifted(w, C, dt, *, l):
    """One formula for both signs: infinite over infinite where modes grow."""
    z = dt[..., None] * w
    return summed(C / w * np.expm1(z) / np.expm1(l * z), powers(z, l), w, C, dt)


def _cancelling(w, C, dt, *, l):
    """e^x − 1 without expm1."""
    z = dt[..., None] * w
    up, k = z.real > 0, np.arange(l, dtype=dt.dtype)
    x = np.where(up, -z, z)
    E = np.exp(x[..., None] * np.where(up[..., None], l - 1 - k, k))
    return summed(C / w * ((np.exp(x) - 1) / (np.exp(l * x) - 1)), E, w, C, dt)


def _with(scale=lambda w, z, l: 1 / w, shift=0, total=None, steps=None):
    """The kernel with one of its parts replaced."""

    def kernel(w, C, dt, *, l):
        z = dt[..., None] * w
        up, k = z.real > 0, np.arange(l, dtype=dt.dtype)
        x = np.where(up, -z, z)
        E = np.exp(x[..., None] * np.where(up[..., None], l - 1 + shift - k, k))
        whole = np.expm1(x) / np.expm1((steps(l) if steps else l) * x)
        whole = total(whole, E) if total else whole
        return summed(C * scale(w, z, l) * whole, E, w, C, dt)

    return kernel


def _rising_as_falling(w, C, dt, *, l):
    """|Re w| for Re w with the sign of decay."""
    real = -np.abs(w.real)
    return right((real + 1j * w.imag if np.iscomplexobj(w) else real).astype(w.dtype), C, dt, l=l)


def _of_moduli(whole, E):
    """1/Σ|e^{zk}|: a softmax of the moduli."""
    return 1 / np.abs(E).sum(-1)


def _twice(w, z, l):
    """1/w once more."""
    return 1 / (w * w)


WRONG = {
    "published": (published, "x*/(|x|² + 1e-7) for 1/x", "complex64"),
    "row_epsilon": (row_epsilon, "the epsilon on the row's sum", "complex128"),
    "unshifted": (_unshifted, "overflow for Re w > 0", ""),
    "cancelling": (_cancelling, "e^x − 1 without expm1", ""),
    "one_late": (_with(shift=1), "rising modes one step late", ""),
    "coefficient_only": (_with(scale=lambda w, z, l: 1 + 0 * w), "C for C/w", ""),
    "step_included": (_with(scale=lambda w, z, l: 1 / z), "C/(dt·w) for C/w", ""),
    "divided_twice": (_with(scale=_twice), "C/w²", ""),
    "mean": (_with(total=lambda whole, E: 1 / max(1, E.shape[-1]) + 0 * whole), "1/l", ""),
    "moduli": (_with(total=_of_moduli), "the softmax of the moduli", "complex64"),
    "one_step_less": (_with(steps=lambda l: max(1, l - 1)), "the sum over l − 1 steps", ""),
    "one_step_more": (_with(steps=lambda l: l + 1), "the sum over l + 1 steps", ""),
    "rising_as_falling": (_rising_as_falling, "−|Re w| for Re w", ""),
}
for _name, (_kernel, _what, _dtype) in WRONG.items():
    SOFTMAX.forward(_name, _what, dtype=_dtype)(_kernel)


@SOFTMAX.forward("unnormalised", "DSS-exp in its place")
def _(w, C, dt, *, l):
    z = dt[..., None] * w
    return summed(C * np.expm1(z) / w, powers(z, l), w, C, dt)


@SOFTMAX.forward("normalised_in_one", "the sum over all modes together")
def _(w, C, dt, *, l):
    z = dt[..., None] * w
    E = powers(np.where(z.real > 0, -z, z), l)
    return summed(C / w / np.abs(E.sum((-2, -1)))[..., None], E, w, C, dt)


def _parts(dk, w, C, dt, l):
    """The mean place j under the weights, v, and Σ dk E*, as the right VJP has them."""
    z = dt[..., None] * w
    up, k = z.real > 0, np.arange(l, dtype=dt.dtype)
    x = np.where(up, -z, z)
    one, whole = np.expm1(x), np.expm1(l * x)
    E = np.exp(x[..., None] * np.where(up[..., None], l - 1 - k, k))
    mean = l * (np.exp(l * x) / whole) - np.exp(x) / one
    return up, mean, C / w * (one / whole), (dk[..., None, :] * E.conj()).sum(-1)


def _changed(dw, change):
    change = change if np.iscomplexobj(dw) else change.real
    return (dw + change).astype(dw.dtype) if change.shape == dw.shape else 2 * dw


@SOFTMAX.gradient("sum_constant", "the sum held constant in dw")
def _(dk, w, C, dt, *, l):
    dw, *others = right_vjp(dk, w, C, dt, l=l)
    up, mean, v, S = _parts(dk, w, C, dt, l)
    return _changed(dw, dt[..., None] * np.where(up, -1, 1) * (mean * v).conj() * S), *others


@SOFTMAX.gradient("quotient_constant", "C/w held constant in dw")
def _(dk, w, C, dt, *, l):
    dw, *others = right_vjp(dk, w, C, dt, l=l)
    _, _, v, S = _parts(dk, w, C, dt, l)
    return _changed(dw, (v / w).conj() * S), *others


@SOFTMAX.gradient("rising_sign", "the sign of time forgotten where modes rise")
def _(dk, w, C, dt, *, l):
    dw, dC, ddt = right_vjp(dk, w, C, dt, l=l)
    return np.where(w.real > 0, -dw, dw).astype(dw.dtype), dC, ddt


@SOFTMAX.gradient("rising_unshifted", "NaN where modes rise far")
def _(dk, w, C, dt, *, l):
    dw, dC, ddt = right_vjp(dk, w, C, dt, l=l)
    far = dt[..., None] * w.real * l > 88
    return np.where(far if far.shape == dw.shape else False, np.nan, dw).astype(dw.dtype), dC, ddt


@SOFTMAX.gradient("epsilon", "dC by the published reciprocal", "complex64")
def _(dk, w, C, dt, *, l):
    dw, dC, ddt = right_vjp(dk, w, C, dt, l=l)
    z = dt[..., None] * w
    x = np.expm1(l * np.where(z.real > 0, -z, z)) * w
    biased = dC * (_reciprocal(x) * x).real
    return dw, biased.astype(dC.dtype) if biased.shape == dC.shape else 2 * dC, ddt


SOFTMAX.changed_gradient("ddt_halved", "ddt by ½", dt=lambda g, _: g / 2)
SOFTMAX.changed_gradient("dw_stepped", "dw times dt", w=lambda g, dt: g * dt[..., None])

DEVIATIONS = SOFTMAX.bugs
