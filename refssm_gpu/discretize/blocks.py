"""Helpers of the matrix forms: multiply by the step size, gradients of A, B and dt."""

from __future__ import annotations

from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast


def scaled(A: Array, dt: Array) -> Array:
    """dt A."""
    return dt[..., None, None] * A


def through_steps(dF: Array, dH: Array, A: Array, B: Array, dt: Array) -> tuple[Array, ...]:
    """The gradients of A, B and dt from those of F = dt A and H = dt B."""
    xp, h = namespace(dF), dt[..., None, None]
    ddt = xp.sum(conj(A) * dF, axis=(-2, -1)) + xp.sum(conj(B) * dH, axis=(-2, -1))
    return unbroadcast(h * dF, A), unbroadcast(h * dH, B), unbroadcast(ddt, dt)
