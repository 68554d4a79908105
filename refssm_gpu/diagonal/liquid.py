"""Mirrors of refssm.diagonal.liquid: powers by doubling, in double precision, rounded once."""

from __future__ import annotations

from refssm.diagonal import LIQUID_KERNEL
from refssm_gpu._algebra.parts import conj, counting
from refssm_gpu._launching.arrays import (
    Array,
    in_type_of,
    namespace,
    unbroadcast_and_round,
    widened,
)
from refssm_gpu._launching.checked import mirror


def _powers(a: Array, l: int) -> Array:
    """a_n^m, m = 0 … l−1."""
    xp = namespace(a)
    E, leap = xp.ones((*a.shape, 1), dtype=a.dtype)[..., :l], a[..., None]
    while E.shape[-1] < l:
        E = xp.concat([E, leap * E[..., : l - E.shape[-1]]], axis=-1)
        leap = leap * leap
    return E


def _product(B: Array, degree: int) -> Array:
    """B^d by products: the power of a complex number would go through its logarithm."""
    found = namespace(B).ones_like(B)
    for _ in range(degree):
        found = found * B
    return found


@mirror(LIQUID_KERNEL)
def liquid_kernel(a, B, C, *, l, degree=2):
    p, b, c = widened(a, B, C)
    terms = (c * _product(b, degree))[..., None] * _powers(p, l)
    return in_type_of(namespace(a).sum(terms, axis=-2), a, B, C)


@mirror(LIQUID_KERNEL)
def liquid_kernel_vjp(dk, a, B, C, *, l, degree=2):
    xp, (d, p, b, c) = namespace(dk), widened(dk, a, B, C)
    E, rest, later = conj(_powers(p, l)), _product(b, degree - 1), d[..., 1:]
    S = xp.sum(d[..., None, :] * E, axis=-1)
    moments = (1 + counting(later.shape[-1], later)) * later
    T = xp.sum(moments[..., None, :] * E[..., : later.shape[-1]], axis=-1)
    gradients = conj(c * rest * b) * T, degree * conj(c * rest) * S, conj(rest * b) * S
    return unbroadcast_and_round(gradients, (a, B, C))
