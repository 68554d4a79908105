"""Memories of a signal: the states of a HiPPO system after each sample.

The signal is constant over each step. Any memory (A, B) uses zero-order hold. The memory of scaled
Legendre polynomials, whose A/t changes with time, is exact: its states are the coefficients of the
piecewise constant signal.
"""

import numpy as np

from refssm._declaration.contract import NORM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.contraction import einsum
from refssm._numerics.expm import expm
from refssm._numerics.lyapunov import adjoint
from refssm._numerics.overridable import overridable
from refssm._numerics.polynomials import legendre
from refssm.discretize.blocks import scaled
from refssm.discretize.hold import DISCRETIZE_ZOH
from refssm.domains import input_vectors, settling_matrices, signals, steps
from refssm.scan import DENSE_SCAN


def hippo_project(A, B, u, dt):
    """x_k = e^{dt A} x_{k−1} + dt φ₁(dt A) B u_k from rest: zero-order hold.

    Signature ``(n,n),(n),(l),()->(l,n)``: `A` and `B` of the memory, `u` the signal, constant over
    the step that ends at each sample's time, `dt` the step size, `n` states, `l` time; leading axes
    broadcast. Any of float32, float64, longdouble and their complex types; the result has
    ``np.result_type(A, B, u, dt)``. Units: `dt` in those of 1/A, `x` in those of `u` for the (A, B)
    of a measure. After `hippo_rescale` by s, the states are s times as large.

    Raises ValueError if sizes disagree, TypeError for other types. NaN in `A`, `B` or `dt` reaches
    every state, NaN in `u` its own and later states. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_project([[0.0]], [1.0], [1.0, 2.0, 3.0], 0.5).ravel()  # an integrator
    array([0.5, 1.5, 3. ])
    """
    return held_states(scaled(A, dt), dt[..., None] * B, u)


# The judge's tracked arrays bring their own rules to these three: norm bounds by the powers of e^F.


@overridable
def held_states(F, H, u):
    """x_k = e^F x_{k−1} + φ₁(F) H u_k from rest."""
    return exponential_states(F, einsum("...n,...l->...ln", held_input(F, H), u))


@overridable
def held_input(F, H):
    """φ₁(F) H."""
    return DISCRETIZE_ZOH.reference(F, H[..., None], np.ones((), np.finfo(F.dtype).dtype))[1][
        ..., 0
    ]


@overridable
def exponential_states(F, b):
    """x_k = e^F x_{k−1} + b_k from rest."""
    return DENSE_SCAN.reference(expm(F), b)


def hippo_project_vjp(dx, A, B, u, dt):
    """g_k = dx_k + Āᴴ g_{k+1};  dĀ = Σ_{k>0} g_k x_{k−1}ᴴ,  dB̄ = Σ_k g_k u_k*,  du_k = B̄ᴴ g_k.

    The VJP of zero-order hold then gives dA, dB and ddt. Returns `(dA, dB, du, ddt)`.
    """
    g = np.flip(exponential_states(adjoint(scaled(A, dt)), np.flip(dx, axis=-2)), axis=-2)
    x, B_bar = HIPPO_PROJECT.reference(A, B, u, dt), held_input(scaled(A, dt), dt[..., None] * B)
    dA_bar = einsum("...ki,...kj->...ij", g[..., 1:, :], x[..., :-1, :].conj())
    dB_bar = einsum("...kn,...k->...n", g, u.conj())
    du = einsum("...n,...kn->...k", B_bar.conj(), g)
    through = DISCRETIZE_ZOH.bare_vjp(dA_bar, dB_bar[..., None], A, B[..., None], dt)
    return through[0], through[1][..., 0], unbroadcast(du, u), through[2]


HIPPO_PROJECT = Operator(
    reference=hippo_project,
    signature="(n,n),(n),(l),()->(l,n)",
    inputs={"A": settling_matrices, "B": input_vectors, "u": signals, "dt": steps},
    outputs=("x",),
    batch="d, d, b d, d",
    traits=frozenset({"causal", "time-invariant", "linear:u"}),
    citation="gu2020hippo",
    lacks=frozenset({"jit"}),  # an exponential and matrix products: BLAS does them already
    tags=("HiPPO memory online function approximation", "HiPPO_LegT forward"),
)
hippo_project = HIPPO_PROJECT.checked(hippo_project)
hippo_project_vjp = HIPPO_PROJECT.checked_vjp(hippo_project_vjp)


def hippo_project_legs(u, *, n):
    """c_k,i = √(2i+1)/T ∫₀ᵀ u(t) P_i(2t/T − 1) dt,  T = k + 1,  u(t) = u_j for j ≤ t < j + 1.

    Signature ``(l)->(l,n)``: `u` the signal, constant over unit steps (the memory has no step
    size), `n` coefficients, `l` time; leading axes broadcast. Any of float32, float64, longdouble
    and their complex types; the result has the type of `u`, and its units. These are exactly the
    states of x' = (A x + B u)/t with LegS's A and B: c_k = e^{A log((k+1)/k)} c_{k−1} + A⁻¹ (e^{A
    log((k+1)/k)} − I) B u_k,  c_0 = (u_0, 0, 0, …).

    Raises ValueError for another shape or `n`, TypeError for other types. NaN in `u` reaches its
    own and later states. Errors are measured in the norm of each state. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_project_legs([1.0, 3.0], n=2).round(4)
    array([[1.   , 0.   ],
           [2.   , 0.866]])
    """
    c = np.zeros_like(u, shape=(*u.shape, n))
    for k in range(u.shape[-1]):
        c[..., k, :] = einsum("...j,jn->...n", u[..., : k + 1], _over_pieces(u, k, n))
    return c


def _over_pieces(u, k, n):
    """½√(2i+1) ∫ P_i over k + 1 equal parts of [−1, 1]: (2i + 1) ∫ P_i = P_{i+1} − P_{i−1}."""
    real = np.finfo(u.dtype).dtype
    nodes = 2 * np.arange(k + 2, dtype=real) / (k + 1) - 1
    P = legendre(np.zeros_like(u, shape=(k + 2,), dtype=real) + nodes, n + 1)
    roots = 2 * np.sqrt(2 * np.arange(1, n, dtype=real) + 1)
    F = (P[:, 2:] - P[:, : P.shape[-1] - 2]) / roots if n > 1 else P[:, :0]
    mean = np.full((k + 1, 1), real.type(1) / real.type(k + 1))
    return np.concatenate([mean, F[1:] - F[:-1]], axis=-1)[:, :n]


def hippo_project_legs_vjp(dc, u, *, n):
    """du_j = Σ_{k≥j} Σ_i W_kji dc_k,i, W_kji the integrals over the pieces.

    Returns `(du,)`, shaped like `u`.
    """
    dc = dc.astype(np.result_type(dc, u))
    du = np.zeros_like(u, shape=dc.shape[:-1], dtype=dc.dtype)
    for k in range(u.shape[-1]):
        past = einsum("...n,jn->...j", dc[..., k, :], _over_pieces(u, k, n))
        du[..., : k + 1] = du[..., : k + 1] + past
    return (unbroadcast(du, u),)


HIPPO_PROJECT_LEGS = Operator(
    reference=hippo_project_legs,
    signature="(l)->(l,n)",
    inputs={"u": signals},
    outputs=("c",),
    batch="b d",
    traits=frozenset({"causal", "linear:u"}),
    contract=NORM,  # the recurrence spreads errors over a whole state
    citation="gu2020hippo",
    lacks=frozenset({"jit"}),
    tags=("LegS memory of the whole history", "HiPPO_LegS forward"),
)
hippo_project_legs = HIPPO_PROJECT_LEGS.checked(hippo_project_legs)
hippo_project_legs_vjp = HIPPO_PROJECT_LEGS.checked_vjp(hippo_project_legs_vjp)
