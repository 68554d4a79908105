"""Mirrors of refssm.discretize.diagonal_hold: elementwise formulas."""

from __future__ import annotations

from refssm.discretize import (
    DISCRETIZE_DIAGONAL_FOH,
    DISCRETIZE_DIAGONAL_IMPULSE,
    DISCRETIZE_DIAGONAL_MAMBA,
    DISCRETIZE_DIAGONAL_ZOH,
)
from refssm_gpu._algebra.parts import conj, for_every
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.discretize.phi import moment, phi1, phi2, phi2_derivative


def _exp(z: Array) -> Array:
    return namespace(z).exp(z)


def _through(B: Array, dB_bar: Array) -> Array:
    """Σ_m B_nm* dB̄_nm."""
    return namespace(dB_bar).sum(conj(B) * dB_bar, axis=-1)


@mirror(DISCRETIZE_DIAGONAL_ZOH)
def discretize_diagonal_zoh(w, B, dt):
    z = dt * w
    return for_every(_exp(z), (dt * phi1(z))[..., None] * B, rank=1)


@mirror(DISCRETIZE_DIAGONAL_ZOH)
def discretize_diagonal_zoh_vjp(dA_bar, dB_bar, w, B, dt):
    z = dt * w
    A_bar, through_B = _exp(z), _through(B, dB_bar)
    dw = conj(dt * A_bar) * dA_bar + conj(dt * dt * moment(1, z)) * through_B
    dB = conj(dt * phi1(z))[..., None] * dB_bar
    ddt = conj(w * A_bar) * dA_bar + conj(A_bar) * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_FOH)
def discretize_diagonal_foh(w, B, dt):
    z = dt * w
    shares = (dt * phi2(z))[..., None], (dt * moment(1, z))[..., None]
    return for_every(_exp(z), *(share * B for share in shares), rank=1)


@mirror(DISCRETIZE_DIAGONAL_FOH)
def discretize_diagonal_foh_vjp(dA_bar, dB0_bar, dB1_bar, w, B, dt):
    z = dt * w
    A_bar, slope = _exp(z), moment(1, z)
    through_0, through_1 = _through(B, dB0_bar), _through(B, dB1_bar)
    bent = conj(phi2_derivative(z)) * through_0 + conj(moment(2, z)) * through_1
    dw = conj(dt * A_bar) * dA_bar + dt * dt * bent
    dB = conj(dt * phi2(z))[..., None] * dB0_bar + conj(dt * slope)[..., None] * dB1_bar
    ddt = conj(w * A_bar) * dA_bar + conj(slope) * through_0
    ddt = ddt + conj(A_bar - slope) * through_1
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_IMPULSE)
def discretize_diagonal_impulse(w, B, dt):
    return for_every(_exp(dt * w), namespace(B).asarray(B, copy=True), rank=1)


@mirror(DISCRETIZE_DIAGONAL_IMPULSE)
def discretize_diagonal_impulse_vjp(dA_bar, dB_bar, w, B, dt):
    dz = conj(_exp(dt * w)) * dA_bar
    dB = unbroadcast(namespace(dB_bar).asarray(dB_bar, copy=True), B)
    return unbroadcast(dt * dz, w), dB, unbroadcast(conj(w) * dz, dt)


@mirror(DISCRETIZE_DIAGONAL_MAMBA)
def discretize_diagonal_mamba(w, B, dt):
    return for_every(_exp(dt * w), dt[..., None] * B, rank=1)


@mirror(DISCRETIZE_DIAGONAL_MAMBA)
def discretize_diagonal_mamba_vjp(dA_bar, dB_bar, w, B, dt):
    dz = conj(_exp(dt * w)) * dA_bar
    ddt = conj(w) * dz + _through(B, dB_bar)
    return unbroadcast(dt * dz, w), unbroadcast(dt[..., None] * dB_bar, B), unbroadcast(ddt, dt)
