"""Planted bugs in Mega's moving average."""

import numpy as np

from refssm.conformance.planted.diagonal.base import plant_gradients, plant_sums, summed
from refssm.conformance.planted.planting_old import Planting
from refssm.diagonal import EMA_KERNEL
from refssm.selective_scan.mamba import sigmoid

EMA = Planting(EMA_KERNEL, "float32")
EMA.usual()
plant_sums(EMA, (0, 1, 2, 3))
plant_gradients(EMA)
right, right_vjp = EMA.right, EMA.right_vjp


def _with(p=sigmoid, q=None, scale=None, root=False):
    """The kernel with one of its parts replaced; `root` takes powers of q as it was rounded."""

    def kernel(delta, alpha, beta, gamma, *, l):
        entering, n = p(delta), max(1, beta.shape[-1])
        loss = 1 - q(delta, alpha) if q else sigmoid(delta) * sigmoid(alpha)
        k = np.arange(l, dtype=delta.dtype)
        slow = np.exp(np.log1p(-np.minimum(loss, 0.5))[..., None] * k)
        E = np.where((loss > 0.5)[..., None], (1 - loss)[..., None] ** k, slow)
        E = (1 - loss)[..., None] ** k if root else E
        factor = delta.dtype.type(scale(n) if scale else n**-0.5)
        return summed(factor * (entering * beta * gamma), E, delta, alpha, beta, gamma)

    return kernel


def _log_of_rounded(delta, alpha, beta, gamma, *, l):
    """exp(k log q), log q of the rounded q: as Mega's code has it."""
    p = sigmoid(delta)
    q = np.maximum(1 - p * sigmoid(alpha), np.finfo(p.dtype).tiny)
    E = np.exp(np.log(q)[..., None] * np.arange(l, dtype=p.dtype))
    scale = p.dtype.type(max(1, beta.shape[-1]) ** -0.5)
    return summed(scale * (p * beta * gamma), E, delta, alpha, beta, gamma)


def _half_tanh(x):
    """½(1 + tanh ½x), which has no digits where x is very negative."""
    return (1 + np.tanh(x / 2)) / 2


def _hard(x):
    """A piecewise linear logistic function."""
    return np.clip(x / 6 + x.dtype.type(0.5), 0, 1)


def _plain(delta, alpha):
    return 1 - sigmoid(delta)


def _damped_input(delta, alpha, beta, gamma, *, l):
    """p σ(α) in place of p: what leaves is what enters."""
    return right(delta, alpha, sigmoid(alpha) * beta, gamma, l=l)


WRONG = {
    "rounded_root": (_with(root=True), "powers of a rounded q", ""),
    "log_of_rounded": (_log_of_rounded, "log of the rounded q", ""),
    "unscaled": (_with(scale=lambda n: 1.0), "without 1/√n", ""),
    "mean": (_with(scale=lambda n: 1.0 / n), "1/n for 1/√n", ""),
    "undamped": (_with(q=_plain), "q = 1 − p", ""),
    "damped_input": (_damped_input, "p σ(α) for p", ""),
    "hard": (_with(p=_hard), "a piecewise linear σ", ""),
    "half_tanh": (_with(p=_half_tanh), "σ by tanh: no digits for small p", ""),
    "delta_raw": (_with(p=lambda x: x), "δ for σ(δ)", ""),
    "softplus": (_with(p=lambda x: np.log1p(np.exp(x))), "softplus for σ", ""),
    "negated": (_with(p=lambda x: sigmoid(-x)), "σ(−δ) for σ(δ)", ""),
    "sum_of_logits": (
        _with(q=lambda d, a: 1 - sigmoid(d + a)),
        "1 − σ(δ + α)",
        "",
    ),
    "exchanged": (lambda d, a, b, g, *, l: right(a, d, b, g, l=l), "α and δ exchanged", ""),
    "input_forgotten": (lambda d, a, b, g, *, l: right(d, a, 0 * b + 1, g, l=l), "β = 1", ""),
    "output_conjugated": (
        lambda d, a, b, g, *, l: right(d, a, b, g.conj(), l=l),
        "γ* for γ",
        "complex64",
    ),
}
for _name, (_kernel, _what, _dtype) in WRONG.items():
    EMA.forward(_name, _what, dtype=_dtype)(_kernel)


@EMA.forward("one_step_late", "K_{k−1} for K_k")
def _(delta, alpha, beta, gamma, *, l):
    k = right(delta, alpha, beta, gamma, l=l)
    return np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1) if l else k


@EMA.forward("bidirectional", "the second half of the modes backwards in time")
def _(delta, alpha, beta, gamma, *, l):
    half = beta.shape[-1] // 2
    ahead = np.where(np.arange(beta.shape[-1]) < half, beta, 0).astype(beta.dtype)
    return (
        right(delta, alpha, beta - ahead, gamma, l=l)
        + right(delta, alpha, ahead, gamma, l=l)[..., ::-1]
    )


EMA.changed_gradient("dalpha_sign", "dα with the other sign", alpha=lambda g, _: -g)
EMA.changed_gradient("dbeta_doubled", "dβ twice", beta=lambda g, _: 2 * g)
EMA.changed_gradient("dgamma_negated", "dγ with the other sign", gamma=lambda g, _: -g)
EMA.changed_gradient(
    "dbeta_real", "the real part of dβ", "complex64", beta=lambda g, _: g.real.astype(g.dtype)
)


@EMA.gradient("slope_forgotten", "dδ without σ'")
def _(dk, delta, alpha, beta, gamma, *, l):
    ddelta, *others = right_vjp(dk, delta, alpha, beta, gamma, l=l)
    return ddelta / np.maximum(sigmoid(-delta), np.finfo(delta.dtype).tiny), *others


@EMA.gradient("entering_only", "dδ through p alone, not through q")
def _(dk, delta, alpha, beta, gamma, *, l):
    _, dalpha, dbeta, dgamma = right_vjp(dk, delta, alpha, beta, gamma, l=l)
    through = (beta.conj() * dbeta).real * sigmoid(-delta)
    ddelta = through if through.shape == delta.shape else 0 * delta
    return ddelta.astype(dalpha.dtype), dalpha, dbeta, dgamma


@EMA.gradient("saturated", "σ' as p(1 − p), which cancels for large δ")
def _(dk, delta, alpha, beta, gamma, *, l):
    ddelta, *others = right_vjp(dk, delta, alpha, beta, gamma, l=l)
    rounded = (1 - sigmoid(delta)) / np.maximum(sigmoid(-delta), np.finfo(delta.dtype).tiny)
    return (ddelta * rounded).astype(ddelta.dtype), *others


DEVIATIONS = EMA.bugs
