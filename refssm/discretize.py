"""Discretization: a continuous system with its input held, or integrated by the trapezoidal rule.

    x'(t) = A x(t) + B u(t)   →   x_k = Ā x_{k−1} + B̄ u_k

Zero-order hold takes u constant over each step: Ā = e^{dt A}, B̄ = dt φ₁(dt A) B, where
φ₁(z) = (e^z − 1)/z [vanloan1978]. The bilinear map (Tustin) integrates x' by the trapezoidal rule:
Ā = (I − ½dt A)⁻¹ (I + ½dt A), B̄ = (I − ½dt A)⁻¹ dt B. First for a matrix, then for a diagonal A.
A leading axis on `dt` gives one system per time step.
"""

import numpy as np

from refssm._expm import expm, expm_derivative
from refssm._operator import COMPILED_TYPES, Contract, Operator
from refssm.broadcasting import unbroadcast
from refssm.domains import input_matrices, modes, state_matrices, steps


def discretize_zoh(A, B, dt):
    """Ā = e^{dt A},  B̄ = dt φ₁(dt A) B,  φ₁(z) = (e^z − 1)/z,  φ₁(0) = 1.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: `A` and `B` of the continuous system, `dt` the step,
    `n` states, `m` inputs; leading axes broadcast. Any of float32, float64, longdouble and their
    complex types; Ā has the kind of `A`, B̄ that of `A` and `B`. Units: `dt` in those of 1/A.
    A may be singular. Errors are measured as those of an exponential: against the norm of
    [[Ā, B̄], [0, I]].

    Raises ValueError where sizes disagree, TypeError for other types. NaN in `A` or `dt` reaches
    everything, NaN in a column of `B` that column. Source: [vanloan1978].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_zoh([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.5)
    >>> A_bar.tolist(), B_bar.tolist()
    ([[1.0, 0.5], [0.0, 1.0]], [[0.125], [0.5]])
    """
    F, h, n = _scaled(A, dt), dt[..., None, None], A.shape[-1]
    E = expm(_held(F, np.zeros_like(F) + np.eye(n, dtype=F.dtype)))  # [[Ā, φ₁], [0, I]]
    B_bar = h * (E[..., :n, n:] @ B)
    return _for_every(B_bar, E[..., :n, :n], 2), B_bar


def discretize_zoh_vjp(dA_bar, dB_bar, A, B, dt):
    """With G = dt [[A, B], [0, 0]] and e^G = [[Ā, B̄], [0, I]]: dG = L(Gᴴ, [[dĀ, dB̄], [0, 0]]).

    L(Gᴴ, ·) is the derivative of the exponential, its own adjoint but for the conjugate.
    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    n, h = A.shape[-1], dt[..., None, None]
    G = zoh_exponent(A, B, dt)
    dG = expm_derivative(_adjoint(G), _held(dA_bar, dB_bar))[..., :n, :]
    dF, dH = dG[..., :n], dG[..., n:]  # of dt A and dt B
    ddt = (A.conj() * dF).sum((-1, -2)) + (B.conj() * dH).sum((-1, -2))
    return unbroadcast(h * dF, A), unbroadcast(h * dH, B), unbroadcast(ddt, dt)


def zoh_exponent(A, B, dt):
    """dt [[A, B], [0, 0]]: x' = A x + B u, u' = 0; its exponential is [[Ā, B̄], [0, I]]."""
    return _held(_scaled(A, dt), _scaled(B, dt))


def _scaled(A, dt):
    """dt A."""
    return dt[..., None, None] * A


def _held(F, H):
    """[[F, H], [0, 0]], over the broadcast batch."""
    batch = np.broadcast_shapes(F.shape[:-2], H.shape[:-2])
    F = np.broadcast_to(F, (*batch, *F.shape[-2:]))
    H = np.broadcast_to(H, (*batch, *H.shape[-2:]))
    above = np.concatenate([F, H], axis=-1)
    size = above.shape[-1]
    below = np.zeros_like(above, shape=(*batch, size - F.shape[-2], size))
    return np.concatenate([above, below], axis=-2)


def _for_every(B_bar, A_bar, rank):
    """Ā along all leading axes of B̄, also those that only B has."""
    shape = (*B_bar.shape[:-2], *A_bar.shape[A_bar.ndim - rank :])
    return A_bar if A_bar.shape == shape else np.broadcast_to(A_bar, shape).copy()


def _adjoint(M):
    """Mᴴ."""
    return M.conj().swapaxes(-1, -2)


DISCRETIZE_ZOH = Operator(
    reference=discretize_zoh,
    signature="(n,n),(n,m),()->(n,n),(n,m)",
    inputs={"A": state_matrices, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    definition=zoh_exponent,
    contract=Contract.EXPM,
    citation="vanloan1978",
    lacks=frozenset({"jit", "gpu"}),  # matrix products: BLAS's work already
)
discretize_zoh = DISCRETIZE_ZOH.checked(discretize_zoh)
discretize_zoh_vjp = DISCRETIZE_ZOH.checked_vjp(discretize_zoh_vjp)


def discretize_bilinear(A, B, dt):
    """Ā = (I − ½dt A)⁻¹ (I + ½dt A),  B̄ = (I − ½dt A)⁻¹ dt B.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: as `discretize_zoh`. Any of float32, float64 and
    their complex types. Re λ(A) < 0 is mapped into the unit disc. Errors are measured as those of
    a solve: by the residual.

    Raises numpy.linalg.LinAlgError where 2/dt is an eigenvalue of A, other errors as
    `discretize_zoh`. NaN and infinity in `A` or `dt` make everything NaN, NaN in a column of `B`
    that column. Source: [gu2022s4, §2.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_bilinear([[-2.0]], [[1.0]], 1.0)
    >>> A_bar.tolist(), B_bar.tolist()
    ([[0.0]], [[0.5]])
    """
    M, N, H = bilinear_systems(A, B, dt)
    B_bar = _solve(M, H, dt)
    return _for_every(B_bar, _solve(M, N, dt), 2), B_bar


def discretize_bilinear_vjp(dA_bar, dB_bar, A, B, dt):
    """S = M⁻ᴴ dĀ, T = M⁻ᴴ dB̄, M = I − ½dt A;  d(½dt A) = S (I + Ā)ᴴ + T B̄ᴴ,  d(dt B) = T.

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    M, N, H = bilinear_systems(A, B, dt)
    A_bar, B_bar = _solve(M, N, dt), _solve(M, H, dt)
    S, T = _solve(_adjoint(M), dA_bar, dt), _solve(_adjoint(M), dB_bar, dt)
    I = np.eye(A.shape[-1], dtype=M.dtype)
    dF = (S @ _adjoint(I + A_bar) + T @ _adjoint(B_bar)) / 2  # of dt A
    h = dt[..., None, None]
    ddt = (A.conj() * dF).sum((-1, -2)) + (B.conj() * T).sum((-1, -2))
    return unbroadcast(h * dF, A), unbroadcast(h * T, B), unbroadcast(ddt, dt)


def bilinear_systems(A, B, dt):
    """M = I − ½dt A, and what M Ā and M B̄ are: I + ½dt A and dt B."""
    F, I = _scaled(A, dt) / 2, np.eye(A.shape[-1], dtype=np.finfo(A.dtype).dtype)
    return I - F, I + F, _scaled(B, dt)


def _solve(M, N, dt):
    """M⁻¹ N, all NaN where M has one; a singular matrix is named with its step."""
    # LAPACK may skip a NaN or call it a zero pivot, and NumPy then raises for the whole batch
    finite = np.isfinite(M).all((-2, -1))[..., None, None]
    M = np.where(finite, M, np.eye(M.shape[-1], dtype=np.finfo(M.dtype).dtype))
    try:
        return np.where(finite, np.linalg.solve(M, N), np.nan)
    except np.linalg.LinAlgError:
        told = f"I − ½dt·A is singular at dt = {_first_singular(M, dt):.6g}"
        raise np.linalg.LinAlgError(f"discretize_bilinear: {told}") from None


def _first_singular(M, dt):
    """The step of the first matrix of a batch that has no inverse."""
    steps = np.broadcast_to(dt, M.shape[:-2])
    for i in np.ndindex(*M.shape[:-2]):
        try:
            np.linalg.inv(M[i])
        except np.linalg.LinAlgError:
            return steps[i]
    raise AssertionError("each matrix has an inverse alone")


DISCRETIZE_BILINEAR = Operator(
    reference=discretize_bilinear,
    signature="(n,n),(n,m),()->(n,n),(n,m)",
    inputs={"A": state_matrices, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    definition=bilinear_systems,
    contract=Contract.SOLVE,
    citation="gu2022s4, §2.2",
    lacks=frozenset({"jit", "gpu"}),  # LAPACK's work already
)
discretize_bilinear = DISCRETIZE_BILINEAR.checked(discretize_bilinear, COMPILED_TYPES)
discretize_bilinear_vjp = DISCRETIZE_BILINEAR.checked_vjp(discretize_bilinear_vjp, COMPILED_TYPES)


def discretize_diagonal_zoh(w, B, dt):
    """Ā_n = e^{dt_n w_n},  B̄_nm = dt_n φ₁(dt_n w_n) B_nm,  φ₁(z) = (e^z − 1)/z,  φ₁(0) = 1.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_zoh` of A = diag w with a step `dt` for each
    state; leading axes broadcast. Types as `discretize_zoh`, every entry accurate by itself:
    φ₁ through expm1, since e^z − 1 cancels for small dt·w.

    Raises ValueError where sizes disagree, TypeError for other types. NaN in `w_n` or `dt_n`
    reaches Ā_n and row n of B̄. Source: [smith2023s5, §3.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_zoh([0.0, -1e-9], [[1.0], [1.0]], [0.5, 0.5])
    >>> B_bar.tolist()
    [[0.5], [0.499999999875]]
    """
    z = dt * w
    B_bar = (dt * _phi1(z))[..., None] * B
    return _for_every(B_bar, np.exp(z), 1), B_bar


def discretize_diagonal_zoh_vjp(dA_bar, dB_bar, w, B, dt):
    """∂Ā/∂w = dt Ā,  ∂Ā/∂dt = w Ā,  ∂B̄/∂w = dt² φ₁'(dt w) B,  ∂B̄/∂dt = Ā B,  ∂B̄/∂B = dt φ₁.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    z = dt * w
    A_bar, through_B = np.exp(z), (B.conj() * dB_bar).sum(-1)
    dw = (dt * A_bar).conj() * dA_bar + (dt * dt * _phi1_derivative(z)).conj() * through_B
    dB = (dt * _phi1(z)).conj()[..., None] * dB_bar
    ddt = (w * A_bar).conj() * dA_bar + A_bar.conj() * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


def _phi1(z):
    """(e^z − 1)/z, 1 at z = 0."""
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def _phi1_derivative(z):
    """φ₁'(z) = (e^z − φ₁(z))/z, which cancels within |z| < 1: there Σ_k z^k / (k! (k + 2))."""
    near = np.abs(z) < 1
    inner, outer = np.where(near, z, 0), np.where(near, 1, z)
    one = np.ones((), np.finfo(z.dtype).dtype)
    series = one / 27
    for k in range(24, -1, -1):  # Horner; the rest, 1/(25!·27), is below u of long double
        series = one / (k + 2) + inner / (k + 1) * series
    return np.where(near, series, (np.exp(outer) - _phi1(outer)) / outer)


DISCRETIZE_DIAGONAL_ZOH = Operator(
    reference=discretize_diagonal_zoh,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    citation="smith2023s5, §3.2",
    lacks=frozenset({"jit", "gpu"}),  # one pass over n numbers: nothing to win
)
discretize_diagonal_zoh = DISCRETIZE_DIAGONAL_ZOH.checked(discretize_diagonal_zoh)
discretize_diagonal_zoh_vjp = DISCRETIZE_DIAGONAL_ZOH.checked_vjp(discretize_diagonal_zoh_vjp)


def discretize_diagonal_bilinear(w, B, dt):
    """Ā_n = (1 + ½dt_n w_n) / (1 − ½dt_n w_n),  B̄_nm = dt_n / (1 − ½dt_n w_n) B_nm.

    Signature ``(n),(n,m),(n)->(n),(n,m)``: `discretize_bilinear` of A = diag w with a step `dt` for
    each state; leading axes broadcast. Types, errors and NaN as `discretize_diagonal_zoh`;
    dt·w = −2 gives Ā = 0, dt·w = 2 infinity. Source: [smith2023s5, §3.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_diagonal_bilinear([-2.0, 0.0], [[1.0], [1.0]], [1.0, 0.5])
    >>> A_bar.tolist(), B_bar.tolist()
    ([0.0, 1.0], [[0.5], [0.5]])
    """
    z = dt * w / 2
    B_bar = dt[..., None] * B / (1 - z)[..., None]
    return _for_every(B_bar, (1 + z) / (1 - z), 1), B_bar


def discretize_diagonal_bilinear_vjp(dA_bar, dB_bar, w, B, dt):
    """R = 1/(1 − ½dt w);  ∂Ā = R² ∂(dt w),  ∂B̄/∂dt = R² B,  ∂B̄/∂w = ½dt² R² B,  ∂B̄/∂B = dt R.

    Returns `(dw, dB, ddt)`, shaped like `w`, `B` and `dt`.
    """
    R = 1 / (1 - dt * w / 2)
    R2, through_B = (R * R).conj(), (B.conj() * dB_bar).sum(-1)
    dw = dt * R2 * dA_bar + dt * dt / 2 * R2 * through_B
    dB = (dt * R).conj()[..., None] * dB_bar
    ddt = w.conj() * R2 * dA_bar + R2 * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


DISCRETIZE_DIAGONAL_BILINEAR = Operator(
    reference=discretize_diagonal_bilinear,
    signature="(n),(n,m),(n)->(n),(n,m)",
    inputs={"w": modes, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    citation="smith2023s5, §3.2",
    lacks=frozenset({"jit", "gpu"}),  # one pass over n numbers: nothing to win
)
discretize_diagonal_bilinear = DISCRETIZE_DIAGONAL_BILINEAR.checked(discretize_diagonal_bilinear)
discretize_diagonal_bilinear_vjp = DISCRETIZE_DIAGONAL_BILINEAR.checked_vjp(
    discretize_diagonal_bilinear_vjp
)
