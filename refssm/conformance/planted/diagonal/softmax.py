"""Planted bugs in DSS-softmax, including its published epsilons."""

from functools import partial

import numpy as np

from refssm.conformance.planted.diagonal.every_kernel import first_gradient, more, planted, summed
from refssm.conformance.planted.epsilon import Epsilon
from refssm.conformance.planted.planting import instead
from refssm.diagonal import DSS_EXP_KERNEL, DSS_SOFTMAX_KERNEL
from refssm.diagonal.sums import exponentials, times

SOFTMAX = planted(DSS_SOFTMAX_KERNEL)


def _reciprocal(x, epsilon=1e-7):
    """x*/(|x|² + ε), the reciprocal in DSS's code."""
    return x.conj() / (np.abs(x) ** 2 + epsilon)


def _falling(w, dt, l, shift=0):
    """x = dt·w with the sign that decays, and its powers.

    The powers of growing modes are in reverse order, with exponents larger by `shift`.
    """
    z, k = dt[..., None] * w, times(dt, l)
    up = z.real > 0
    x = np.where(up, -z, z)
    return x, np.exp(x[..., None] * np.where(up[..., None], l - 1 + shift - k, k))


def published(w, C, dt, *, l, epsilon=1e-7):
    """1/(expm1(±l·z) w) by `_reciprocal`; the published code uses exp − 1 and the real part."""
    x, E = _falling(w, dt, l)
    return summed(C * np.expm1(x) * _reciprocal(np.expm1(l * x) * w, epsilon), E, w, C, dt)


def row_epsilon(w, C, dt, *, l, epsilon=1e-7):
    """The Annotated S4's form: the epsilon is added to the sum of the row."""
    z = dt[..., None] * w
    s = z[..., None] * times(dt, l)
    E = np.exp(s - np.where(z.real > 0, z * (l - 1), 0)[..., None])
    return summed(C / w * _reciprocal(E.sum(-1), epsilon), E, w, C, dt)


def _whole(x, l):
    """1/Σ e^{xk}."""
    return np.expm1(x) / np.expm1(l * x)


def _with(weight=lambda x, l, E: _whole(x, l), shift=0):
    """The kernel with another factor for 1/Σ e^{xk}, or with growing modes `shift` steps late."""

    def kernel(right, w, C, dt, *, l):
        x, E = _falling(w, dt, l, shift)
        return summed(C / w * weight(x, l, E), E, w, C, dt)

    return kernel


def _normalised_in_one(right, w, C, dt, *, l):
    z = dt[..., None] * w
    E = exponentials(np.where(z.real > 0, -z, z), l)
    return summed(C / w / np.abs(E.sum((-2, -1)))[..., None], E, w, C, dt)


SOFTMAX.plant(
    # DSS-exp over expm1(l·z) for both signs: infinite over infinite where modes grow
    ("unshifted", "overflow for Re w > 0", lambda right, w, C, dt, *, l:
     DSS_EXP_KERNEL.reference(w, C / np.expm1(l * dt[..., None] * w), dt, l=l)),
    ("cancelling", "e^x − 1 without expm1",
     _with(lambda x, l, E: (np.exp(x) - 1) / (np.exp(l * x) - 1))),
    ("one_late", "rising modes one step late", _with(shift=1)),
    ("coefficient_only", "C for C/w", lambda right, w, C, dt, *, l: right(w, C * w, dt, l=l)),
    ("step_included", "C/(dt·w) for C/w",
     lambda right, w, C, dt, *, l: right(w, C / dt[..., None], dt, l=l)),
    ("divided_twice", "C/w²", lambda right, w, C, dt, *, l: right(w, C / w, dt, l=l)),
    ("mean", "1/l", _with(lambda x, l, E: 1 / max(1, l) + 0 * x)),
    ("one_step_less", "the sum over l − 1 steps", _with(lambda x, l, E: _whole(x, max(1, l - 1)))),
    ("one_step_more", "the sum over l + 1 steps", _with(lambda x, l, E: _whole(x, l + 1))),
    ("rising_as_falling", "−|Re w| for Re w", {"w": lambda w: w - w.real - np.abs(w.real)}),
    ("unnormalised", "DSS-exp in its place", instead(DSS_EXP_KERNEL.reference)),
    ("normalised_in_one", "the sum over all modes together", _normalised_in_one),
)  # fmt: skip
SOFTMAX.plant(
    (
        "published",
        "x*/(|x|² + 1e-7) for 1/x",
        Epsilon(1e-7, lambda e: instead(partial(published, epsilon=e))),
    ),
    ("moduli", "the softmax of the moduli", _with(lambda x, l, E: 1 / np.abs(E).sum(-1))),
    by="value[complex64]",
)
SOFTMAX.plant(
    (
        "row_epsilon",
        "s*/(|s|² + 1e-7) for 1/s, s the row's sum",
        Epsilon(1e-7, lambda e: instead(partial(row_epsilon, epsilon=e))),
    ),
    by="value[complex128]",
)


def _lacking(slope):
    """dw without the term slope* dC."""

    def vjp(right, dk, w, C, dt, *, l):
        dw, dC, ddt = right(dk, w, C, dt, l=l)
        return more(dw, slope(w, C, dt, l).conj() * dC), dC, ddt

    return vjp


def _of_sum(w, C, dt, l):
    """C times the derivative of the sum's logarithm, which is a weighted mean of k."""
    x, _ = _falling(w, dt, l)
    mean = l * (np.exp(l * x) / np.expm1(l * x)) - np.exp(x) / np.expm1(x)
    return np.where(w.real > 0, -1, 1) * dt[..., None] * mean * C


def _rising_unshifted(right, dk, w, C, dt, *, l):
    dw, dC, ddt = right(dk, w, C, dt, l=l)
    far = dt[..., None] * w.real * l > 88
    return np.where(far if far.shape == dw.shape else False, np.nan, dw).astype(dw.dtype), dC, ddt


def _epsilon(right, dk, w, C, dt, *, l):
    dw, dC, ddt = right(dk, w, C, dt, l=l)
    x = np.expm1(l * _falling(w, dt, l)[0]) * w
    biased = dC * (_reciprocal(x) * x).real
    return dw, biased.astype(dC.dtype) if biased.shape == dC.shape else 2 * dC, ddt


SOFTMAX.plant(
    ("sum_constant", "the sum held constant in dw", _lacking(_of_sum)),
    ("quotient_constant", "C/w held constant in dw", _lacking(lambda w, C, dt, l: C / w)),
    ("rising_sign", "the sign of time forgotten where modes rise",
     first_gradient(lambda dw, w, C, dt: np.where(w.real > 0, -dw, dw))),
    ("rising_unshifted", "NaN where modes rise far", _rising_unshifted),
    ("ddt_halved", "ddt by ½", {"dt": lambda g: g / 2}),
    ("dw_stepped", "dw times dt", first_gradient(lambda dw, w, C, dt: dw * dt[..., None])),
    by="gradient",
)  # fmt: skip
SOFTMAX.plant(("epsilon", "dC by the published reciprocal", _epsilon), by="gradient[complex64]")
