"""Gramians: how strongly inputs drive states, and states drive the output [zhou1996].

    continuous   P = ∫₀^∞ e^{tA} B Bᴴ e^{tAᴴ} dt,   Q = ∫₀^∞ e^{tAᴴ} Cᴴ C e^{tA} dt
                 A P + P Aᴴ + B Bᴴ = 0,             Aᴴ Q + Q A + Cᴴ C = 0
    discrete     P = Σ_k A^k B Bᴴ A^kᴴ,             Q = Σ_k A^kᴴ Cᴴ C A^k
                 P = A P Aᴴ + B Bᴴ,                 Q = Aᴴ Q A + Cᴴ C

xᴴ P⁻¹ x is the least energy of an input that leads to the state x; xᴴ Q x is the energy of the
output that follows from x. The square roots of the eigenvalues of P Q are the Hankel singular
values.

Hankel singular values of dense systems, by square roots of the gramians [laub1987].

    P = L Lᴴ,   Q = M Mᴴ,   σ = the singular values of Mᴴ L = √ of the eigenvalues of P Q

They are the singular values of the Hankel operator, which maps past inputs to future outputs. The
number of nonzero values is the number of states of the smallest system with that response. The
gramians have errors of u times their norms, so σ_i has an error of about u ‖P‖ ‖Q‖/σ_i; values
below √(u ‖P‖ ‖Q‖) have no correct digits. For diagonal A, `hankel_singular_values_diagonal`
computes all of them accurately.
"""

import numpy as np

from refssm._declaration.contract import GRAMIANS as BY_GRAMIANS
from refssm._declaration.contract import SOLVE, Equation
from refssm._declaration.operator import COMPILED_TYPES, Operator
from refssm._numerics.balance import balanced
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm._numerics.lyapunov import adjoint, lyapunov, stein
from refssm.domains import contraction_matrices, damped_matrices, projections, ringing_matrices


def gramians(A, B, C):
    """P and Q with A P + P Aᴴ + B Bᴴ = 0 and Aᴴ Q + Q A + Cᴴ C = 0.

    Signature ``(n,n),(n),(n)->(n,n),(n,n)``: `A`, `B` and `C` of a continuous system, all Re λ(A) <
    0; leading axes broadcast. Any of float32, float64 and their complex types. Both are exactly
    Hermitian. Units: `P` those of B² and `Q` those of C², times that of 1/`A`. Errors are measured
    by the residual.

    An unstable `A` has no gramians: the result is then the solution of the equations, or NaN if
    there is none. NaN in `A` reaches both, NaN in `B` all of `P`, NaN in `C` all of `Q`. Raises
    ValueError if sizes disagree, TypeError for other types. Source: [zhou1996].

    >>> import refssm
    >>> P, Q = refssm.gramians([[-0.5]], [2.0], [3.0])
    >>> P.tolist(), Q.tolist()
    ([[4.0]], [[9.0]])
    """
    row = C.conj()
    P, Q = lyapunov(A, outer(B, B)), lyapunov(adjoint(A), outer(row, row))
    return _for_all(hermitian(P), hermitian(Q), A, B, C)


def gramians_vjp(dP, dQ, A, B, C):
    """Aᴴ W + W A + dP + dPᴴ = 0,  A V + V Aᴴ + dQ + dQᴴ = 0;
    dA = W P + Q V,  dB = W B,  dC = C Vᴴ.

    Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`.
    """
    row = C.conj()
    P, Q = lyapunov(A, outer(B, B)), lyapunov(adjoint(A), outer(row, row))
    W, V = lyapunov(adjoint(A), twice(dP, A, B)), lyapunov(A, twice(dQ, A, C))
    gradients = (W @ P + Q @ V, applied(W, B), applied(V, row).conj())
    return unbroadcast_each(gradients, (A, B, C))


def gramian_equations(A, B, C):
    """The equations that P and Q solve."""
    row = C.conj()
    return (
        Equation(((A, None), (None, adjoint(A))), -outer(B, B)),
        Equation(((adjoint(A), None), (None, A)), -outer(row, row)),
    )


def outer(x, y):
    """x yᴴ."""
    return x[..., :, None] * y[..., None, :].conj()


def hermitian(X):
    """(X + Xᴴ)/2; this does not increase the residual of a Hermitian equation."""
    return (X + adjoint(X)) / 2


def twice(dX, *arguments):
    """dX + dXᴴ, in the common type of dX and the arguments."""
    dX = dX.astype(np.result_type(dX, *arguments))
    return dX + adjoint(dX)


def applied(M, x):
    """M x."""
    return einsum("...ij,...j->...i", M, x)


def _for_all(P, Q, A, B, C):
    """P and Q, broadcast to all leading axes of the arguments."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    return tuple(X if X.shape[:-2] == batch else with_batch(X, 2, batch) for X in (P, Q))


GRAMIANS = Operator(
    reference=gramians,
    signature="(n,n),(n),(n)->(n,n),(n,n)",
    inputs={"A": damped_matrices, "B": projections, "C": projections},
    outputs=("P", "Q"),
    batch="d, d, d",
    definition=gramian_equations,
    contract=SOLVE,
    citation="zhou1996",
    lacks=frozenset({"jit", "gpu"}),  # LAPACK computes the Schur form already; CuPy has none
    tags=("solve_continuous_lyapunov", "control.gram", "controllability observability gramians"),
)
gramians = GRAMIANS.checked(gramians, COMPILED_TYPES)
gramians_vjp = GRAMIANS.checked_vjp(gramians_vjp, COMPILED_TYPES)


def gramians_discrete(A, B, C):
    """P = A P Aᴴ + B Bᴴ and Q = Aᴴ Q A + Cᴴ C.

    Signature ``(n,n),(n),(n)->(n,n),(n,n)``: `A`, `B` and `C` of a discrete system, all
    |λ(A)| < 1; leading axes broadcast. The Hankel matrix of C A^k B has the same P Q: O R has O =
    [C; C A; …], R = [B, A B, …], Q = OᴴO and P = R Rᴴ. Types, errors and NaN are those of
    `gramians`. Units: `P` those of B², `Q` those of C². Source: [zhou1996].

    >>> import refssm
    >>> P, Q = refssm.gramians_discrete([[0.5]], [3.0], [1.5])
    >>> P.tolist(), Q.tolist()
    ([[12.0]], [[3.0]])
    """
    row = C.conj()
    P, Q = stein(A, outer(B, B)), stein(adjoint(A), outer(row, row))
    return _for_all(hermitian(P), hermitian(Q), A, B, C)


def gramians_discrete_vjp(dP, dQ, A, B, C):
    """W = Aᴴ W A + dP + dPᴴ,  V = A V Aᴴ + dQ + dQᴴ;
    dA = W A P + Q A V,  dB = W B,  dC = C Vᴴ.

    Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`.
    """
    row = C.conj()
    P, Q = stein(A, outer(B, B)), stein(adjoint(A), outer(row, row))
    W, V = stein(adjoint(A), twice(dP, A, B)), stein(A, twice(dQ, A, C))
    gradients = (W @ A @ P + Q @ A @ V, applied(W, B), applied(V, row).conj())
    return unbroadcast_each(gradients, (A, B, C))


def discrete_gramian_equations(A, B, C):
    """The equations that P and Q solve."""
    row = C.conj()
    return (
        Equation(((None, None), (-A, adjoint(A))), outer(B, B)),
        Equation(((None, None), (-adjoint(A), A)), outer(row, row)),
    )


GRAMIANS_DISCRETE = Operator(
    reference=gramians_discrete,
    signature="(n,n),(n),(n)->(n,n),(n,n)",
    inputs={"A": contraction_matrices, "B": projections, "C": projections},
    outputs=("P", "Q"),
    batch="d, d, d",
    definition=discrete_gramian_equations,
    contract=SOLVE,
    citation="zhou1996",
    lacks=frozenset({"jit", "gpu"}),  # LAPACK computes the Schur form already; CuPy has none
    tags=("solve_discrete_lyapunov", "Stein equation"),
)
gramians_discrete = GRAMIANS_DISCRETE.checked(gramians_discrete, COMPILED_TYPES)
gramians_discrete_vjp = GRAMIANS_DISCRETE.checked_vjp(gramians_discrete_vjp, COMPILED_TYPES)


def stable_system(name, A, B, C):
    """A, B and C of a continuous system as arrays; ValueError unless all Re λ(A) < 0."""
    try:
        A, B, C = GRAMIANS.arrays((A, B, C), COMPILED_TYPES)
        GRAMIANS.sizes(A, B, C)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace(GRAMIANS.name, name, 1)) from None
    if not np.isfinite(A).all():
        raise ValueError(f"{name}: `A` must be finite")
    poles = np.linalg.eigvals(A) if A.size else np.zeros(0)
    if not (poles.real < 0).all():
        place = poles.ravel()[np.argmax(poles.real)]
        wanted = "must have all eigenvalues left of the imaginary axis"
        raise ValueError(f"{name}: `A` {wanted}, got {place:.6g}")
    return A, B, C


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
