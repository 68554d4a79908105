"""Hankel singular values of dense systems, by square roots of the gramians [laub1987].

    P = L Lᴴ,   Q = M Mᴴ,   σ = the singular values of Mᴴ L = √ of the eigenvalues of P Q

They are the singular values of the Hankel operator, which maps past inputs to future outputs. The
number of nonzero values is the number of states of the smallest system with that response. The
gramians have errors of u times their norms, so σ_i has an error of about u ‖P‖ ‖Q‖/σ_i; values
below √(u ‖P‖ ‖Q‖) have no correct digits. For diagonal A, `hankel_singular_values_diagonal`
computes all of them accurately.
"""

import numpy as np

from refssm._declaration.contract import GRAMIANS as BY_GRAMIANS
from refssm._declaration.operator import COMPILED_TYPES, Operator
from refssm._numerics.balance import balanced
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.lyapunov import lyapunov
from refssm.domains import projections, ringing_matrices
from refssm.hankel.gramians import adjoint, applied, hermitian, outer, stable_system


def hankel_singular_values(A, B, C):
    """σ_i = √λ_i(P Q), descending; A P + P Aᴴ + B Bᴴ = 0 and Aᴴ Q + Q A + Cᴴ C = 0.

    Signature ``(n,n),(n),(n)->(n)``: `A`, `B` and `C` of a continuous system, all Re λ(A) < 0;
    leading axes broadcast. Any of float32, float64 and their complex types; the result is real.
    Units: those of B C / `A`. For a discrete system, pass the continuous system of its bilinear
    map: the values are the same. Errors are absolute: see the module. An unstable `A` has no such
    values; the result is then meaningless. NaN in any argument reaches all of them. Raises
    ValueError if sizes disagree, TypeError for other types. Source: [laub1987].

    >>> import refssm
    >>> refssm.hankel_singular_values([[-0.5]], [2.0], [3.0]).tolist()
    [6.0]
    """
    return balanced(*_gramians(A, B, C))[0]


def hankel_singular_values_vjp(dsigma, A, B, C):
    """dσ_i = ½ s_iᴴ dP s_i + ½ t_iᴴ dQ t_i,  P s_i = σ_i t_i,  Q t_i = σ_i s_i,  s_iᴴ t_i = 1.

    Aᴴ W + W A + ½ Σ dσ_i s_i s_iᴴ = 0,  A V + V Aᴴ + ½ Σ dσ_i t_i t_iᴴ = 0;
    dA = 2 (W P + Q V),  dB = 2 W B,  dC = 2 C V. A multiple value, or 0, has no derivative.

    Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`.
    """
    P, Q = _gramians(A, B, C)
    _, s, t = balanced(P, Q)
    half = 0.5 * dsigma[..., None, :]
    W, V = lyapunov(adjoint(A), (half * s) @ adjoint(s)), lyapunov(A, (half * t) @ adjoint(t))
    row = C.conj()
    gradients = (2 * (W @ P + Q @ V), 2 * applied(W, B), (2 * applied(V, row)).conj())
    return unbroadcast_each(gradients, (A, B, C))


def _gramians(A, B, C):
    """P and Q, exactly Hermitian."""
    row = C.conj()
    P, Q = lyapunov(A, outer(B, B)), lyapunov(adjoint(A), outer(row, row))
    return hermitian(P), hermitian(Q)


HANKEL_SINGULAR_VALUES = Operator(
    reference=hankel_singular_values,
    signature="(n,n),(n),(n)->(n)",
    inputs={"A": ringing_matrices, "B": projections, "C": projections},
    outputs=("sigma",),
    batch="d, d, d",
    contract=BY_GRAMIANS,
    citation="laub1987",
    lacks=frozenset({"jit", "gpu", "enclosure"}),  # LAPACK does this; CuPy cannot
    tags=("hsvd", "balanced truncation singular values"),
)
hankel_singular_values = HANKEL_SINGULAR_VALUES.checked(hankel_singular_values, COMPILED_TYPES)
hankel_singular_values_vjp = HANKEL_SINGULAR_VALUES.checked_vjp(
    hankel_singular_values_vjp, COMPILED_TYPES
)


def hankel_norm(A, B, C):
    """‖Γ‖ = σ_1: the largest ‖y‖₂/‖u‖₂, for the output y after the input u ends.

    Types and errors are those of `hankel_singular_values`; the leading axes are those of the
    result. It is 0 for a system without states. ‖Γ‖ ≤ ‖G‖∞ ≤ 2 Σ σ_i, without D [glover1984].
    Raises ValueError if an eigenvalue is not left of the imaginary axis.
    """
    sigma = HANKEL_SINGULAR_VALUES.reference(*stable_system("hankel_norm", A, B, C))
    return sigma[..., 0] if sigma.shape[-1] else np.zeros(sigma.shape[:-1], sigma.dtype)
