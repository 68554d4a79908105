"""Error rules of a response C M⁻¹ B and of Lyapunov's and Stein's equation, in norm.

A backward stable solution is that of an equation off by a residual; what the residual is worth in
the result is the norm of the inverse, between B and C or of matrices. Importing this module
registers the rules.
"""

import numpy as np

from refssm._elimination import eliminated, response, solved
from refssm._lyapunov import lyapunov, stein
from refssm.conformance.gauges.linalg import frobenius, spectral_norm
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met


@rule(FUNCTIONS, response)
def _response(M, B, C):
    """‖C M⁻¹‖ (n (‖M‖_F ‖x‖ + ‖B‖) + ‖errors of M‖_F ‖x‖ + ‖those of B‖) + ‖those of C‖ ‖x‖.

    (M + E) x = B with ‖E‖ ≤ n u ‖M‖_F moves C x by C M⁻¹ E x, whether the elimination begins at B
    or at C. The sum C x itself rounds by less: ‖C‖ ≤ ‖C M⁻¹‖ ‖M‖.
    """
    M, B, C = lifted(M), lifted(B), lifted(C)
    x = eliminated(M.value, B.value[..., None])[..., 0]
    g = eliminated(M.value.swapaxes(-1, -2), C.value[..., None])[..., 0]
    value = np.einsum("...n,...n->...", C.value, x)
    met(np.abs(value))
    length, row = _length(x), _length(g)
    solving = M.shape[-1] * (frobenius(M.value) * length + _length(B.value))
    errors = [
        row * (solving + frobenius(M.errors[..., k]) * length + _length(B.errors[..., k]))
        + _length(C.errors[..., k]) * length
        for k in (0, 1)
    ]
    return Tracked(value, np.stack(np.broadcast_arrays(*errors), axis=-1))


@rule(FUNCTIONS, solved)
def _solved(M, N):
    """As numpy.linalg.solve, but that a singular M has no bound and raises nothing."""
    M, N = lifted(M), lifted(N)
    X = eliminated(M.value, N.value)
    inverse = spectral_norm(eliminated(M.value, np.eye(M.shape[-1])))
    solving = M.shape[-1] * (frobenius(M.value) * frobenius(X) + frobenius(N.value))
    errors = [
        inverse * (solving + m * frobenius(X) + n)
        for m, n in zip(_norms(M), _norms(N), strict=True)
    ]
    return _everywhere(X, errors)


def _everywhere(X, errors):
    """X with one bound of each gauge for all entries of a matrix."""
    met(np.abs(X))
    bounds = np.stack(np.broadcast_arrays(*errors), axis=-1)[..., None, None, :]
    return Tracked(X, np.broadcast_to(bounds, (*X.shape, 2)).copy())


def _length(x):
    """‖x‖₂ of the last axis."""
    return np.sqrt((np.abs(x) ** 2).sum(-1))


def _of_equation(solve, terms):
    """The rule of `solve`, whose residual is n (terms(‖A‖) ‖X‖ + ‖F‖) in Frobenius norms.

    A residual E moves X by the solution for E. That map is positive, so its norm is that of the
    solution for the identity, where A is stable (Russo and Dye): ‖X(E)‖₂ ≤ ‖X(I)‖₂ ‖E‖₂.
    `terms` gives what multiplies ‖X‖, and its derivative by ‖A‖.
    """

    def apply(A, F):
        A, F = lifted(A), lifted(F)
        X = solve(A.value, F.value)
        inverse = spectral_norm(solve(A.value, np.eye(A.shape[-1])))
        size, slope = terms(frobenius(A.value))
        solving = A.shape[-1] * (size * frobenius(X) + frobenius(F.value))
        errors = [
            inverse * (solving + slope * a * frobenius(X) + f)
            for a, f in zip(_norms(A), _norms(F), strict=True)
        ]
        return _everywhere(X, errors)

    return apply


def _norms(x: Tracked):
    """‖errors‖_F of both gauges."""
    return frobenius(x.errors[..., 0]), frobenius(x.errors[..., 1])


FUNCTIONS[lyapunov] = _of_equation(lyapunov, lambda a: (2 * a, 2))
FUNCTIONS[stein] = _of_equation(stein, lambda a: (1 + a * a, 2 * a))
