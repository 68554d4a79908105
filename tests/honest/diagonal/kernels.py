"""Honest kernels of diagonal systems: other sums, other logarithms, recurrences, autodiff."""

import numpy as np
from scipy.special import expit

from honest import Honest
from honest.diagonal import in_torch as by_torch
from honest.diagonal.dss import SOFTMAX
from honest.diagonal.liquid import LIQUID
from honest.diagonal.shift import SHIFT, by_transform, by_transform_vjp
from honest.vandermonde import (
    einsum,
    mode_by_mode,
    polar,
    reversed_modes,
    step_by_step,
    two_tables,
)
from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_ZOH,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    LIQUID_KERNEL,
    SHIFT_KERNEL,
)

ZOH, BILINEAR, EXP = DIAGONAL_KERNEL_ZOH, DIAGONAL_KERNEL_BILINEAR, DSS_EXP_KERNEL
SUMS = (einsum, mode_by_mode, reversed_modes, step_by_step, polar, two_tables)


def in_double(op):
    """The reference in double precision (double's own in long double), rounded at the end."""

    def whole(*args, l):
        wide = (a.astype(np.result_type(a, np.float64)) for a in args)
        return op.reference(*wide, l=l).astype(np.result_type(*args))

    return whole


def _sinch(z):
    """φ₁(z) = e^{z/2} sinh(z/2)/(z/2), which overflows far from 0."""
    half = np.where((z == 0) | (np.abs(z) > 64), 1, z / 2)
    return np.where(np.abs(half) == 1, _quotient(z), np.exp(half) * np.sinh(half) / half)


def _quotient(z):
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def held(form, phi=_quotient):
    """Zero-order hold by a Vandermonde kernel of another form."""

    def kernel(w, B, C, dt, *, l):
        h = dt[..., None]
        return form(B * C * (h * phi(h * w)), h * w, l=l)

    return kernel


def without_B(kernel):
    """The kernel for DSS-exp, which has no B."""
    return lambda w, C, dt, *, l: kernel(w, np.ones_like(C), C, dt, l=l)


def over_w(w, B, C, dt, *, l):
    """(e^{dt·w} − 1)/w, dt where w is 0."""
    z = dt[..., None] * w
    H = np.where(w == 0, dt[..., None], np.expm1(z) / np.where(w == 0, 1, w))
    return einsum(C * H * B, z, l=l)


def quick(x):
    """The case with |dt·w| of at least ½.

    For slower modes a rounded root loses k·u, and autodiff of (e^z − 1)/z cancels.
    """
    h = x["dt"][..., None]
    slow = np.abs(h * x["w"]) < 0.5
    faster = x["w"] - x["w"].real - 0.5 / h
    return {**x, "w": np.where(slow, faster, x["w"]).astype(x["w"].dtype)}


def moderate(x):
    """The case with quick modes and Re dt·w of at least −4.

    For stiffer modes autodiff gets φ₁ + z φ₁', or expm1 + 1, by a cancellation.
    """
    x, h = quick(x), x["dt"][..., None]
    stiff = (h * x["w"]).real < -4
    return {**x, "w": np.where(stiff, x["w"] - x["w"].real - 4 / h, x["w"]).astype(x["w"].dtype)}


def _recurrence(a, b, C, l, kind):
    """y_k = Σ C x_k, x_k = a x_{k−1}, x_0 = b."""
    state, kernel = np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape)), []
    for _ in range(l):
        kernel.append((C * state).sum(-1))
        state = a * state
    batch = np.broadcast_shapes(a.shape[:-1], b.shape[:-1], C.shape[:-1])
    return (np.stack(kernel, axis=-1) if l else np.zeros((*batch, 0))).astype(kind)


def recurrence(w, B, C, dt, *, l):
    """The state step by step, for an impulse as input."""
    h = dt[..., None]
    b = h * _quotient(h * w) * B
    return _recurrence(np.exp(h * w), b, C, l, np.result_type(w, B, C, dt))


def not_doubled(x):
    """The case with quick modes; declined from |dt·w| = 8 on, where Ā is near −1."""
    return quick(x) if np.abs(quick(x)["w"] * x["dt"][..., None]).max(initial=0) < 8 else None


def bilinear_recurrence(w, B, C, dt, *, l):
    """The state step by step, with Ā rounded."""
    h = dt[..., None] * w / 2
    b = dt[..., None] / (1 - h) * B
    return _recurrence((1 + h) / (1 - h), b, C, l, np.result_type(w, B, C, dt))


def wide_roots(w, B, C, dt, *, l):
    """Powers of Ā, with Ā rounded in the next wider precision."""
    kind = np.result_type(w, B, C, dt)
    more = np.float64 if np.finfo(kind).bits == 32 else np.longdouble
    w, B, C, dt = (a.astype(np.result_type(a, more)) for a in (w, B, C, dt))
    step = dt[..., None]
    A_bar = (2 + step * w) / (2 - step * w)
    powers = A_bar[..., None] ** np.arange(l)
    v = C * (2 * step / (2 - step * w)) * B
    return (v[..., None] * powers).sum(-2).astype(kind)


def by_parts(w, B, C, dt, *, l):
    """|Ā| by log1p(|Ā|² − 1) and its phase by atan2; where |Ā|² < ½, powers of Ā itself."""
    step, k = dt[..., None], np.arange(l, dtype=dt.dtype)
    h = step * w / 2
    size = np.log1p(4 * h.real / ((1 - h.real) ** 2 + h.imag**2))
    phase = np.arctan2(2 * h.imag, (1 - np.abs(h)) * (1 + np.abs(h)))
    root = ((1 + h) / (1 - h))[..., None]
    slow = np.where(size > np.log(0.5), size, 0)[..., None] / 2 * k
    turn = np.where(h.imag == 0, 0, phase)[..., None] * k
    flip = np.where(((h.imag == 0) & (h.real < -1))[..., None] & (k % 2 == 1), -1, 1)
    E = flip * np.exp(slow) * (np.cos(turn) + 1j * np.sin(turn))
    small = np.where(np.abs(root) < 1, root, 0)
    E = np.where(size[..., None] > np.log(0.5), E, small**k)
    v = C * (step / (1 - h)) * B
    K = (v[..., None] * E).sum(-2)
    kind = np.result_type(w, B, C, dt)
    return K.astype(kind) if kind.kind == "c" else K.real.astype(kind)


def averaged(form):
    """Mega's kernel by a Vandermonde kernel of another form, with SciPy's logistic function."""

    def kernel(delta, alpha, beta, gamma, *, l):
        p = expit(delta)
        log = np.maximum(np.log1p(-p * expit(alpha)), -1e4).astype(delta.dtype)
        return form(p * beta * gamma / p.dtype.type(np.sqrt(beta.shape[-1] or 1)), log, l=l)

    return kernel


def _leaking(x):
    """The case with delta and alpha of at least −2: a slower decay, rounded, loses k·u."""
    raised = {n: np.maximum(x[n], -2).astype(x[n].dtype) for n in ("delta", "alpha")}
    return {**x, **raised}


def average_recurrence(delta, alpha, beta, gamma, *, l):
    """The moving average step by step, as in Mega's decoding."""
    p = expit(delta)
    C = gamma / p.dtype.type(np.sqrt(beta.shape[-1] or 1))
    kind = np.result_type(delta, alpha, beta, gamma)
    return _recurrence(1 - p * expit(alpha), p * beta, C, l, kind)


def _all(op, forms, **more):
    return [Honest(op.name, name, form, **more) for name, form in forms.items()]


HELD = {form.__name__: held(form) for form in SUMS} | {
    "sinh": held(einsum, _sinch),
    "over_w": over_w,
    "in_double": in_double(ZOH),
}
IMPLEMENTATIONS = [
    *_all(ZOH, HELD),
    *_all(EXP, {name: without_B(kernel) for name, kernel in HELD.items()}),
    *_all(ZOH, {"recurrence": recurrence}, only=quick),
    *_all(EXP, {"recurrence": without_B(recurrence)}, only=quick),
    *_all(BILINEAR, {"in_double": in_double(BILINEAR), "wide_roots": wide_roots}),
    *_all(BILINEAR, {"by_parts": by_parts}),
    *_all(BILINEAR, {"recurrence": bilinear_recurrence}, only=not_doubled),
    *_all(EMA_KERNEL, {form.__name__: averaged(form) for form in SUMS}),
    *_all(EMA_KERNEL, {"in_double": in_double(EMA_KERNEL)}),
    *_all(EMA_KERNEL, {"recurrence": average_recurrence}, only=_leaking),
    *_all(DSS_SOFTMAX_KERNEL, SOFTMAX),
    *_all(LIQUID_KERNEL, LIQUID),
    *_all(SHIFT_KERNEL, SHIFT),
    *_all(SHIFT_KERNEL, {"transform": by_transform}, vjp=by_transform_vjp),
    *_all(ZOH, {"torch": ZOH.reference}, vjp=by_torch.zoh, needs="torch", only=moderate),
    *_all(BILINEAR, {"torch": BILINEAR.reference}, vjp=by_torch.bilinear, needs="torch",
          only=by_torch.not_two),
    *_all(EXP, {"torch": EXP.reference}, vjp=by_torch.exp, needs="torch", only=moderate),
    *_all(DSS_SOFTMAX_KERNEL, {"torch": DSS_SOFTMAX_KERNEL.reference}, vjp=by_torch.softmax,
          needs="torch"),
    *_all(EMA_KERNEL, {"torch": EMA_KERNEL.reference}, vjp=by_torch.ema, needs="torch",
          only=by_torch.not_saturated),
    *_all(SHIFT_KERNEL, {"torch": SHIFT_KERNEL.reference}, vjp=by_torch.shift, needs="torch"),
]  # fmt: skip
