"""Planted bugs in Mega's moving average, the shift, DSS-softmax, and products of inputs."""

from functools import partial

import numpy as np

from refssm.activations import sigmoid
from refssm.conformance.planted.diagonal import discretized as every
from refssm.conformance.planted.diagonal.discretized import (
    first_gradient,
    more,
    planted,
    real_part,
    summed,
)
from refssm.conformance.planted.planting import Epsilon, instead, of_result
from refssm.diagonal import (
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    LIQUID_KERNEL,
    SHIFT_KERNEL,
)
from refssm.diagonal.sums import exponentials, times

EMA = every.planted(EMA_KERNEL)
SHIFT = every.planted(SHIFT_KERNEL, beyond=4)  # a shift is as long as n


def _positive(x):
    """x, at least the smallest normal number."""
    return np.maximum(x, np.finfo(x.dtype).tiny)


def _powers(loss, k):
    slow = np.exp(np.log1p(-np.minimum(loss, 0.5))[..., None] * k)
    return np.where((loss > 0.5)[..., None], (1 - loss)[..., None] ** k, slow)


def _with(p=sigmoid, loss=None, scale=lambda n: n**-0.5, powers=_powers):
    """The kernel with one of its parts replaced; `loss` is 1 − q."""

    def kernel(right, delta, alpha, beta, gamma, *, l):
        lost = loss(delta, alpha) if loss else sigmoid(delta) * sigmoid(alpha)
        E = powers(lost, np.arange(l, dtype=delta.dtype))
        factor = delta.dtype.type(scale(max(1, beta.shape[-1])))
        return every.summed(factor * (p(delta) * beta * gamma), E, delta, alpha, beta, gamma)

    return kernel


def _bidirectional(right, delta, alpha, beta, gamma, *, l):
    ahead = beta * (np.arange(beta.shape[-1]) < beta.shape[-1] // 2)
    backwards = right(delta, alpha, ahead, gamma, l=l)[..., ::-1]
    return right(delta, alpha, beta - ahead, gamma, l=l) + backwards


EMA.plant(  # errors of q grow with k, as the effect of a rounding of δ does: a few cases show them
    ("rounded_root", "powers of a rounded q",
     _with(powers=lambda loss, k: (1 - loss)[..., None] ** k)),
    (
        "log_of_rounded",
        "log of the rounded q",  # as Mega's code has it
        _with(powers=lambda loss, k: np.exp(np.log(_positive(1 - loss))[..., None] * k)),
    ),
    by="value[complex64]",
)  # fmt: skip
EMA.plant(
    ("unscaled", "without 1/√n", _with(scale=lambda n: 1.0)),
    ("mean", "1/n for 1/√n", _with(scale=lambda n: 1.0 / n)),
    ("undamped", "q = 1 − p", _with(loss=lambda delta, alpha: sigmoid(delta))),
    # what leaves is what enters
    ("damped_input", "p σ(α) for p", lambda right, delta, alpha, beta, gamma, *, l:
     right(delta, alpha, sigmoid(alpha) * beta, gamma, l=l)),
    ("hard", "a piecewise linear σ", _with(p=lambda x: np.clip(x / 6 + x.dtype.type(0.5), 0, 1))),
    # ½(1 + tanh ½x) has no digits where x is very negative
    ("half_tanh", "σ by tanh: no digits for small p", _with(p=lambda x: (1 + np.tanh(x / 2)) / 2)),
    ("delta_raw", "δ for σ(δ)", _with(p=lambda x: x)),
    ("softplus", "softplus for σ", _with(p=lambda x: np.log1p(np.exp(x)))),
    ("negated", "σ(−δ) for σ(δ)", _with(p=lambda x: sigmoid(-x))),
    ("sum_of_logits", "1 − σ(δ + α)", _with(loss=lambda delta, alpha: sigmoid(delta + alpha))),
    ("exchanged", "α and δ exchanged", lambda right, delta, alpha, beta, gamma, *, l:
     right(alpha, delta, beta, gamma, l=l)),
    ("input_forgotten", "β = 1", {"beta": lambda beta: 0 * beta + 1}),
    ("one_step_late", "K_{k−1} for K_k", of_result(every.late)),
    ("bidirectional", "the second half of the modes backwards in time", _bidirectional),
)  # fmt: skip
EMA.plant(("output_conjugated", "γ* for γ", {"gamma": np.conj}), by="value[complex64]")


def _entering_only(right, dk, delta, alpha, beta, gamma, *, l):
    ddelta, dalpha, dbeta, dgamma = right(dk, delta, alpha, beta, gamma, l=l)
    through = (beta.conj() * dbeta).real * sigmoid(-delta)
    return every.more(0 * ddelta, through), dalpha, dbeta, dgamma


EMA.plant(
    ("dalpha_sign", "dα with the other sign", {"alpha": np.negative}),
    ("dbeta_doubled", "dβ twice", {"beta": lambda g: 2 * g}),
    ("dgamma_negated", "dγ with the other sign", {"gamma": np.negative}),
    ("slope_forgotten", "dδ without σ'",
     first_gradient(lambda ddelta, delta, *_: ddelta / _positive(sigmoid(-delta)))),
    ("entering_only", "dδ through p alone, not through q", _entering_only),
    ("saturated", "σ' as p(1 − p), which cancels for large δ", first_gradient(
        lambda ddelta, delta, *_: ddelta * ((1 - sigmoid(delta)) / _positive(sigmoid(-delta))))),
    by="gradient",
)  # fmt: skip
EMA.plant(("dbeta_real", "the real part of dβ", {"beta": real_part}), by="gradient[complex64]")


def _padded(k, l):
    return np.concatenate([k[..., :l], 0 * np.repeat(k[..., :1], max(0, l - k.shape[-1]), -1)], -1)


def _by_transform(size):
    """The inverse transform of B̂* Ĉ over size(n) points."""

    def kernel(right, B, C, *, l):
        points = size(B.shape[-1])
        y = np.fft.ifft(np.fft.fft(C, points) * np.fft.fft(B.conj(), points).conj())
        y = y if np.iscomplexobj(B) or np.iscomplexobj(C) else y.real
        return _padded(y.astype(np.result_type(B, C)), l)

    return kernel


SHIFT.plant(
    ("circular", "the shift wraps around", _by_transform(lambda n: n)),
    ("periodic", "the kernel repeated beyond n", lambda right, B, C, *, l:
     right(B, C, l=l)[..., np.arange(l) % max(1, B.shape[-1])]),
    ("exchanged", "Σ C_i B_{i+k}", lambda right, B, C, *, l: right(C, B, l=l)),
    ("convolved", "Σ B_i C_{k−i}", lambda right, B, C, *, l:
     right(B[..., ::-1], C[..., ::-1], l=l)[..., ::-1].copy()),
    ("flipped", "B read from its end", {"B": lambda B: B[..., ::-1]}),
    ("one_late", "K_{k+1} for K_k", lambda right, B, C, *, l: right(B, C, l=l + 1)[..., 1:].copy()),
    ("one_early", "K_{k−1} for K_k", of_result(every.late)),
    ("first_only", "B = e_0, as H3 starts", {"B": lambda B: (np.arange(B.shape[-1]) == 0) * B}),
    ("end_dropped", "the last place never read",
     {"C": lambda C: C * (np.arange(C.shape[-1]) < C.shape[-1] - 1)}),
    ("at_least_n", "only min(l, n) steps, then the last one on", lambda right, B, C, *, l:
     right(B, C, l=l)[..., np.minimum(np.arange(l), B.shape[-1] - 1)]),
)  # fmt: skip
SHIFT.plant(
    ("input_conjugated", "numpy.correlate's B*", {"B": np.conj}),
    ("output_conjugated", "C* for C", {"C": np.conj}),
    by="value[complex64]",
)


def _folded(right, dk, B, C, *, l):
    n = max(1, B.shape[-1])
    folded = sum((_padded(dk[..., i : i + n], n) for i in range(0, l, n)), 0 * dk[..., :1])
    return right(folded, B, C, l=n) if l > n else right(2 * dk, B, C, l=l)


SHIFT.plant(
    ("dB_halved", "dB by ½", {"B": lambda g: g / 2}),
    ("dC_negated", "dC with the other sign", {"C": np.negative}),
    ("dC_reversed", "dC backwards", {"C": lambda g: g[..., ::-1].copy()}),
    ("exchanged", "dB of the exchanged correlation",
     lambda right, dk, B, C, *, l: right(dk, C, B, l=l)[::-1]),
    ("beyond_n", "the cotangent beyond n wraps around", _folded),
    by="gradient",
)  # fmt: skip


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


def _softmax(weight=lambda x, l, E: _whole(x, l), shift=0):
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
     _softmax(lambda x, l, E: (np.exp(x) - 1) / (np.exp(l * x) - 1))),
    ("one_late", "rising modes one step late", _softmax(shift=1)),
    ("coefficient_only", "C for C/w", lambda right, w, C, dt, *, l: right(w, C * w, dt, l=l)),
    ("step_included", "C/(dt·w) for C/w",
     lambda right, w, C, dt, *, l: right(w, C / dt[..., None], dt, l=l)),
    ("divided_twice", "C/w²", lambda right, w, C, dt, *, l: right(w, C / w, dt, l=l)),
    ("mean", "1/l", _softmax(lambda x, l, E: 1 / max(1, l) + 0 * x)),
    ("one_step_less", "the sum over l − 1 steps",
     _softmax(lambda x, l, E: _whole(x, max(1, l - 1)))),
    ("one_step_more", "the sum over l + 1 steps", _softmax(lambda x, l, E: _whole(x, l + 1))),
    ("rising_as_falling", "−|Re w| for Re w", {"w": lambda w: w - w.real - np.abs(w.real)}),
    ("unnormalised", "DSS-exp in its place", instead(DSS_EXP_KERNEL.reference)),
    ("normalised_in_one", "the sum over all modes together", _normalised_in_one),
)  # fmt: skip
SOFTMAX.plant(
    ("published", "x*/(|x|² + 1e-7) for 1/x",
     Epsilon(1e-7, lambda e: instead(partial(published, epsilon=e)))),
    ("moduli", "the softmax of the moduli", _softmax(lambda x, l, E: 1 / np.abs(E).sum(-1))),
    by="value[complex64]",
)  # fmt: skip
SOFTMAX.plant(
    ("row_epsilon", "s*/(|s|² + 1e-7) for 1/s, s the row's sum",
     Epsilon(1e-7, lambda e: instead(partial(row_epsilon, epsilon=e)))),
    by="value[complex128]",
)  # fmt: skip


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


LIQUID = every.planted(LIQUID_KERNEL)


def _liquid(inputs=lambda B, degree: B**degree, powers=lambda a, m: a[..., None] ** m):
    """The kernel with one of its parts replaced."""

    def kernel(right, a, B, C, *, l, degree):
        kind = np.result_type(a, B, C)
        E = powers(a.astype(kind), np.arange(l))
        return every.summed(C * inputs(B, degree), E, a, B, C)

    return kernel


LIQUID.plant(
    ("linear", "B for B^d", _liquid(inputs=lambda B, degree: B)),
    ("one_factor_more", "B^{d+1} for B^d", _liquid(inputs=lambda B, degree: B ** (degree + 1))),
    ("always_square", "B² for every d", _liquid(inputs=lambda B, degree: B**2)),
    ("degree_times", "d B for B^d", _liquid(inputs=lambda B, degree: degree * B)),
    # as Liquid-S4's code reads the sum over the state
    ("summed_inputs", "(Σ B) B^{d−1} for B^d",
     _liquid(inputs=lambda B, degree: B.sum(-1, keepdims=True) * B ** (degree - 1))),
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
    ("moduli", "|B|^d for B^d", _liquid(inputs=lambda B, degree: np.abs(B) ** degree)),
    ("output_conjugated", "C* for C", {"C": np.conj}),
    ("input_conjugated", "B* for B", {"B": np.conj}),
    ("mixed_products", "B B* for B²", _liquid(
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
