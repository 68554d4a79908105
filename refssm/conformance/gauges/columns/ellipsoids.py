"""Ellipsoids that hold the error of a column, carried through a product of matrices.

A bound e ← ‖M‖₂ e + r multiplies norms. Where M = diag(e^g) + b aᵀ with a = −κ̂, b = κ̂ ∘ η, that
product grows (‖M‖₂ up to 2/√3: 10²² and more in 1024 steps), while the product of the matrices does
not (its norm was at most 4.1 in all draws). So the bound keeps the shape of the set that errors are
in:

    x ∈ E(P), that is xᵀ P⁻¹ x ≤ 1   ⟹   M x ∈ E(M P Mᵀ),
    roundings |ρ_n| ≤ r_n             ⟹   ρ ∈ E(R diag(r)) with R = Σ r_n,
    x ∈ E(P), ρ ∈ E(Q)                ⟹   x + ρ ∈ E((1 + 1/α) P + (1 + α) Q) for each α > 0.

The root of the trace bounds ‖x‖₂. With α = √(tr P/tr Q) that of the sum is the sum of both roots.
Here P = e² × a shape of trace 1, so that nothing is squared that may be small or large.
"""

from typing import Any, NamedTuple

import numpy as np


class Ellipsoids(NamedTuple):
    """One for each column: e (…, p), and shapes of trace 1 (…, p, n, n)."""

    e: Any
    shape: Any

    def moved(self, gate, read, write) -> "Ellipsoids":
        """Those of M x, with M = diag(gate) + write readᵀ; arguments are (…, 1, n)."""
        P = self.shape
        P = gate[..., None] * P + write[..., None] * (read[..., None, :] @ P)
        P = P * gate[..., None, :] + (P @ read[..., None]) * write[..., None, :]
        trace = np.einsum("...nn->...", P)
        return Ellipsoids(self.e * np.sqrt(trace), P * inverse(trace)[..., None, None])

    def plus(self, r, R) -> "Ellipsoids":
        """Those of x + ρ with |ρ_n| ≤ R r_n; r is (…, p, n), and its sums over n are 1."""
        e = self.e + R
        part = self.e * inverse(e)
        P = part[..., None, None] * self.shape
        np.einsum("...nn->...n", P)[...] += (1 - part)[..., None] * r
        return Ellipsoids(e, P)

    def kept(self, resets) -> "Ellipsoids":
        """Points where a sequence begins."""
        return Ellipsoids(np.where(resets[..., None], 0, self.e), self.shape)


def balls(e, n: int) -> Ellipsoids:
    """‖x‖₂ ≤ e."""
    shape = np.zeros((*e.shape, n, n))
    np.einsum("...nn->...n", shape)[...] = 1 / max(n, 1)
    return Ellipsoids(np.sqrt(n) * e, shape)


def boxes(r):
    """The bounds (…, n, p) of roundings as shapes (…, p, n) of sum 1, and those sums."""
    r = np.swapaxes(r, -1, -2)
    R = r.sum(-1)
    return r * inverse(R)[..., None], R


def inverse(x):
    """1/x, and 0 for 0."""
    positive = x > 0
    return np.divide(1, x, where=positive, out=np.where(positive, 1.0, 0 * x))
