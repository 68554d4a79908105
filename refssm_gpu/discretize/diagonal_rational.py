"""Mirrors of refssm.discretize.diagonal_rational: elementwise formulas."""

from __future__ import annotations

from refssm.discretize import (
    DISCRETIZE_DIAGONAL_BACKWARD,
    DISCRETIZE_DIAGONAL_BILINEAR,
    DISCRETIZE_DIAGONAL_EULER,
    DISCRETIZE_DIAGONAL_GBT,
)
from refssm_gpu._algebra.parts import conj, for_every
from refssm_gpu._launching.arrays import namespace, unbroadcast
from refssm_gpu._launching.checked import mirror


def _mapped(w, B, dt, alpha):
    """Ā = (1 + (1 − α)z) / (1 − αz) and B̄ = dt B / (1 − αz), z = dt w."""
    z = dt * w
    R = 1 - alpha * z
    numerator = 1 + (1 - alpha) * z if alpha != 1 else 1.0
    return for_every(numerator / R, dt[..., None] * B / R[..., None], rank=1)


def _gradients(dA_bar, dB_bar, w, B, dt, alpha):
    """R = 1/(1 − αz): ∂Ā/∂z = R², ∂B̄/∂dt = R² B, ∂B̄/∂w = α dt² R² B, ∂B̄/∂B = dt R."""
    R = 1 / (1 - alpha * (dt * w))
    R2, through_B = conj(R * R), namespace(dB_bar).sum(conj(B) * dB_bar, axis=-1)
    dw = dt * R2 * dA_bar + alpha * dt * dt * R2 * through_B
    dB = conj(dt * R)[..., None] * dB_bar
    ddt = conj(w) * R2 * dA_bar + R2 * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_GBT)
def discretize_diagonal_gbt(w, B, dt, *, alpha):
    return _mapped(w, B, dt, alpha)


@mirror(DISCRETIZE_DIAGONAL_GBT)
def discretize_diagonal_gbt_vjp(dA_bar, dB_bar, w, B, dt, *, alpha):
    return _gradients(dA_bar, dB_bar, w, B, dt, alpha)


@mirror(DISCRETIZE_DIAGONAL_EULER)
def discretize_diagonal_euler(w, B, dt):
    return for_every(1 + dt * w, dt[..., None] * B, rank=1)


@mirror(DISCRETIZE_DIAGONAL_EULER)
def discretize_diagonal_euler_vjp(dA_bar, dB_bar, w, B, dt):
    ddt = conj(w) * dA_bar + namespace(dB_bar).sum(conj(B) * dB_bar, axis=-1)
    return unbroadcast(dt * dA_bar, w), unbroadcast(dt[..., None] * dB_bar, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_BILINEAR)
def discretize_diagonal_bilinear(w, B, dt):
    return _mapped(w, B, dt, 0.5)


@mirror(DISCRETIZE_DIAGONAL_BILINEAR)
def discretize_diagonal_bilinear_vjp(dA_bar, dB_bar, w, B, dt):
    return _gradients(dA_bar, dB_bar, w, B, dt, 0.5)


@mirror(DISCRETIZE_DIAGONAL_BACKWARD)
def discretize_diagonal_backward(w, B, dt):
    return _mapped(w, B, dt, 1)


@mirror(DISCRETIZE_DIAGONAL_BACKWARD)
def discretize_diagonal_backward_vjp(dA_bar, dB_bar, w, B, dt):
    return _gradients(dA_bar, dB_bar, w, B, dt, 1)
