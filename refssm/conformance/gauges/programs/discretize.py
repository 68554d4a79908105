"""Programs of discretizations and their gradients, by three derivatives or three solves.

L(G, E) is the derivative of e^G in the direction E. All three scale G by 2^−s and square s times,
with e^G − I instead of e^G: squaring e^G would double the error of its identity matrix each time.
"""

from math import ceil, log2

import numpy as np

from refssm._numerics.elimination import eliminated
from refssm.conformance.gauges.programs.arithmetic import adjoint, product
from refssm.discretize import hold, rational
from refssm.discretize.blocks import above, identity, scaled, through_steps

LARGEST = 64  # states; products without BLAS take seconds above it
TERMS = 12  # ½^13/13! is far below a rounding in single precision
NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)  # exact to 1e-12 for ‖G‖ ≤ ½


def expm(G):
    """e^G."""
    D, steps = _series_of_halved(G)
    for _ in range(steps):
        D = 2 * D + product(D, D)
    return np.eye(G.shape[-1], dtype=G.real.dtype) + D


def as_a_block(G, E):
    """The upper right block of e^[[G, E], [0, G]]."""
    n, (G, E) = G.shape[-1], np.broadcast_arrays(G, E)
    above = np.concatenate([G, E], axis=-1)
    below = np.concatenate([np.zeros_like(G), G], axis=-1)
    return expm(np.concatenate([above, below], axis=-2))[..., :n, n:]


def by_squarings(G, E):
    """The derivative of each term of the series and of each squaring."""
    steps = _steps(G)
    G, E = _halved(G, steps), _halved(E, steps)
    D, slope = G / TERMS, E / TERMS
    for k in range(TERMS - 1, 0, -1):
        slope = (E + product(E, D) + product(G, slope)) / k
        D = (G + product(G, D)) / k
    return _squared(D, slope, steps)


def by_quadrature(G, E):
    """∫₀¹ e^{(1−t) G} E e^{t G} dt by Gauss's rule for G/2^s, then the derivative of squarings."""
    steps = _steps(G)
    G, E = _halved(G, steps), _halved(E, steps)
    slope = np.zeros_like(product(G, E))
    for t, weight in zip((1 + NODES) / 2, WEIGHTS / 2, strict=True):
        left, right = (expm(G * np.float32(s)) for s in (1 - t, t))
        slope = slope + np.float32(weight) * product(product(left, E), right)
    return _squared(_series(G), slope, steps)


def _squared(D, slope, steps):
    """After each squaring, D is 2D + D² and its derivative 2L + L D + D L."""
    for _ in range(steps):
        slope = 2 * slope + product(slope, D) + product(D, slope)
        D = 2 * D + product(D, D)
    return slope


def _series_of_halved(G):
    steps = _steps(G)
    return _series(_halved(G, steps)), steps


def _series(G):
    """e^G − I by Horner's rule."""
    D = G / TERMS
    for k in range(TERMS - 1, 0, -1):
        D = (G + product(G, D)) / k
    return D


def _halved(G, steps):
    """G times 2^−steps."""
    return G * np.float32(0.5**steps)


def _steps(G):
    """The smallest number with ‖G‖₁ ≤ 2^(s−1) for the whole batch; 0 where it is not finite."""
    norm = float(np.abs(G).sum(-2).max(initial=0))
    return max(0, ceil(log2(2 * norm))) if 0 < norm < np.inf else 0


# Exponentials: L(G, E) is the derivative of e^G in the direction E


def held(L):
    """Gradients of zero-order hold: dG = L(Gᴴ, [[dĀ, dB̄], [0, 0]]), G = dt [[A, B], [0, 0]]."""

    def vjp(dA_bar, dB_bar, A, B, dt):
        n = A.shape[-1]
        dG = L(adjoint(hold.zoh_exponent(A, B, dt)), above(dA_bar, dB_bar))[..., :n, :]
        return through_steps(dG[..., :n], dG[..., n:], A, B, dt)

    return vjp


def held_linearly(L):
    """As before with G of the first-order hold and [[dĀ, dB̄₁, dB̄₀ − dB̄₁], …]."""

    def vjp(dA_bar, dB0_bar, dB1_bar, A, B, dt):
        n, m = B.shape[-2:]
        cotangent = above(dA_bar, dB1_bar, dB0_bar - dB1_bar)
        dG = L(adjoint(hold.foh_exponent(A, B, dt)), cotangent)[..., :n, :]
        return through_steps(dG[..., :n], dG[..., n : n + m], A, B, dt)

    return vjp


def of_impulses(L):
    """d(dt A) = L(dt Aᴴ, dĀ);  dB = dB̄."""

    def vjp(dA_bar, dB_bar, A, B, dt):
        dF = L(adjoint(scaled(A, dt)), dA_bar)
        return scaled(dF, dt), dB_bar, (A.conj() * dF).sum((-1, -2))

    return vjp


def of_euler_inputs(L):
    """d(dt A) = L(dt Aᴴ, dĀ);  d(dt B) = dB̄."""

    def vjp(dA_bar, dB_bar, A, B, dt):
        return through_steps(L(adjoint(scaled(A, dt)), dA_bar), dB_bar, A, B, dt)

    return vjp


def _small(vjp):
    """The same program for up to 64 states."""
    return lambda *arrays: None if arrays[-3].shape[-1] > LARGEST else vjp(*arrays)


# Rational maps: S = M⁻ᴴ dĀ, T = M⁻ᴴ dB̄ with M = I − α dt A


def by_inverse(M, N):
    """M⁻¹ N by the inverse."""
    return product(eliminated(M, identity(M)), N)


def from_the_end(M, N):
    """Elimination in the reverse order of the states."""
    return eliminated(M[..., ::-1, ::-1], N[..., ::-1, :])[..., ::-1, :]


def solved(solve, alpha=None):
    """Ā = M⁻¹ (I + (1 − α) dt A),  B̄ = M⁻¹ dt B;  α is fixed, or an argument."""

    def program(A, B, dt, **chosen):
        share = A.real.dtype.type(chosen.get("alpha", alpha))
        M, N, H = rational.gbt_systems(A, B, dt, alpha=share)
        return solve(M, N), solve(M, H)

    return program


def mapped(solve, alpha=None):
    """d(dt A) = S ((1 − α)I + αĀ)ᴴ + α T B̄ᴴ,  d(dt B) = T; α is fixed, or an argument."""

    def vjp(dA_bar, dB_bar, A, B, dt, **chosen):
        share = A.real.dtype.type(chosen.get("alpha", alpha))
        M, N, H = rational.gbt_systems(A, B, dt, alpha=share)
        A_bar, B_bar = solve(M, N), solve(M, H)
        S, T = (solve(adjoint(M), d) for d in (dA_bar, dB_bar))
        dF = product(S, adjoint((1 - share) * identity(A) + share * A_bar))
        return through_steps(dF + share * product(T, adjoint(B_bar)), T, A, B, dt)

    return vjp


_DERIVATIVES = {
    "as_a_block": as_a_block,
    "by_squarings": by_squarings,
    "by_quadrature": by_quadrature,
}
_SOLVES = {"eliminated": eliminated, "by_inverse": by_inverse, "from_the_end": from_the_end}
_EXPONENTIALS = {
    hold.DISCRETIZE_ZOH: held,
    hold.DISCRETIZE_FOH: held_linearly,
    hold.DISCRETIZE_IMPULSE: of_impulses,
    hold.DISCRETIZE_MAMBA: of_euler_inputs,
}
_MAPS = {
    rational.DISCRETIZE_GBT: None,
    rational.DISCRETIZE_BILINEAR: 0.5,
    rational.DISCRETIZE_BACKWARD: 1.0,
}
OUTPUTS = {
    op.name: {name: solved(solve, alpha) for name, solve in _SOLVES.items()}
    for op, alpha in _MAPS.items()
}
GRADIENTS = {
    **{
        op.name: {name: _small(through(L)) for name, L in _DERIVATIVES.items()}
        for op, through in _EXPONENTIALS.items()
    },
    **{
        op.name: {name: mapped(solve, alpha) for name, solve in _SOLVES.items()}
        for op, alpha in _MAPS.items()
    },
}
