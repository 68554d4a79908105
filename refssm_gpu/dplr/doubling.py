"""x, xA, …, xA^(count−1) for a row x, and C A^k B, by doubling on E = I − A, forwards and backwards.

    E_2m = 2 E_m − E_m²,   x A^m = x − x E_m

as in refssm._powers: A^m itself would lose the digits of slow modes. One product of matrices doubles
the rows, another one doubles m. With rows C A^{pm} and columns A^r B, r < m ≈ √l, entries pm + r are
one product. 64 × 64 systems, l = 16384: 6 million complex products a system, in 40 products of
matrices, instead of 67 million step by step; 128 steps of a recurrence in blocks of √l would each
be a launch, or wait for all threads of a block.
"""

from __future__ import annotations

from math import isqrt

from refssm_gpu._algebra.parts import adjoint, conj
from refssm_gpu._launching.arrays import Array, namespace


def doubled(E: Array) -> Array:
    """E_2m."""
    return E + (E - E @ E)


def doubled_back(dE: Array, E: Array) -> Array:
    """The gradient of E_m from that of E_2m."""
    across = adjoint(E)
    return 2 * dE - dE @ across - across @ dE


class Rows:
    """x A^k as rows, k < count, and the powers E_1, E_2, E_4, … that made them."""

    def __init__(self, E: Array, x: Array, count: int):
        xp = namespace(E, x)
        self.E, self.rows, self.powers = E, x[..., None, :], []
        while (have := self.rows.shape[-2]) < count:
            self.powers.append(doubled(self.powers[-1]) if self.powers else E)
            early = self.rows[..., : min(have, count - have), :]
            later = early - early @ self.powers[-1]
            own = xp.broadcast_to(self.rows, (*later.shape[:-2], *self.rows.shape[-2:]))
            own = xp.astype(own, later.dtype, copy=False)
            self.rows = xp.concat([own, later], axis=-2)

    def back(self, dX: Array, dE: Array | None = None) -> tuple[Array | None, Array]:
        """Gradients of E and x; `dE` is that of the power after the last, None for no use."""
        xp = namespace(dX)
        for i in reversed(range(len(self.powers))):
            E, have = self.powers[i], 2**i
            early, late = dX[..., :have, :], dX[..., have:, :]
            count = late.shape[-2]
            own = -(adjoint(self.rows[..., :count, :]) @ late)
            dE = own if dE is None else own + doubled_back(dE, E)
            back = late - late @ adjoint(E)
            rest = xp.zeros((*back.shape[:-2], have - count, back.shape[-1]), dtype=back.dtype)
            dX = early + xp.concat([back, rest], axis=-2)
        return dE, dX[..., 0, :]


class Powers:
    """K_k = C A^k B, k < l, from E = I − A: (…, n, n), (…, n), (…, n) -> (…, l)."""

    def __init__(self, E: Array, B: Array, C: Array, l: int):
        xp = namespace(E, B, C)
        self.l, m = l, 1 << isqrt(max(l - 1, 0)).bit_length()  # a power of 2, at least √l
        self.right = Rows(xp.matrix_transpose(E), B, m)
        powers = self.right.powers
        leap = doubled(powers[-1]) if powers else self.right.E  # or unused: l ≤ 1
        self.left = Rows(xp.matrix_transpose(leap), C, max(-(-l // m), 1))

    def kernel(self) -> Array:
        """K."""
        xp = namespace(self.left.rows)
        K = self.left.rows @ xp.matrix_transpose(self.right.rows)
        return xp.reshape(K, (*K.shape[:-2], K.shape[-2] * K.shape[-1]))[..., : self.l]

    def back(self, dK: Array) -> tuple[Array, Array, Array]:
        """dE, dB and dC, not yet summed over broadcast axes."""
        xp, (left, right) = namespace(dK), (self.left.rows, self.right.rows)
        heads, m = left.shape[-2], right.shape[-2]
        rest = xp.zeros((*dK.shape[:-1], heads * m - self.l), dtype=dK.dtype)
        dK = xp.reshape(xp.concat([dK, rest], axis=-1), (*dK.shape[:-1], heads, m))
        dleap, dC = self.left.back(dK @ conj(right))
        dleap = None if dleap is None else xp.matrix_transpose(dleap)
        dE, dB = self.right.back(xp.matrix_transpose(dK) @ conj(left), dleap)
        dE = xp.zeros_like(self.right.E) if dE is None else dE
        return xp.matrix_transpose(dE), dB, dC
