"""The exponential rules of a matrix: input constant, linear, impulses, or as in Mamba.

    x(t + dt) = e^{dt A} x(t) + ∫₀^dt e^{(dt − s) A} B u(t + s) ds

The integrals are blocks of one exponential [vanloan1978]:
e^[[F, I, 0], [0, 0, I], [0, 0, 0]] = [[e^F, φ₁(F), φ₂(F)], [0, I, I], [0, 0, I]].
"""

from functools import partial

import numpy as np

from refssm._declaration.contract import EXPM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.expm import expm, expm_derivative
from refssm._numerics.lyapunov import adjoint
from refssm.discretize.blocks import above, for_every, identity, scaled, through_steps
from refssm.domains import input_matrices, state_matrices, steps

# what all of them have; first-order hold has a B̄ for each end of a step
_hold = partial(
    Operator,
    signature="(n,n),(n,m),()->(n,n),(n,m)",
    inputs={"A": state_matrices, "B": input_matrices, "dt": steps},
    outputs=("A_bar", "B_bar"),
    batch="d, d, d",
    traits=frozenset({"linear:B->B_bar"}),
    contract=EXPM,
    lacks=frozenset({"jit"}),  # matrix products: BLAS does them already
)


def discretize_zoh(A, B, dt):
    """Ā = e^{dt A},  B̄ = dt φ₁(dt A) B,  φ₁(z) = (e^z − 1)/z,  φ₁(0) = 1.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: `A` and `B` of the continuous system, `dt` the step
    size, `n` states, `m` inputs; leading axes broadcast. Any of float32, float64, longdouble and
    their complex types; Ā is complex if `A` is, B̄ if `A` or `B` is. Units: `dt` in those of 1/A. A
    may be singular. Rounding errors of Ā are measured as those of an exponential, those of B̄ by
    what a rounding of dt A changes in φ₁(dt A) dt B.

    Raises ValueError if sizes disagree, TypeError for other types. NaN in `A` or `dt` reaches every
    entry, NaN in a column of `B` that column of B̄. Source: [vanloan1978].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_zoh([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.5)
    >>> A_bar.tolist(), B_bar.tolist()
    ([[1.0, 0.5], [0.0, 1.0]], [[0.125], [0.5]])
    """
    F, n = scaled(A, dt), A.shape[-1]
    E = expm(above(F, np.zeros_like(F) + identity(A)))  # [[Ā, φ₁], [0, I]]
    return for_every(E[..., :n, :n], scaled(E[..., :n, n:] @ B, dt))


def discretize_zoh_vjp(dA_bar, dB_bar, A, B, dt):
    """With G = dt [[A, B], [0, 0]] and e^G = [[Ā, B̄], [0, I]]: dG = L(Gᴴ, [[dĀ, dB̄], [0, 0]]).

    L(Gᴴ, ·) is the derivative of the exponential: the adjoint of L(G, ·).
    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    n = A.shape[-1]
    dG = expm_derivative(adjoint(zoh_exponent(A, B, dt)), above(dA_bar, dB_bar))[..., :n, :]
    return through_steps(dG[..., :n], dG[..., n:], A, B, dt)


def zoh_exponent(A, B, dt):
    """dt [[A, B], [0, 0]]: x' = A x + B u, u' = 0; its exponential is [[Ā, B̄], [0, I]]."""
    return above(scaled(A, dt), scaled(B, dt))


DISCRETIZE_ZOH = _hold(
    reference=discretize_zoh,
    definition=zoh_exponent,
    citation="vanloan1978",
    tags=("zero-order hold", "cont2discrete zoh", "c2d", "matrix exponential discretization"),
)
discretize_zoh = DISCRETIZE_ZOH.checked(discretize_zoh)
discretize_zoh_vjp = DISCRETIZE_ZOH.checked_vjp(discretize_zoh_vjp)


def discretize_foh(A, B, dt):
    """Ā = e^{dt A},  B̄₀ = dt φ₂(dt A) B,  B̄₁ = dt (φ₁ − φ₂)(dt A) B,  φ₂(z) = (φ₁(z) − 1)/z.

    Signature ``(n,n),(n,m),()->(n,n),(n,m),(n,m)``: the input is linear between its samples, so x_k
    = Ā x_{k−1} + B̄₀ u_k + B̄₁ u_{k−1}; B̄₀ + B̄₁ is the B̄ of `discretize_zoh`. Types, units,
    errors and NaN are those of `discretize_zoh`; φ₂(0) = ½, and A may be singular. Errors are
    measured as those of an exponential. Source: [franklin1998digital].

    >>> import refssm
    >>> A_bar, B0_bar, B1_bar = refssm.discretize_foh([[0.0]], [[1.0]], 0.5)
    >>> A_bar.tolist(), B0_bar.tolist(), B1_bar.tolist()
    ([[1.0]], [[0.25]], [[0.25]])
    """
    F, n = scaled(A, dt), A.shape[-1]
    I = np.zeros_like(F) + identity(A)
    E = expm(_held_twice(F, I))  # [[Ā, φ₁, φ₂], [0, I, I], [0, 0, I]]
    phi_1, phi_2 = E[..., :n, n : 2 * n], E[..., :n, 2 * n :]
    return for_every(E[..., :n, :n], scaled(phi_2 @ B, dt), scaled((phi_1 - phi_2) @ B, dt))


def discretize_foh_vjp(dA_bar, dB0_bar, dB1_bar, A, B, dt):
    """With e^G = [[Ā, B̄₀ + B̄₁, B̄₀], …]: dG = L(Gᴴ, [[dĀ, dB̄₁, dB̄₀ − dB̄₁], …]).

    G = [[dt A, dt B, 0], [0, 0, I], [0, 0, 0]]; only its first block row matters. Returns
    `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    n, m = B.shape[-2:]
    cotangent = above(dA_bar, dB1_bar, dB0_bar - dB1_bar)
    dG = expm_derivative(adjoint(foh_exponent(A, B, dt)), cotangent)[..., :n, :]
    return through_steps(dG[..., :n], dG[..., n : n + m], A, B, dt)


def foh_exponent(A, B, dt):
    """[[dt A, dt B, 0], [0, 0, I], [0, 0, 0]]: x' = A x + B u, u' = v, v' = 0; unit dt."""
    return _held_twice(scaled(A, dt), scaled(B, dt))


def _held_twice(F, H):
    """[[F, H, 0], [0, 0, I], [0, 0, 0]]; leading axes broadcast."""
    n, m = H.shape[-2:]
    G = above(F, H, np.zeros_like(H))
    ahead = np.eye(n + 2 * m, k=m, dtype=np.finfo(G.dtype).dtype)
    rows = np.arange(n + 2 * m)[:, None]
    return G + np.where((rows >= n) & (rows < n + m), ahead, 0)


DISCRETIZE_FOH = _hold(
    reference=discretize_foh,
    signature="(n,n),(n,m),()->(n,n),(n,m),(n,m)",
    outputs=("A_bar", "B0_bar", "B1_bar"),
    traits=frozenset({"linear:B->B0_bar", "linear:B->B1_bar"}),
    definition=foh_exponent,
    citation="franklin1998digital",
    tags=("first-order hold", "cont2discrete foh", "triangle hold"),
)
discretize_foh = DISCRETIZE_FOH.checked(discretize_foh)
discretize_foh_vjp = DISCRETIZE_FOH.checked_vjp(discretize_foh_vjp)


def discretize_impulse(A, B, dt):
    """Ā = e^{dt A},  B̄ = B: the input is a series of impulses u_k δ(t − k dt).

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: as `discretize_zoh`. The kernel C Ā^k B is the
    continuous impulse response at the times k dt. B̄ has the values of `B` and is real or complex
    like it; errors of Ā are measured as those of an exponential. Source: [franklin1998digital].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_impulse([[-1.0]], [[3.0]], 0.5)
    >>> A_bar.round(4).tolist(), B_bar.tolist()
    ([[0.6065]], [[3.0]])
    """
    return for_every(expm(scaled(A, dt)), np.copy(B))


def discretize_impulse_vjp(dA_bar, dB_bar, A, B, dt):
    """d(dt A) = L(dt Aᴴ, dĀ), L the derivative of the exponential;  dB = dB̄.

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    dF = expm_derivative(adjoint(scaled(A, dt)), dA_bar)
    ddt, dB = (A.conj() * dF).sum((-1, -2)), dB_bar.astype(np.result_type(dB_bar, A, B))
    return unbroadcast(scaled(dF, dt), A), unbroadcast(dB, B), unbroadcast(ddt, dt)


def impulse_exponent(A, B, dt):
    """dt A, and B̄, which is not part of the exponential."""
    return scaled(A, dt), np.copy(B)


DISCRETIZE_IMPULSE = _hold(
    reference=discretize_impulse,
    definition=impulse_exponent,
    citation="franklin1998digital",
    tags=("impulse invariant", "cont2discrete impulse"),
)
discretize_impulse = DISCRETIZE_IMPULSE.checked(discretize_impulse)
discretize_impulse_vjp = DISCRETIZE_IMPULSE.checked_vjp(discretize_impulse_vjp)


def discretize_mamba(A, B, dt):
    """Ā = e^{dt A},  B̄ = dt B: the exponential with the B̄ of Euler's rule.

    Signature ``(n,n),(n,m),()->(n,n),(n,m)``: as `discretize_zoh`, whose B̄ is φ₁(dt A) times this
    one. B̄ is real or complex like `B`; errors of Ā are measured as those of an exponential, those
    of B̄ entry by entry. Source: [gu2023mamba, §3.2].

    >>> import refssm
    >>> A_bar, B_bar = refssm.discretize_mamba([[-1.0]], [[3.0]], 0.5)
    >>> A_bar.round(4).tolist(), B_bar.tolist()
    ([[0.6065]], [[1.5]])
    """
    return for_every(expm(scaled(A, dt)), scaled(B, dt))


def discretize_mamba_vjp(dA_bar, dB_bar, A, B, dt):
    """d(dt A) = L(dt Aᴴ, dĀ), L the derivative of the exponential;  d(dt B) = dB̄.

    Returns `(dA, dB, ddt)`, shaped like `A`, `B` and `dt`.
    """
    return through_steps(expm_derivative(adjoint(scaled(A, dt)), dA_bar), dB_bar, A, B, dt)


def mamba_exponent(A, B, dt):
    """dt A, and B̄ = dt B, which is not part of the exponential."""
    return scaled(A, dt), scaled(B, dt)


DISCRETIZE_MAMBA = _hold(
    reference=discretize_mamba,
    definition=mamba_exponent,
    citation="gu2023mamba, §3.2",
    tags=("Mamba discretization with a dense matrix", "simplified Euler B"),
)
discretize_mamba = DISCRETIZE_MAMBA.checked(discretize_mamba)
discretize_mamba_vjp = DISCRETIZE_MAMBA.checked_vjp(discretize_mamba_vjp)
