"""Hankel singular values of diagonal systems, each to high relative accuracy.

    σ_i = s_i([Σ_j v_j ψ_k(w_j) ψ_l(w_j)]_kl),    v_j = B_j C_j

    ψ_k(w) = √(−2 Re w_k)/(−(w + w_k*)) · Π_{m<k} (w − w_m)/(w + w_m*)

The Hankel operator maps past inputs to future outputs: (Γu)(t) = ∫ K(t+s) u(−s) ds with the kernel
K(t) = Σ_j v_j e^{w_j t}. Its matrix in the orthonormal functions whose Laplace transforms at −w are
the ψ_k (a cascade of all-passes) is the one above. A Cholesky factor of the gramian P_ij = −B_i
B_j*/(w_i + w_j*) gives the same matrix: that gramian is Cauchy-like, so are its Schur complements,
and the ψ_k are their generators, computed as products without cancellation [demmel1999]. Complete
pivoting orders the poles, so the matrix is graded.
"""

import numpy as np

from refssm._declaration.contract import SINGULAR
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.takagi import takagi
from refssm.domains import distinct_modes, gains


def hankel_singular_values_diagonal(w, B, C):
    """σ_i = √λ_i(P Q), descending: the Hankel singular values of a diagonal system.

    Signature ``(n),(n),(n)->(n)``: `w` the poles, Re w < 0, `B` and `C` the input and output
    vectors; leading axes broadcast. Only the products B_j C_j matter. For a real system with
    complex poles, pass both members of each pair. Any of float32, float64, longdouble and their
    complex types; the result is real, in the precision of ``np.result_type(w, B, C)``. Every value
    is accurate to nearly all digits, however small. All are NaN if some Re w ≥ 0. Units: those of B
    C / `w`.

    Raises ValueError if sizes disagree, TypeError for other types. Source: [demmel1999].
    """
    w, v = np.broadcast_arrays(w, B * C)
    sigma, _, _ = takagi(_weighted(_orthonormal(w, v)[0], v))
    return np.where(np.all(np.real(w) < 0, axis=-1)[..., None], sigma, np.nan)


def hankel_singular_values_diagonal_vjp(dsigma, w, B, C):
    """∂σ_i/∂v_j = s_i* (Ψx_i)_j²,  ∂σ_i/∂w_j = 2 v_j s_i* (Ψx_i)_j (Ψ'x_i)_j,  v = B C.

    x_i is the singular vector, s_i σ_i = x_iᵀ G x_i, Ψ_jk = ψ_k(w_j) and Ψ' its derivative by w. A
    multiple value has no derivative: the gradients are then those of one possible basis. Returns
    `(dw, dB, dC)`, shaped like `w`, `B` and `C`.
    """
    return pulled_back(dsigma, *vectors(w, B, C), w, B, C)


def vectors(w, B, C):
    """s and ΨX, Ψ'X (…, n, n)."""
    poles, v = np.broadcast_arrays(w, B * C)
    psi, slope = _orthonormal(poles, v)
    _, s, X = takagi(_weighted(psi, v))
    return s, psi @ X, slope @ X


def pulled_back(dsigma, s, y, dy, w, B, C):
    """The gradients from `vectors`."""
    along = (s.conj() * dsigma)[..., None, :]
    dv = (along * y**2).sum(-1).conj()
    dw = (2 * along * ((B * C)[..., :, None] * y * dy)).sum(-1).conj()
    return unbroadcast(dw, w), unbroadcast(C.conj() * dv, B), unbroadcast(B.conj() * dv, C)


def _weighted(psi, v):
    """Σ_j v_j ψ_k(w_j) ψ_l(w_j)."""
    return psi.swapaxes(-1, -2) @ (v[..., :, None] * psi)


def _orthonormal(w, v):
    """ψ_k(w_j) and ψ_k'(w_j), (…, n, n): pole by pole; next is the pole with the largest remainder.

    The remainder of the gramian is −√(v_i v_j) g_i g_j*/(w_i + w_j*) in moduli, with g = Π_m (w −
    w_m)/(w + w_m*) over the poles used so far.
    """
    n, size = w.shape[-1], np.sqrt(np.abs(v)) / np.sqrt(-2 * np.real(w))
    g, dg = np.zeros_like(w) + 1, np.zeros_like(w)
    columns, slopes = [], []
    for _ in range(n):
        place = np.argmax(size * np.abs(g), axis=-1)[..., None]
        pole = np.take_along_axis(w, place, -1)
        z, norm = w + pole.conj(), np.sqrt(-2 * np.real(pole))
        columns.append(-norm * g / z)
        slopes.append(-norm * (dg - g / z) / z)
        taken = np.arange(n) == place
        step = np.where(taken, 0 * w, (w - pole) / z)  # exactly 0, whatever the errors of w
        g, dg = g * step, dg * step + g * (2 * np.real(pole) / z**2)
    if not columns:
        return np.zeros((*w.shape, 0), w.dtype), np.zeros((*w.shape, 0), w.dtype)
    return np.stack(columns, axis=-1), np.stack(slopes, axis=-1)


HANKEL_SINGULAR_VALUES_DIAGONAL = Operator(
    reference=hankel_singular_values_diagonal,
    signature="(n),(n),(n)->(n)",
    inputs={"w": distinct_modes, "B": gains, "C": gains},
    outputs=("sigma",),
    batch="d, d, d",
    contract=SINGULAR,
    citation="demmel1999",
    lacks=frozenset({"jit", "gpu", "enclosure"}),  # for one model at a time: on the CPU
    tags=("hsvd of a diagonal system", "Cauchy-like gramians"),
)
hankel_singular_values_diagonal = HANKEL_SINGULAR_VALUES_DIAGONAL.checked(
    hankel_singular_values_diagonal
)
hankel_singular_values_diagonal_vjp = HANKEL_SINGULAR_VALUES_DIAGONAL.checked_vjp(
    hankel_singular_values_diagonal_vjp
)
