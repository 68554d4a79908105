"""Planted bugs in the kernels without a step dt: Mega's moving average and the shift."""

import numpy as np

from refssm.activations import sigmoid
from refssm.conformance.planted.diagonal import every_kernel as every
from refssm.conformance.planted.diagonal.every_kernel import first_gradient, real_part
from refssm.conformance.planted.planting import of_result
from refssm.diagonal import EMA_KERNEL, SHIFT_KERNEL

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
    (
        "rounded_root",
        "powers of a rounded q",
        _with(powers=lambda loss, k: (1 - loss)[..., None] ** k),
    ),
    (
        "log_of_rounded",
        "log of the rounded q",  # as Mega's code has it
        _with(powers=lambda loss, k: np.exp(np.log(_positive(1 - loss))[..., None] * k)),
    ),
    by="value[complex64]",
)
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
