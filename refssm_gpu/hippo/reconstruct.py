"""Mirrors of refssm.hippo.reconstruct: the basis at all delays, then one matrix product.

Delays that the whole batch shares make one table for all states.
"""

from __future__ import annotations

from math import gamma, pi, sqrt

from refssm.hippo import (
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
)
from refssm_gpu._algebra.parts import applied, conj, counting
from refssm_gpu._algebra.polynomials import laguerre, laguerre_slopes, legendre, legendre_slopes
from refssm_gpu._launching.arrays import Array, namespace, real_type, unbroadcast
from refssm_gpu._launching.checked import mirror


def _sum(c: Array, p: Array) -> Array:
    """Σ_n c_n p_ln."""
    return c @ namespace(p).matrix_transpose(p) if p.ndim == 2 else applied(p, c)


def _gradients(dy: Array, c: Array, s: Array, p: Array, slopes: Array) -> tuple[Array, Array]:
    """dc_n = Σ_l p_ln* dy_l,  ds_l = Re dy_l (Σ_n c_n p'_ln)*."""
    dc = dy @ p if p.ndim == 2 else (dy[..., None, :] @ p)[..., 0, :]
    return unbroadcast(dc, c), unbroadcast(dy * conj(_sum(c, slopes)), s)


def _roots(c: Array) -> Array:
    """√(2i + 1), the factor that makes Legendre polynomials orthonormal."""
    return namespace(c).sqrt(2 * counting(c.shape[-1], c) + 1)


@mirror(HIPPO_RECONSTRUCT_LEGS)
def hippo_reconstruct_legs(c, s):
    return _sum(_roots(c) * c, legendre(1 - 2 * s, c.shape[-1]))


@mirror(HIPPO_RECONSTRUCT_LEGS)
def hippo_reconstruct_legs_vjp(dy, c, s):
    P = legendre(1 - 2 * s, c.shape[-1])
    return _gradients(dy, c, s, _roots(c) * P, -2 * (_roots(c) * legendre_slopes(P)))


@mirror(HIPPO_RECONSTRUCT_LEGT)
def hippo_reconstruct_legt(c, s, *, window=1.0):
    return _sum(_roots(c) * c, legendre(1 - 2 * (s / window), c.shape[-1]))


@mirror(HIPPO_RECONSTRUCT_LEGT)
def hippo_reconstruct_legt_vjp(dy, c, s, *, window=1.0):
    P = legendre(1 - 2 * (s / window), c.shape[-1])
    slopes = _roots(c) * legendre_slopes(P)
    return _gradients(dy, c, s, _roots(c) * P, slopes * -2 / window)


@mirror(HIPPO_RECONSTRUCT_LMU)
def hippo_reconstruct_lmu(c, s, *, window=1.0):
    return _sum(c, legendre(2 * (s / window) - 1, c.shape[-1]))


@mirror(HIPPO_RECONSTRUCT_LMU)
def hippo_reconstruct_lmu_vjp(dy, c, s, *, window=1.0):
    P = legendre(2 * (s / window) - 1, c.shape[-1])
    return _gradients(dy, c, s, P, legendre_slopes(P) * 2 / window)


@mirror(HIPPO_RECONSTRUCT_LAGT)
def hippo_reconstruct_lagt(c, s, *, alpha=0.0, beta=1.0):
    return _sum(c, _laguerre_functions(c, s, alpha, beta)[0])


@mirror(HIPPO_RECONSTRUCT_LAGT)
def hippo_reconstruct_lagt_vjp(dy, c, s, *, alpha=0.0, beta=1.0):
    return _gradients(dy, c, s, *_laguerre_functions(c, s, alpha, beta))


def _laguerre_functions(c: Array, s: Array, alpha: float, beta: float) -> tuple[Array, Array]:
    """The basis and its derivative with respect to s."""
    xp, n = namespace(c, s), c.shape[-1]
    size = xp.asarray(_laguerre_sizes(n, alpha, beta), dtype=real_type(c.dtype, xp))
    L = laguerre(s, n, alpha)
    if alpha == 0 and beta == 1:
        return size * L, size * laguerre_slopes(L)
    weight = xp.exp((beta - 1) / 2 * s)
    rate = xp.full_like(s, (beta - 1) / 2)  # derivative of log weight
    if alpha:
        weight, rate = weight * xp.exp(alpha * xp.log(s)), rate + alpha / s
    p = weight[..., None] * (size * L)
    return p, rate[..., None] * p + weight[..., None] * (size * laguerre_slopes(L))


def _laguerre_sizes(n: int, alpha: float, beta: float) -> list[float]:
    """√(Γ(1−α) β^(α−1) i!/Γ(i+α+1)), i = 0 … n−1: constants, so the host computes them."""
    square = gamma(1 - alpha) / gamma(1 + alpha) * beta ** (alpha - 1)
    sizes = []
    for i in range(n):
        sizes.append(sqrt(square))
        square /= 1 + alpha / (i + 1)
    return sizes


@mirror(HIPPO_RECONSTRUCT_FOURIER)
def hippo_reconstruct_fourier(c, s, *, window=1.0):
    return _sum(c, _waves(c, s, window)[0])


@mirror(HIPPO_RECONSTRUCT_FOURIER)
def hippo_reconstruct_fourier_vjp(dy, c, s, *, window=1.0):
    return _gradients(dy, c, s, *_waves(c, s, window))


def _waves(c: Array, s: Array, window: float) -> tuple[Array, Array]:
    """1, 0, √2 cos θ, √2 sin θ, √2 cos 2θ, … and the derivatives with respect to s."""
    xp, i = namespace(c, s), counting(c.shape[-1], c)
    size = xp.sqrt(xp.where(i > 1, xp.full_like(i, 2.0), 1.0))
    rate = 2 * pi * (i // 2)
    phase = (s / window)[..., None] * rate
    cosine, sine = size * xp.cos(phase), size * xp.sin(phase)
    even = i % 2 == 0
    return xp.where(even, cosine, sine), rate * xp.where(even, -sine, cosine) / window
