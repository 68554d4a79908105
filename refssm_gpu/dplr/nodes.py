"""DPLR systems at all nodes at once, for gradients: X = s (diag D + s P Qᴴ)⁻¹ B by Woodbury.

With s = 1 + z and D = s T, T = 2/dt i tan θ/2 − w at z = e^(−iθ):

    X = (B − P c)/T,   (I_r + Σ_n Q*_n P_nᵀ/T_n) c = Σ_n Q*_n B_n/T_n

A mode m with T_m = 0 is left out of the sums: its X_m is one more unknown, and P_m c = B_m one more
equation. (Two modes exactly at one node give NaN.) At z = −1 T is infinite: see `Circle`.
"""

from __future__ import annotations

from refssm_gpu._algebra.parts import conj
from refssm_gpu._algebra.solving import solve
from refssm_gpu._launching.arrays import Array, namespace


class Circle:
    """Re and Im of e^(iθ/2) at l nodes; tan θ/2, and 1 + i tan θ/2 = 2/(1 + z), 0 in place of ∞."""

    def __init__(self, l: int, like: Array):
        xp = namespace(like)
        j = xp.arange(l, dtype=xp.int64)
        pi = xp.asarray(3.141592653589793, dtype=xp.float64)
        near = 4 * xp.minimum(j, l - j) <= l  # of z = 1
        quarter = xp.where(near, 2 * xp.minimum(j, l - j), l - 2 * xp.minimum(j, l - j))
        angle = pi * xp.astype(quarter, xp.float64) / (2 * max(l, 1))
        small, large = xp.sin(angle), xp.cos(angle)
        c = (1 - 2 * xp.astype(2 * j > l, xp.float64)) * xp.where(near, large, small)
        s = xp.where(near, small, large)
        self.infinite = c == 0
        self.tangent = xp.where(self.infinite, 0.0, s / xp.where(self.infinite, 1.0, c))
        self.turn = xp.where(self.infinite, 0.0, 1 + 1j * self.tangent)

    def denominators(self, w: Array, dt: Array) -> Array:
        """T; 1 at z = −1."""
        T = 1j * (2 / dt[..., None] * self.tangent)[..., None] - w[..., None, :]
        return namespace(T).where(self.infinite[:, None], 1.0, T)


class Resolved:
    """X, and c = Qᴴ X."""

    def __init__(self, T: Array, P: Array, Q_conj: Array, B: Array):
        xp, r = namespace(T), P.shape[-1]
        met = T == 0
        met = met & (xp.cumulative_sum(xp.astype(met, xp.int64), axis=-1) == 1) & (r > 0)
        R = xp.where(met, 0.0, 1 / xp.where(met, 1.0, T))
        products = Q_conj[..., :, None] * P[..., None, :]
        products = xp.reshape(products, (*products.shape[:-2], r * r))
        sums = R @ (products + 0j)
        sums = xp.reshape(sums, (*sums.shape[:-1], r, r))
        own = xp.astype(met, xp.complex128)
        border = -(own @ (Q_conj + 0j)), own @ (P + 0j), own @ (B + 0j)[..., None]
        start = R @ (Q_conj * B[..., None] + 0j)
        self.c, at_pole = bordered(sums, *border, ~xp.any(met, axis=-1), start)
        low_rank = self.c @ xp.matrix_transpose(P + 0j)
        self.X = R * (B[..., None, :] - low_rank) + own * at_pole


def bordered(sums: Array, right: Array, below: Array, B: Array, free: Array, start: Array):
    """c and x of (I + sums) c + right x = start, below c = B; x = 0 where it is `free`."""
    xp, r = namespace(sums), sums.shape[-1]
    corner = xp.astype(free, xp.complex128)[..., None]
    if r == 0:
        return start, xp.zeros_like(corner)
    if r == 1:
        whole = 1 + sums[..., 0]
        size = whole * corner - right * below
        return (start * corner - right * B) / size, (whole * B - below * start) / size
    top = xp.concat([sums + xp.eye(r, dtype=xp.float64), right[..., None]], axis=-1)
    bottom = xp.concat([below, corner], axis=-1)
    M = xp.concat([top, bottom[..., None, :]], axis=-2)
    found = solve(M, xp.concat([start, B], axis=-1)[..., None])[..., 0]
    return found[..., :r], found[..., r:]


def gradients(dk: Array, w: Array, P: Array, Q: Array, B: Array, C: Array, dt: Array):
    """dw, dP, dQ, dB, dC and ddt of the aliased kernel; no array but those of one row is summed."""
    xp, l = namespace(dk), dk.shape[-1]
    if l == 0:
        dk, l = xp.zeros((*dk.shape[:-1], 1), dtype=dk.dtype), 1
    circle = Circle(l, dk)
    T = circle.denominators(w, dt)
    X = Resolved(T, P, conj(Q), B)
    Y = Resolved(T, conj(Q), P, C)
    d = conj(2 * xp.fft.fft(dk + 0j) / l)
    turned = (d * circle.turn / 2)[..., None]
    products = X.X * Y.X
    dw = xp.sum(turned * products, axis=-2)
    dC, dB = xp.sum(turned * X.X, axis=-2), xp.sum(turned * Y.X, axis=-2)
    dP = -(xp.matrix_transpose(turned * Y.X) @ X.c)
    dQ = -(xp.matrix_transpose(turned * X.X) @ Y.c)
    slope = 1j * circle.tangent * turned[..., 0]
    ddt = 2 * xp.sum(slope * xp.sum(products, axis=-1), axis=-1) / (dt * dt)
    last = xp.sum(xp.where(circle.infinite, d, 0.0), axis=-1)  # at z = −1, X = dt/4 B
    h = (last * dt / 4)[..., None]
    dC, dB = dC + h * B, dB + h * C
    ddt = ddt + last / 4 * xp.sum(B * C + 0j, axis=-1)
    return conj(dw), conj(dP), dQ, conj(dB), conj(dC), conj(ddt)
