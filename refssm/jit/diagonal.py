"""Numba mirrors of refssm.diagonal: coefficients and logarithms first, then two tables of powers.

Most are Vandermonde kernels with coefficients from one pass over n numbers;
`refssm.jit.vandermonde` describes the tables. Two kinds of modes need a second kernel: real modes
with negative Ā, and growing modes of the softmax.

Two are summed directly: the kernel of a liquid system with states step by step, its gradients by
Horner's rule; that of a shift as sums of products, lag by lag.
"""

from inspect import unwrap

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid
from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_BILINEAR_REAL,
    DIAGONAL_KERNEL_ZOH,
    DIAGONAL_KERNEL_ZOH_REAL,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    LIQUID_KERNEL,
    SHIFT_KERNEL,
)
from refssm.discretize.phi import moment, phi1
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit.vandermonde import moments, rounded, vandermonde_kernel, vandermonde_kernel_real

WIDE = ("f8", "c16")  # sums of n terms are in double precision and rounded once
NOTHING = -1e4  # stands for log 0: e^{−1e4} is 0 in double precision, and −1e4·0 = 0


def _moments(dk, x):
    """Σ_k dk_k e^{x_n k}* and Σ_k k dk_k e^{x_n k}*, in the precision of dk and x."""
    return rounded(moments(dk, x), np.result_type(dk, x))


def _later(dk):
    """(k + 1) dk_{k+1}, the factor of Ā^k in the derivative by Ā."""
    later = dk[..., 1:]
    return np.arange(1, later.shape[-1] + 1, dtype=np.finfo(dk.dtype).dtype) * later


def _alternating(l, dtype):
    """1, −1, 1, …"""
    return 1 - 2 * (np.arange(l) % 2).astype(np.finfo(dtype).dtype)


def _held(w, dt):
    """z = dt·w and dt φ₁(z)."""
    h = dt[..., None]
    z = h * w
    return z, h * phi1(z)


@mirror(DIAGONAL_KERNEL_ZOH)
def diagonal_kernel_zoh(w, B, C, dt, *, l):
    z, H = _held(w, dt)
    return vandermonde_kernel(C * H * B, z, l=l)


def _held_back(dk, w, B, C, dt):
    """The gradients of zero-order hold, over the whole batch."""
    h = dt[..., None]
    z, H = _held(w, dt)
    S, T = _moments(dk, z)
    CB = (C * B).conj()
    dw = CB * ((h * h * moment(1, z)).conj() * S + (h * H).conj() * T)
    ddt = (CB * (np.exp(z).conj() * S + (w * H).conj() * T)).sum(-1)
    return dw, (C * H).conj() * S, (H * B).conj() * S, ddt


@mirror(DIAGONAL_KERNEL_ZOH)
def diagonal_kernel_zoh_vjp(dk, w, B, C, dt, *, l):
    return unbroadcast_each(_held_back(dk, w, B, C, dt), (w, B, C, dt))


@mirror(DIAGONAL_KERNEL_ZOH_REAL)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """Sums no imaginary parts."""
    z, H = _held(w, dt)
    return vandermonde_kernel_real(C * H * B, z, l=l)


@mirror(DIAGONAL_KERNEL_ZOH_REAL)
def diagonal_kernel_zoh_real_vjp(dk, w, B, C, dt, *, l):
    return unbroadcast_each(_held_back(2 * dk, w, B, C, dt), (w, B, C, dt))


@mirror(DSS_EXP_KERNEL)
def dss_exp_kernel(w, C, dt, *, l):
    z, H = _held(w, dt)
    return vandermonde_kernel(C * H, z, l=l)


@mirror(DSS_EXP_KERNEL)
def dss_exp_kernel_vjp(dk, w, C, dt, *, l):
    dw, _, dC, ddt = _held_back(dk, w, np.ones_like(C), C, dt)
    return unbroadcast_each((dw, dC, ddt), (w, C, dt))


def _logarithm(h):
    """log ±Ā, Ā = (1 + h)/(1 − h); and True where the sign is − (real Ā < 0)."""
    A_bar = (1 + h) / (1 - h)
    fast = np.abs(A_bar) < 0.5  # there 1 + h is more accurate than artanh h
    negative = (A_bar < 0) if h.dtype.kind == "f" else np.zeros(h.shape, bool)
    root = np.where(negative, -A_bar, A_bar)
    g = np.where(np.abs(h) > 1, 1 / np.where(h == 0, 1, h), h) if h.dtype.kind == "f" else h
    slow = 2 * np.arctanh(np.where(fast, 0, g))
    quick = np.where(root == 0, NOTHING, np.log(np.where(fast & (root != 0), root, 1)))
    return np.where(fast, quick, slow), negative


@mirror(DIAGONAL_KERNEL_BILINEAR)
def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Powers of a small Ā also by its logarithm."""
    dt = dt[..., None]
    h = dt * w / 2
    log, negative = _logarithm(h)
    v = C * (dt / (1 - h)) * B
    if not negative.any():
        return vandermonde_kernel(v, log, l=l)
    k = vandermonde_kernel(np.where(negative, 0, v), log, l=l)
    turned = vandermonde_kernel(np.where(negative, v, 0), log, l=l)
    return k + _alternating(l, k.dtype) * turned


@mirror(DIAGONAL_KERNEL_BILINEAR)
def diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, *, l):
    return unbroadcast_each(_mapped_back(dk, w, B, C, dt, l), (w, B, C, dt))


def _mapped_back(dk, w, B, C, dt, l):
    """The gradients of the bilinear map, over the whole batch."""
    h = dt[..., None]
    z = h * w
    R, (log, negative) = 1 / (1 - z / 2), _logarithm(z / 2)
    S, T = _moments(dk, log)[0], _moments(_later(dk), log)[0]
    if negative.any():
        turned = _alternating(l, dk.dtype) * dk
        S = np.where(negative, _moments(turned, log)[0], S)
        T = np.where(negative, -_moments(_later(turned), log)[0], T)
    through, H = (C * B * (R * R)).conj(), h * R
    dw = h * h * through * (S / 2 + R.conj() * T)
    ddt = (through * (S + (z * R).conj() * T)).sum(-1)
    return dw, (C * H).conj() * S, (H * B).conj() * S, ddt


@mirror(DIAGONAL_KERNEL_BILINEAR_REAL)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """Real modes, which may turn, as there."""
    h = dt[..., None] * w / 2
    if h.dtype.kind == "f":
        return 2 * unwrap(diagonal_kernel_bilinear)(w, B, C, dt, l=l).real
    log, _ = _logarithm(h)
    return vandermonde_kernel_real(C * (dt[..., None] / (1 - h)) * B, log, l=l)


@mirror(DIAGONAL_KERNEL_BILINEAR_REAL)
def diagonal_kernel_bilinear_real_vjp(dk, w, B, C, dt, *, l):
    return unbroadcast_each(_mapped_back(2 * dk, w, B, C, dt, l), (w, B, C, dt))


def _fallen(z, l):
    """x = ∓z with Re x ≤ 0; True where z grows; (e^x − 1)/(e^{lx} − 1)."""
    rising = z.real > 0
    x = np.where(rising, -z, z)
    return x, rising, np.expm1(x) / np.expm1(max(1, l) * x)


@mirror(DSS_SOFTMAX_KERNEL)
def dss_softmax_kernel(w, C, dt, *, l):
    """Growing modes are summed backwards in time."""
    l = int(l)
    x, rising, r = _fallen(dt[..., None] * w, l)
    v = C / w * r
    k = vandermonde_kernel(np.where(rising, 0, v), x, l=l)
    return k + vandermonde_kernel(np.where(rising, v, 0), x, l=l)[..., ::-1]


@mirror(DSS_SOFTMAX_KERNEL)
def dss_softmax_kernel_vjp(dk, w, C, dt, *, l):
    l, h = int(l), dt[..., None]
    x, rising, r = _fallen(h * w, l)
    last = max(1, l) * x
    mean = max(1, l) * (np.exp(last) / np.expm1(last)) - np.exp(x) / np.expm1(x)
    pairs = zip(_moments(dk, x), _moments(dk[..., ::-1], x), strict=True)
    S, T = (np.where(rising, backward, forward) for forward, backward in pairs)
    v = (C / w * r).conj()
    dz = v * np.where(rising, mean.conj() * S - T, T - mean.conj() * S)
    dw, ddt = h * dz - v * S / w.conj(), (w.conj() * dz).sum(-1)
    return unbroadcast_each((dw, (r / w).conj() * S, ddt), (w, C, dt))


def _averaged(delta, alpha, beta):
    """p, σ(α), log q and n^{−½}."""
    p, s = sigmoid(delta), sigmoid(alpha)
    loss = p * s
    log = np.where(loss < 1, np.log1p(-np.where(loss < 1, loss, 0)), NOTHING)
    log = np.where(np.isnan(loss), loss, log)
    return p, s, log, 1 / np.sqrt(np.full((), max(1, beta.shape[-1]), p.dtype))


@mirror(EMA_KERNEL)
def ema_kernel(delta, alpha, beta, gamma, *, l):
    """Every power by its logarithm."""
    p, _, log, scale = _averaged(delta, alpha, beta)
    return vandermonde_kernel(scale * (p * beta * gamma), log, l=l)


@mirror(EMA_KERNEL)
def ema_kernel_vjp(dk, delta, alpha, beta, gamma, *, l):
    p, s, log, scale = _averaged(delta, alpha, beta)
    S, T = scale * _moments(dk, log)[0], scale * _moments(_later(dk), log)[0]
    both = (beta * gamma).conj()
    ddelta = both * (p * sigmoid(-delta)) * (S - p * s * T)
    dalpha = -(both * (p * p * (s * sigmoid(-alpha))) * T)
    gradients = ddelta, dalpha, p * gamma.conj() * S, p * beta.conj() * S
    return unbroadcast_each(gradients, (delta, alpha, beta, gamma))


@gufunc("(n),(n),(l)->(l)", kinds=WIDE)
def _fading(a, v, length, k):
    """Σ_n v_n a_n^m, each power from the one before, n at a time."""
    x = v.copy()
    for m in range(k.size):
        k[m] = 0
        for n in range(x.size):
            k[m] += x[n]
            x[n] *= a[n]


@gufunc("(l),(n)->(n),(n)", kinds=WIDE)
def _fading_back(dk, a, S, T):
    """Σ_m dk_m q^m and its derivative by q, q = a*, by Horner's rule."""
    for n in range(a.size):
        S[n], T[n] = 0, 0
        for m in range(dk.size - 1, -1, -1):
            T[n] = S[n] + np.conj(a[n]) * T[n]
            S[n] = dk[m] + np.conj(a[n]) * S[n]


@mirror(LIQUID_KERNEL)
def liquid_kernel(a, B, C, *, l, degree=2):
    """In double precision, rounded once."""
    kind = np.result_type(a, B, C)
    wide = np.result_type(kind, np.float64)
    return _fading(
        a.astype(wide), C.astype(wide) * B.astype(wide) ** degree, np.empty(l, wide)
    ).astype(kind)


@mirror(LIQUID_KERNEL)
def liquid_kernel_vjp(dk, a, B, C, *, l, degree=2):
    kind = np.result_type(dk, a, B, C)
    wide = np.result_type(kind, np.float64)
    d, q, b, c = (x.astype(wide) for x in (dk, a, B, C))
    S, T = _fading_back(d, q)
    dB = (degree * c * b ** (degree - 1)).conj() * S
    gradients = (c * b**degree).conj() * T, dB, (b**degree).conj() * S
    return rounded(unbroadcast_each(gradients, (a, B, C)), kind)


@gufunc("(n),(n),(l)->(l)", kinds=WIDE)
def _shift(B, C, length, k):
    for j in range(k.size):
        k[j] = 0
        for i in range(B.size - j):
            k[j] += B[i] * C[i + j]


@gufunc("(l),(n),(n)->(n),(n)", kinds=WIDE)
def _shift_back(dk, B, C, dB, dC):
    for i in range(B.size):
        dB[i], dC[i] = 0, 0
    for j in range(dk.size):
        for i in range(B.size - j):
            dB[i] += dk[j] * np.conj(C[i + j])
            dC[i + j] += dk[j] * np.conj(B[i])


@mirror(SHIFT_KERNEL)
def shift_kernel(B, C, *, l):
    kind = np.result_type(B, C)
    return _shift(B, C, np.empty(l, kind)).astype(kind)


@mirror(SHIFT_KERNEL)
def shift_kernel_vjp(dk, B, C, *, l):
    kind = np.result_type(dk, B, C)
    return unbroadcast_each((g.astype(kind) for g in _shift_back(dk, B, C)), (B, C))
