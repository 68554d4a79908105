"""Mirrors of refssm.discretize.hold: e^{dt A}, and φ₁ and φ₂ applied to dt B only, not to I.

The reference exponentiates a block matrix of twice or three times the size; here H = dt B has m
columns, and a squaring is one product of n × n matrices and a thin one, two for the first-order
hold. See `exponentials` for the number of products and the largest norm, 2³¹.
"""

from __future__ import annotations

from refssm.discretize import (
    DISCRETIZE_FOH,
    DISCRETIZE_IMPULSE,
    DISCRETIZE_MAMBA,
    DISCRETIZE_ZOH,
)
from refssm_gpu._algebra.exponential import (
    exponential,
    exponential_derivative,
    exponential_held,
    exponentials,
)
from refssm_gpu._algebra.parts import above, adjoint, conj, for_every, joined
from refssm_gpu._launching.arrays import Array, namespace, real_type, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.discretize.blocks import scaled, through_steps


@mirror(DISCRETIZE_ZOH)
def discretize_zoh(A, B, dt):
    return for_every(*exponential_held(scaled(A, dt), scaled(B, dt)))


@mirror(DISCRETIZE_ZOH)
def discretize_zoh_vjp(dA_bar, dB_bar, A, B, dt):
    n, G = A.shape[-1], adjoint(above(scaled(A, dt), scaled(B, dt)))
    dG = exponential_derivative(G, joined(dA_bar, dB_bar, axis=-1))
    return through_steps(dG[..., :n], dG[..., n:], A, B, dt)


@mirror(DISCRETIZE_FOH)
def discretize_foh(A, B, dt):
    A_bar, held, ramp = exponentials(scaled(A, dt), scaled(B, dt))
    return for_every(A_bar, ramp, held - ramp)


@mirror(DISCRETIZE_FOH)
def discretize_foh_vjp(dA_bar, dB0_bar, dB1_bar, A, B, dt):
    n, m = B.shape[-2:]
    G = adjoint(_held_twice(scaled(A, dt), scaled(B, dt)))
    dG = exponential_derivative(G, joined(dA_bar, dB1_bar, dB0_bar - dB1_bar, axis=-1))
    return through_steps(dG[..., :n], dG[..., n : n + m], A, B, dt)


def _held_twice(F: Array, H: Array) -> Array:
    """[[F, H, 0], [0, 0, I], [0, 0, 0]]; leading axes broadcast."""
    xp, (n, m) = namespace(F, H), H.shape[-2:]
    place = xp.arange(n + 2 * m)
    held = (place >= n) & (place < n + m)
    ahead = xp.eye(n + 2 * m, k=m, dtype=real_type(F.dtype, xp))
    return above(F, H, xp.zeros_like(H)) + xp.where(held[:, None], ahead, 0.0)


@mirror(DISCRETIZE_IMPULSE)
def discretize_impulse(A, B, dt):
    return for_every(exponential(scaled(A, dt)), namespace(B).asarray(B, copy=True))


@mirror(DISCRETIZE_IMPULSE)
def discretize_impulse_vjp(dA_bar, dB_bar, A, B, dt):
    xp = namespace(A)
    dF = exponential_derivative(adjoint(scaled(A, dt)), dA_bar)
    ddt = xp.sum(conj(A) * dF, axis=(-2, -1))
    dB = unbroadcast(xp.asarray(dB_bar, copy=True), B)
    return unbroadcast(scaled(dF, dt), A), dB, unbroadcast(ddt, dt)


@mirror(DISCRETIZE_MAMBA)
def discretize_mamba(A, B, dt):
    return for_every(exponential(scaled(A, dt)), scaled(B, dt))


@mirror(DISCRETIZE_MAMBA)
def discretize_mamba_vjp(dA_bar, dB_bar, A, B, dt):
    dF = exponential_derivative(adjoint(scaled(A, dt)), dA_bar)
    return through_steps(dF, dB_bar, A, B, dt)
