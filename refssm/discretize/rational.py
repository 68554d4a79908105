"""The generalized bilinear map of a matrix: Euler's rule, the trapezoidal one, backward Euler.

    x_k − x_{k−1} = dt A ((1 − α) x_{k−1} + α x_k) + dt B u_k

solved for x_k: Ā = (I − α dt A)⁻¹ (I + (1 − α) dt A), B̄ = (I − α dt A)⁻¹ dt B [zhang2009gbt]. At
each eigenvalue of dt A, e^z becomes (1 + (1 − α)z) / (1 − αz).
"""

from functools import partial

import numpy as np

from refssm._declaration.contract import SOLVE
from refssm._declaration.operator import COMPILED_TYPES, Operator
from refssm._numerics.lyapunov import adjoint
from refssm.discretize.blocks import for_every, identity, scaled, solve, through_steps
from refssm.domains import input_matrices, solved_matrices, state_matrices, steps, weights

# what all rules have; Euler's solves nothing, so it has another contract and any A
_rule = partial(
    Operator,
    signature="(n,n),(n,m),()->(n,n),(n,m)",
    inputs={"A": solved_matrices, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    lacks=frozenset({"jit"}),  # LAPACK does this already
)


def discretize_gbt(A, B, dt, *, alpha):
    """Ā = (I − α dt A)⁻¹ (I + (1 − α) dt A),  B̄ = (I − α dt A)⁻¹ dt B.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)`` and the keyword `alpha`, a number from 0 to 1: 0 is
    `discretize_euler`, ½ `discretize_bilinear`, 1 `discretize_backward`. For α ≥ ½ the map sends Re
    λ(A) < 0 into the unit disc for every dt. Types, errors and NaN are those of
    `discretize_bilinear`; singular if 1/(α dt) is an eigenvalue of A. Source: [zhang2009gbt].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_gbt([[-2.0]], [[1.0]], 1.0, alpha=0.25)
    >>> A_bar.round(4).tolist(), B_bar.round(4).tolist()
    ([[-0.3333]], [[0.6667]])
    """
    M, N, H = gbt_systems(A, B, dt, alpha=alpha)
    return for_every(*(solve("discretize_gbt", f"{alpha:g}·", M, side, dt) for side in (N, H)))


def discretize_gbt_vjp(dA_bar, dB_bar, A, B, dt, *, alpha):
    """M = I − α dt A, S = M⁻ᴴ dĀ, T = M⁻ᴴ dB̄;  d(dt A) = S ((1 − α)I + αĀ)ᴴ + α T B̄ᴴ, d(dt B) = T.

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    return _gradients("discretize_gbt", f"{alpha:g}·", dA_bar, dB_bar, A, B, dt, alpha)


def gbt_systems(A, B, dt, *, alpha):
    """M = I − α dt A, M Ā = I + (1 − α) dt A, and M B̄ = dt B."""
    F, I = scaled(A, dt), identity(A)
    return I - alpha * F, I + (1 - alpha) * F, scaled(B, dt)


def _gradients(name, share, dA_bar, dB_bar, A, B, dt, alpha):
    """The gradients of the map for weight `alpha`."""
    M, N, H = gbt_systems(A, B, dt, alpha=alpha)
    A_bar, B_bar = solve(name, share, M, N, dt), solve(name, share, M, H, dt)
    S, T = (solve(name, share, adjoint(M), d, dt) for d in (dA_bar, dB_bar))
    dF = S @ adjoint((1 - alpha) * identity(A) + alpha * A_bar) + alpha * (T @ adjoint(B_bar))
    return through_steps(dF, T, A, B, dt)


DISCRETIZE_GBT = _rule(
    reference=discretize_gbt,
    parameters={"alpha": weights},
    definition=gbt_systems,
    contract=SOLVE,
    citation="zhang2009gbt",
    tags=("generalized bilinear transform", "cont2discrete gbt"),
)
discretize_gbt = DISCRETIZE_GBT.checked(discretize_gbt, COMPILED_TYPES)
discretize_gbt_vjp = DISCRETIZE_GBT.checked_vjp(discretize_gbt_vjp, COMPILED_TYPES)


def discretize_euler(A, B, dt):
    """Ā = I + dt A,  B̄ = dt B.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: the first-order approximation of `discretize_zoh`.
    Any of float32, float64, longdouble and their complex types. Stable if |1 + dt λ(A)| ≤ 1.
    Errors are measured entry by entry.

    Raises ValueError if sizes disagree, TypeError for other types. NaN stays in its entry; NaN in
    `dt` reaches every entry. Source: [gu2020hippo, App. B.3].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_euler([[-2.0]], [[1.0]], 0.25)
    >>> A_bar.tolist(), B_bar.tolist()
    ([[0.5]], [[0.25]])
    """
    return for_every(identity(A) + scaled(A, dt), scaled(B, dt))


def discretize_euler_vjp(dA_bar, dB_bar, A, B, dt):
    """dA = dt dĀ,  dB = dt dB̄,  ddt = Re (Σ A* dĀ + Σ B* dB̄).

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    return through_steps(dA_bar, dB_bar, A, B, dt)


DISCRETIZE_EULER = _rule(
    reference=discretize_euler,
    inputs={"A": state_matrices, "B": input_matrices, "dt": steps},
    citation="gu2020hippo, App. B.3",
    tags=("forward Euler", "cont2discrete euler"),
)
discretize_euler = DISCRETIZE_EULER.checked(discretize_euler)
discretize_euler_vjp = DISCRETIZE_EULER.checked_vjp(discretize_euler_vjp)


def discretize_bilinear(A, B, dt):
    """Ā = (I − ½dt A)⁻¹ (I + ½dt A),  B̄ = (I − ½dt A)⁻¹ dt B.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: as `discretize_zoh`. Any of float32, float64 and
    their complex types. The map sends Re λ(A) < 0 into the unit disc. Errors are measured as those
    of a solve: by the residual.

    Raises numpy.linalg.LinAlgError if 2/dt is an eigenvalue of A; otherwise the errors of
    `discretize_zoh`. NaN or infinity in `A` or `dt` makes every entry NaN, NaN in a column of `B`
    that column of B̄. Source: [gu2022s4, §2.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_bilinear([[-2.0]], [[1.0]], 1.0)
    >>> A_bar.tolist(), B_bar.tolist()
    ([[0.0]], [[0.5]])
    """
    M, N, H = bilinear_systems(A, B, dt)
    return for_every(*(solve("discretize_bilinear", "½", M, side, dt) for side in (N, H)))


def discretize_bilinear_vjp(dA_bar, dB_bar, A, B, dt):
    """S = M⁻ᴴ dĀ, T = M⁻ᴴ dB̄, M = I − ½dt A;  d(dt A) = ½ (S (I + Ā)ᴴ + T B̄ᴴ),  d(dt B) = T.

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    return _gradients("discretize_bilinear", "½", dA_bar, dB_bar, A, B, dt, 0.5)


def bilinear_systems(A, B, dt):
    """M = I − ½dt A, M Ā = I + ½dt A, and M B̄ = dt B."""
    return gbt_systems(A, B, dt, alpha=0.5)


DISCRETIZE_BILINEAR = _rule(
    reference=discretize_bilinear,
    definition=bilinear_systems,
    contract=SOLVE,
    citation="gu2022s4, §2.2",
    tags=("Tustin", "trapezoidal rule", "cont2discrete bilinear"),
)
discretize_bilinear = DISCRETIZE_BILINEAR.checked(discretize_bilinear, COMPILED_TYPES)
discretize_bilinear_vjp = DISCRETIZE_BILINEAR.checked_vjp(discretize_bilinear_vjp, COMPILED_TYPES)


def discretize_backward(A, B, dt):
    """Ā = (I − dt A)⁻¹,  B̄ = (I − dt A)⁻¹ dt B.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: as `discretize_bilinear`, but of first order, and Ā →
    0 for dt λ(A) → −∞, like 1/(1 − z). Types, errors and NaN are those of `discretize_bilinear`;
    singular if 1/dt is an eigenvalue of A. Source: [gu2020hippo, App. B.3].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_backward([[-3.0]], [[1.0]], 1.0)
    >>> A_bar.tolist(), B_bar.tolist()
    ([[0.25]], [[0.25]])
    """
    M, N, H = backward_systems(A, B, dt)
    return for_every(*(solve("discretize_backward", "", M, side, dt) for side in (N, H)))


def discretize_backward_vjp(dA_bar, dB_bar, A, B, dt):
    """S = M⁻ᴴ dĀ, T = M⁻ᴴ dB̄, M = I − dt A;  d(dt A) = S Āᴴ + T B̄ᴴ,  d(dt B) = T.

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    return _gradients("discretize_backward", "", dA_bar, dB_bar, A, B, dt, 1)


def backward_systems(A, B, dt):
    """M = I − dt A, M Ā = I, and M B̄ = dt B."""
    F, I = scaled(A, dt), identity(A)
    return I - F, I + np.zeros_like(F), scaled(B, dt)


DISCRETIZE_BACKWARD = _rule(
    reference=discretize_backward,
    definition=backward_systems,
    contract=SOLVE,
    citation="gu2020hippo, App. B.3",
    tags=("backward Euler", "cont2discrete backward_diff"),
)
discretize_backward = DISCRETIZE_BACKWARD.checked(discretize_backward, COMPILED_TYPES)
discretize_backward_vjp = DISCRETIZE_BACKWARD.checked_vjp(discretize_backward_vjp, COMPILED_TYPES)
