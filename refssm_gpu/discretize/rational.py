"""Mirrors of refssm.discretize.rational: batches of solves by cuBLAS.

A singular matrix gives infinity or NaN instead of an error: the card is not asked for its verdict.
"""

from __future__ import annotations

from refssm.discretize import (
    DISCRETIZE_BACKWARD,
    DISCRETIZE_BILINEAR,
    DISCRETIZE_EULER,
    DISCRETIZE_GBT,
)
from refssm_gpu._algebra.parts import adjoint, for_every, identity, solve
from refssm_gpu._launching.arrays import Array, namespace
from refssm_gpu._launching.checked import mirror
from refssm_gpu.discretize.blocks import scaled, through_steps


@mirror(DISCRETIZE_GBT)
def discretize_gbt(A, B, dt, *, alpha):
    """Infinity or NaN where 1/(α dt) is an eigenvalue of A."""
    M, N, H = _systems(A, B, dt, alpha)
    return for_every(solve(M, N), solve(M, H))


@mirror(DISCRETIZE_GBT)
def discretize_gbt_vjp(dA_bar, dB_bar, A, B, dt, *, alpha):
    return _gradients(dA_bar, dB_bar, A, B, dt, alpha)


def _systems(A: Array, B: Array, dt: Array, alpha: float) -> tuple[Array, Array, Array]:
    """M = I − α dt A, M Ā = I + (1 − α) dt A, and M B̄ = dt B."""
    F, I = scaled(A, dt), identity(A)
    return I - alpha * F, _weighted(I, 1 - alpha, F), scaled(B, dt)


def _weighted(I: Array, weight: float, F: Array) -> Array:
    """I + weight·F; I alone for the weight 0, though F may be infinite."""
    return I + weight * F if weight else I + namespace(F).zeros_like(F)


def _gradients(dA_bar, dB_bar, A, B, dt, alpha):
    """The gradients of the map for weight `alpha`."""
    M, N, H = _systems(A, B, dt, alpha)
    A_bar, B_bar = solve(M, N), solve(M, H)
    S, T = solve(adjoint(M), dA_bar), solve(adjoint(M), dB_bar)
    shares = (1 - alpha) * identity(A) + alpha * A_bar
    return through_steps(S @ adjoint(shares) + alpha * (T @ adjoint(B_bar)), T, A, B, dt)


@mirror(DISCRETIZE_EULER)
def discretize_euler(A, B, dt):
    return for_every(identity(A) + scaled(A, dt), scaled(B, dt))


@mirror(DISCRETIZE_EULER)
def discretize_euler_vjp(dA_bar, dB_bar, A, B, dt):
    return through_steps(dA_bar, dB_bar, A, B, dt)


@mirror(DISCRETIZE_BILINEAR)
def discretize_bilinear(A, B, dt):
    """Infinity or NaN where 2/dt is an eigenvalue of A."""
    M, N, H = _systems(A, B, dt, 0.5)
    return for_every(solve(M, N), solve(M, H))


@mirror(DISCRETIZE_BILINEAR)
def discretize_bilinear_vjp(dA_bar, dB_bar, A, B, dt):
    return _gradients(dA_bar, dB_bar, A, B, dt, 0.5)


@mirror(DISCRETIZE_BACKWARD)
def discretize_backward(A, B, dt):
    """Infinity or NaN where 1/dt is an eigenvalue of A."""
    M, N, H = _systems(A, B, dt, 1)
    return for_every(solve(M, N), solve(M, H))


@mirror(DISCRETIZE_BACKWARD)
def discretize_backward_vjp(dA_bar, dB_bar, A, B, dt):
    return _gradients(dA_bar, dB_bar, A, B, dt, 1)
