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

Many columns of many states share one shape P/e², as it takes most of the time: with θ P + (1 − θ) Q
for that of a sum, e becomes √(e²/θ + R²/(1 − θ)), which is e + R for θ = e/(e + R) and more for the
mean of these that columns share.
"""

from typing import Any, NamedTuple

import numpy as np

MOST = 2**16  # entries of the shapes of all columns


class Ellipsoids(NamedTuple):
    """One for each column: e (…, p), and shapes of trace 1 (…, p, n, n), or one for all columns."""

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
        if self.shape.shape[-3] < e.shape[-1]:
            r, grown = _in_one(r)
            part = part.mean(-1, keepdims=True)
            e = np.hypot(self.e * inverse(part) ** 0.5, R * grown * inverse(1 - part) ** 0.5)
        P = part[..., None, None] * self.shape
        np.einsum("...nn->...n", P)[...] += (1 - part)[..., None] * r
        return Ellipsoids(e, P)

    def kept(self, resets) -> "Ellipsoids":
        """Points where a sequence begins."""
        return Ellipsoids(np.where(resets[..., None], 0, self.e), self.shape)


def balls(e, n: int) -> Ellipsoids:
    """‖x‖₂ ≤ e."""
    columns = e.shape[-1] if e.shape[-1] * n**2 <= MOST else 1
    shape = np.zeros((*e.shape[:-1], columns, n, n))
    np.einsum("...nn->...n", shape)[...] = 1 / max(n, 1)
    return Ellipsoids(np.sqrt(n) * e, shape)


def boxes(r):
    """The bounds (…, n, p) of roundings as shapes (…, p, n) of sum 1, and those sums."""
    r = np.swapaxes(r, -1, -2)
    R = r.sum(-1)
    return r * inverse(R)[..., None], R


def _in_one(r):
    """One shape for all columns, and for each how many times its own it has to be."""
    most = r.max(-2, keepdims=True, initial=0)
    most = most * inverse(most.sum(-1, keepdims=True))
    return most, (r * inverse(most)).max(-1, initial=0)


def inverse(x):
    """1/x, and 0 for 0."""
    positive = x > 0
    return np.divide(1, x, where=positive, out=np.where(positive, 1.0, 0 * x))
