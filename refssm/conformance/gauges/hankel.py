"""Error rules of Takagi factorizations, balanced gramians, C M⁻¹ B, and two matrix equations.

Bounds that follow the rotations of a Jacobi method one by one are too large to use. Such a method
has a small backward error instead: its result is exact for a matrix whose entry k, l differs by
about log n u d_k d_l, where d_k d_l are the sizes to which its rows and columns are graded
[drmac2008].

A backward stable solver of a linear system, or of Lyapunov's or Stein's equation, leaves a small
residual. The norm of the inverse operator, times that residual, bounds the error of the result.
Importing this module registers the rules.
"""

import numpy as np

from refssm._numerics.balance import balanced
from refssm._numerics.elimination import eliminated, response, solved
from refssm._numerics.lyapunov import lyapunov, stein
from refssm._numerics.takagi import takagi
from refssm.conformance.gauges.linalg import (
    frobenius,
    length_of,
    norms_of_errors,
    product_errors,
    quotient,
    same_everywhere,
    spectral_norm,
)
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, flushed, lifted, met, spread


@rule(FUNCTIONS, takagi)
def _takagi(G):
    """|δσ_i| ≤ (|X|ᵀ E |X|)_ii; for the vectors, such terms divided by the gaps between σ."""
    G = lifted(G)
    met(np.abs(G.value))
    sigma, s, X = takagi(G.value)
    backward = product_errors(G.shape[-1]) * graded(G.value)
    gauges = [_first_order(sigma, X, G.errors[..., k] + backward) for k in (0, 1)]
    values = zip((sigma, s, X), zip(*gauges, strict=True), strict=True)
    return tuple(Tracked(y, np.stack(errors, axis=-1)) for y, errors in values)


def graded(G):
    """d_k d_l with |G_kl| ≤ d_k d_l: r_k r_l / r_max, where r_k is the largest |G_kj| of row k."""
    rows = np.abs(G).max(-1, initial=0)
    most = rows.max(-1, keepdims=True, initial=0)
    return np.abs(quotient(rows, most)[..., :, None] * rows[..., None, :]).astype(float)


def _first_order(sigma, X, E):
    """Bounds of σ, s and X if the entries of G move by at most E and subnormals become 0."""
    size = np.abs(X)
    moved = size.swapaxes(-1, -2) @ E @ size + flushed()  # |x_kᵀ δG x_i|
    along = np.diagonal(moved, axis1=-2, axis2=-1)
    turned = quotient(along, sigma)
    one, other = sigma[..., :, None], sigma[..., None, :]
    gaps = np.abs(one - other)
    mixed = np.where(np.eye(sigma.shape[-1]) > 0, turned[..., None], moved / gaps)
    return along, turned, size @ mixed


@rule(FUNCTIONS, balanced)
def _balanced(P, Q):
    """|δσ_i²| ≤ ‖P‖₂ ‖δQ‖₂ + ‖δP‖₂ ‖Q‖₂ =: 2 e², so |δσ_i| ≤ e²/max(σ_i, √u e).

    Errors of S and T are such terms divided by the gaps between σ. The rule of Lyapunov's equation
    gives one bound of ‖δP‖₂ for all entries. An eigensolver and a product add n u ‖P‖₂ ‖Q‖₂. Where
    σ ≤ √u e no digit of σ is right: the result depends on whether a program takes square roots of
    the gramians, and the vectors have no bound.
    """
    P, Q = lifted(P), lifted(Q)
    values = sigma, S, T = balanced(P.value, Q.value)
    met(sigma)
    one = spread(Tracked(np.zeros(()), np.ones(2)))[0]  # u
    p, q = (spectral_norm(X.value)[..., None] for X in (P, Q))
    of_p, of_q = (X.errors.max((-3, -2), initial=0) for X in (P, Q))
    squares = (of_p * q + p * of_q) / 2 + P.shape[-1] * p * q
    gauges = []
    for square in (squares[..., :1], squares[..., 1:]):
        known = np.maximum(sigma, np.sqrt(one * square))
        apart = np.abs(sigma[..., :, None] - sigma[..., None, :]) * known[..., None, :]
        turned = (square / known**2)[..., None]
        mixed = np.where(np.eye(P.shape[-1]) > 0, turned, square[..., None] / apart)
        lost = one * square >= sigma**2 / 2  # such a σ has no correct digit, nor have its vectors
        mixed = np.where(lost[..., None, :], np.inf, mixed)
        gauges.append((square / known, np.abs(S) @ mixed, np.abs(T) @ mixed))
    told = zip(values, zip(*gauges, strict=True), strict=True)
    return tuple(Tracked(y, np.stack(np.broadcast_arrays(*e), axis=-1)) for y, e in told)


@rule(FUNCTIONS, response)
def _response(M, B, C):
    """‖C M⁻¹‖ (n (‖M‖_F ‖x‖ + ‖B‖) + ‖δM‖_F ‖x‖ + ‖δB‖) + ‖δC‖ ‖x‖, with δ the errors.

    (M + E) x = B with ‖E‖ ≤ n u ‖M‖_F changes C x by C M⁻¹ E x, whether the elimination starts
    with B or with C. The roundings of the sum C x are smaller: ‖C‖ ≤ ‖C M⁻¹‖ ‖M‖.
    """
    M, B, C = lifted(M), lifted(B), lifted(C)
    x = eliminated(M.value, B.value[..., None])[..., 0]
    g = eliminated(M.value.swapaxes(-1, -2), C.value[..., None])[..., 0]
    value = np.einsum("...n,...n->...", C.value, x)
    met(np.abs(value))
    length, row = length_of(x), length_of(g)
    solving = M.shape[-1] * (frobenius(M.value) * length + length_of(B.value))
    errors = [
        row * (solving + frobenius(M.errors[..., k]) * length + length_of(B.errors[..., k]))
        + length_of(C.errors[..., k]) * length
        for k in (0, 1)
    ]
    return Tracked(value, np.stack(np.broadcast_arrays(*errors), axis=-1))


@rule(FUNCTIONS, solved)
def _solved(M, N):
    """The rule of numpy.linalg.solve; a singular M has an infinite bound and raises nothing."""
    M, N = lifted(M), lifted(N)
    X = eliminated(M.value, N.value)
    inverse = spectral_norm(eliminated(M.value, np.eye(M.shape[-1])))
    solving = M.shape[-1] * (frobenius(M.value) * frobenius(X) + frobenius(N.value))
    errors = [
        inverse * (solving + m * frobenius(X) + n)
        for m, n in zip(norms_of_errors(M), norms_of_errors(N), strict=True)
    ]
    return same_everywhere(X, *errors)


def _of_equation(solve, terms):
    """The rule of `solve`, whose residual is n (terms(‖A‖) ‖X‖ + ‖F‖) in Frobenius norms.

    A residual E changes X by the solution for E. If A is stable this map is positive, so its norm
    is that of the solution for the identity (Russo and Dye): ‖X(E)‖₂ ≤ ‖X(I)‖₂ ‖E‖₂. `terms`
    returns the factor of ‖X‖ and the derivative of that factor by ‖A‖.
    """

    def apply(A, F):
        A, F = lifted(A), lifted(F)
        X = solve(A.value, F.value)
        inverse = spectral_norm(solve(A.value, np.eye(A.shape[-1])))
        size, slope = terms(frobenius(A.value))
        solving = A.shape[-1] * (size * frobenius(X) + frobenius(F.value))
        errors = [
            inverse * (solving + slope * a * frobenius(X) + f)
            for a, f in zip(norms_of_errors(A), norms_of_errors(F), strict=True)
        ]
        return same_everywhere(X, *errors)

    return apply


FUNCTIONS[lyapunov] = _of_equation(lyapunov, lambda a: (2 * a, 2))
FUNCTIONS[stein] = _of_equation(stein, lambda a: (1 + a * a, 2 * a))
