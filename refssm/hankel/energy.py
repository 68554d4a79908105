"""H2 norms: the energy of the impulse response, of dense and of diagonal systems [zhou1996].

    ‖G‖₂² = ∫₀^∞ |C e^{tA} B|² dt = C P Cᴴ = Bᴴ Q B,   A P + P Aᴴ + B Bᴴ = 0,  Aᴴ Q + Q A + Cᴴ C = 0
    ‖G‖₂² = Σ_ij v_i v_j*/(−(w_i + w_j*)),             v = B C, A = diag w

It is the standard deviation of the output for white noise of unit intensity as the input. With a D
other than 0 it is infinite.
"""

import numpy as np

from refssm._declaration.contract import GRAMIANS as BY_GRAMIANS
from refssm._declaration.operator import COMPILED_TYPES, Operator
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm._numerics.lyapunov import adjoint, lyapunov
from refssm.domains import distinct_modes, gains, projections, ringing_matrices
from refssm.hankel.gramians import applied, hermitian, outer


def h2_norm(A, B, C):
    """‖G‖₂ = √(C P Cᴴ),  A P + P Aᴴ + B Bᴴ = 0.

    Signature ``(n,n),(n),(n)->()``: `A`, `B` and `C` of a continuous system, all Re λ(A) < 0;
    leading axes broadcast. Any of float32, float64 and their complex types; the result is real.
    Units: those of B C / √`A`. For a discrete system, use `gramians_discrete`: √(C P Cᴴ) there.
    Errors are those of ‖C‖² ‖P‖: where the inputs hardly reach the outputs, digits are lost.

    An unstable `A` has no such norm; the result is then meaningless, or NaN. NaN in any argument
    reaches the result. Raises ValueError if sizes disagree, TypeError for other types. Source:
    [zhou1996].

    >>> import refssm
    >>> float(refssm.h2_norm([[-0.5]], [2.0], [3.0]))
    6.0
    """
    return _root(_energy(_gramian(A, B), C))


def h2_norm_vjp(dh, A, B, C):
    """dA = g Q P,  dB = g Q B,  dC = g C P,  g = dh/‖G‖₂; 0 where the norm is 0.

    Q is the observability gramian, Aᴴ Q + Q A + Cᴴ C = 0. The norm has a kink at 0: 0 is one of its
    subgradients. Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`.
    """
    P, Q = _gramian(A, B), _gramian(adjoint(A), C.conj())
    g = _slope(dh, _root(_energy(P, C)))
    gradients = (g[..., None, None] * (Q @ P), g[..., None] * applied(Q, B))
    return unbroadcast_each((*gradients, g[..., None] * _row(C, P)), (A, B, C))


def _gramian(A, B):
    """P, exactly Hermitian."""
    return hermitian(lyapunov(A, outer(B, B)))


def _row(C, P):
    """C P."""
    return einsum("...i,...ij->...j", C, P)


def _energy(P, C):
    """C P Cᴴ."""
    return einsum("...j,...j->...", _row(C, P), C.conj()).real


def _root(energy):
    """√ of an energy; one that rounding made negative counts as 0."""
    return np.sqrt(np.maximum(energy, 0 * energy))


def _slope(dh, h):
    """dh/h, or 0 where h is 0."""
    return np.where(h == 0, 0 * h, dh / np.where(h == 0, 1 + 0 * h, h))


H2_NORM = Operator(
    reference=h2_norm,
    signature="(n,n),(n),(n)->()",
    inputs={"A": ringing_matrices, "B": projections, "C": projections},
    outputs=("h",),
    batch="d, d, d",
    contract=BY_GRAMIANS,
    citation="zhou1996",
    lacks=frozenset({"jit", "gpu"}),  # LAPACK computes the Schur form already; CuPy has none
    tags=("H2 norm of a continuous system", "energy of the impulse response"),
)
h2_norm = H2_NORM.checked(h2_norm, COMPILED_TYPES)
h2_norm_vjp = H2_NORM.checked_vjp(h2_norm_vjp, COMPILED_TYPES)


def h2_norm_diagonal(w, B, C):
    """‖G‖₂ = √(Σ_ij v_i v_j*/(−(w_i + w_j*))),  v = B C.

    Signature ``(n),(n),(n)->()``: `w` the poles, Re w < 0, `B` and `C` the input and output
    vectors; leading axes broadcast. Only the products B_j C_j matter. For a real system with
    complex poles, pass both members of each pair. Any of float32, float64, longdouble and their
    complex types; the result is real. It is NaN if some Re w ≥ 0. Units: those of B C / √`w`. Terms
    cancel where poles are close and their residues differ in sign.

    Raises ValueError if sizes disagree, TypeError for other types. Source: [zhou1996].

    >>> import refssm
    >>> float(refssm.h2_norm_diagonal([-0.5], [2.0], [3.0]))
    6.0
    """
    v = B * C
    energy = (v * _conjugate_sum(w, v)).sum(-1).real
    return np.where(np.all(np.real(w) < 0, axis=-1), _root(energy), np.nan)


def h2_norm_diagonal_vjp(dh, w, B, C):
    """dv_i = g r_i*,  dw_i = g (v_i s_i)*,  g = dh/‖G‖₂;
    r_i = −Σ_j v_j*/(w_i + w_j*),  s_i = Σ_j v_j*/(w_i + w_j*)²;  dB = C* dv,  dC = B* dv.

    0 where the norm is 0. Returns `(dw, dB, dC)`, shaped like `w`, `B` and `C`.
    """
    v = B * C
    r, s = _conjugate_sum(w, v), _conjugate_sum(w, v, 2)
    g = _slope(dh, _root((v * r).sum(-1).real))[..., None]
    dv, dw = g * r.conj(), g * (v * s).conj()
    return unbroadcast(dw, w), unbroadcast(C.conj() * dv, B), unbroadcast(B.conj() * dv, C)


def _conjugate_sum(w, v, power=1):
    """Σ_j v_j*/(−(w_i + w_j*))^power."""
    sums = -(w[..., :, None] + w[..., None, :].conj())
    return (v[..., None, :].conj() / sums**power).sum(-1)


H2_NORM_DIAGONAL = Operator(
    reference=h2_norm_diagonal,
    signature="(n),(n),(n)->()",
    inputs={"w": distinct_modes, "B": gains, "C": gains},
    outputs=("h",),
    batch="d, d, d",
    citation="zhou1996",
    tags=("H2 norm of a diagonal system", "energy of a sum of exponentials"),
)
h2_norm_diagonal = H2_NORM_DIAGONAL.checked(h2_norm_diagonal)
h2_norm_diagonal_vjp = H2_NORM_DIAGONAL.checked_vjp(h2_norm_diagonal_vjp)
