"""The bilinear map of A = diag w − P Qᴴ and its gradient, in double precision: small matrices.

(I − ½dt A)⁻¹ = diag R − ½dt R P V,   R = 1/(1 − ½dt w),   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
E = I − Ā = dt R P V − dt diag(R w),   I + Ā = 2 (I − ½dt A)⁻¹,   B̄ = (I − ½dt A)⁻¹ dt B
"""

from __future__ import annotations

from refssm_gpu._algebra.parts import adjoint, applied, conj, identity, solve
from refssm_gpu._launching.arrays import Array, namespace


class Bilinear:
    """E = I − Ā, I + Ā and B̄ of a system, and what their gradients need."""

    def __init__(self, w: Array, P: Array, Q: Array, B: Array, dt: Array):
        xp = namespace(w)
        self.given, self.h = (w, P, Q, B), dt[..., None]
        self.R = 1 / (1 - self.h * w / 2)
        RP, QR = self.R[..., None] * P, adjoint(Q) * self.R[..., None, :]
        self.RP, self.I = RP, identity(w)
        capacitance = xp.eye(P.shape[-1], dtype=self.I.dtype) + self.h[..., None] / 2 * (QR @ P)
        self.V = solve(capacitance, QR)
        low_rank = self.h[..., None] * (RP @ self.V)
        self.E = low_rank - (self.h * w * self.R)[..., None] * self.I
        self.plus = 2 * self.R[..., None] * self.I - low_rank
        self.B_bar = self.h * self._inverse(B)

    def _inverse(self, x: Array) -> Array:
        """(I − ½dt A)⁻¹ x."""
        return self.R * x - self.h / 2 * applied(self.RP, applied(self.V, x))

    def _inverse_adjoint(self, X: Array) -> Array:
        """(I − ½dt A)⁻ᴴ X, of matrices."""
        low_rank = adjoint(self.V) @ (adjoint(self.RP) @ X)
        return conj(self.R)[..., None] * X - self.h[..., None] / 2 * low_rank

    def back(self, dE: Array | None, dB_bar: Array) -> tuple[Array, ...]:
        """dw, dP, dQ, dB and ddt from those of E and B̄, as in refssm.dplr.kernel."""
        xp, (w, P, Q, B) = namespace(dB_bar), self.given
        T = self._inverse_adjoint(dB_bar[..., None])
        S = -self._inverse_adjoint(xp.zeros_like(self.E) if dE is None else dE)
        dF = (S @ adjoint(self.plus) + T * conj(self.B_bar)[..., None, :]) / 2
        dA, T = self.h[..., None] * dF, T[..., 0]
        A = w[..., None] * self.I - P @ adjoint(Q)
        ddt = xp.sum(conj(A) * dF, axis=(-2, -1)) + xp.sum(conj(B) * T, axis=-1)
        dw = xp.sum(dA * self.I, axis=-1)
        return dw, -(dA @ Q), -(adjoint(dA) @ P), self.h * T, ddt
