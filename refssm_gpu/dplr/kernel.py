"""CuPy mirror of refssm.dplr_kernel: heads times places by doubling, without a transform.

The published way needs C(I − Ā^l), so it needs powers of Ā, too, and then a Cauchy sum for each
node. With the powers the kernel is two more products, and poles at nodes are no special case. The
systems are (…, n, n), n at most a few hundred; all products are batches of cuBLAS in double
precision. 64 systems of 64 modes, l = 16384: 6 million complex multiply-adds a system in about 35
launches; the Cauchy sums would be 1 million divisions and 4 million multiply-adds on top of the
powers.
"""

from math import isqrt

from refssm.dplr import DPLR_KERNEL
from refssm_gpu._algebra.parts import adjoint, applied, conj, identity, solve
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_and_round, widened
from refssm_gpu._launching.checked import mirror


@mirror(DPLR_KERNEL)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """In double precision, rounded once."""
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = widened(w, P, Q, B, C, dt)
    system = Bilinear(w, P, Q, B, dt)
    powers = Powers(Chain(system.E, system.plus), system.B_bar, C, int(l))
    return xp.astype(powers.kernel(), kind, copy=False)


@mirror(DPLR_KERNEL)
def dplr_kernel_vjp(dk, w, P, Q, B, C, dt, *, l):
    """The doubling and the bilinear map, backwards."""
    arguments = w, P, Q, B, C, dt
    wide_dk, w, P, Q, B, C, dt = widened(dk, *arguments)
    system = Bilinear(w, P, Q, B, dt)
    chain = Chain(system.E, system.plus)
    dB_bar, dC = Powers(chain, system.B_bar, C, int(l)).back(wide_dk)
    dw, dP, dQ, dB, ddt = system.back(chain.back(), dB_bar)
    return unbroadcast_and_round((dw, dP, dQ, dB, dC, ddt), arguments)


# The bilinear map of A = diag w − P Qᴴ and its gradient, in double precision: small matrices
#
# (I − ½dt A)⁻¹ = diag R − ½dt R P V,   R = 1/(1 − ½dt w),   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
# E = I − Ā = dt R P V − dt diag(R w),   I + Ā = 2 (I − ½dt A)⁻¹,   B̄ = (I − ½dt A)⁻¹ dt B


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


# C A^k B for k < l by doubling on E_m = I − A^m, forwards and backwards
#
#     E_2 = (I + A) E_1,   E_2m = 2 E_m − E_m²,   x A^m = x − x E_m
#
# as in refssm._numerics.powers: A^m itself would lose the digits of slow modes. Those near −1 are
# kept by the caller's I + A. One product of matrices doubles the rows x A^k, another one doubles m.
# With rows C A^{pm} and columns A^r B, r < m ≈ √l, entries pm + r are one product.


class Chain:
    """E_1, E_2, E_4, … as far as they are asked for, and gradients by them."""

    def __init__(self, E: Array, plus: Array):
        self.plus, self.powers = plus, [E]  # plus: I + A
        self.gradients: list[Array | None] = []

    def __getitem__(self, i: int) -> Array:
        """I − A^(2^i)."""
        while len(self.powers) <= i:
            E = self.powers[-1]
            self.powers.append(self.plus @ E if len(self.powers) == 1 else E + (E - E @ E))
        return self.powers[i]

    def take(self, i: int, dE: Array) -> None:
        """Add to the gradient of power i."""
        self.gradients += [None] * (i + 1 - len(self.gradients))
        before = self.gradients[i]
        self.gradients[i] = dE if before is None else before + dE

    def back(self) -> Array | None:
        """The gradient of E_1; None if nothing depends on it."""
        for i in reversed(range(1, len(self.gradients))):
            if (dE := self.gradients[i]) is not None:
                E = adjoint(self[i - 1])
                own = adjoint(self.plus) if i == 1 else None
                through = 2 * dE - dE @ E if own is None else dE @ own
                self.take(i - 1, through - E @ dE)
        return self.gradients[0] if self.gradients else None


class DoubledRows:
    """x A^(k 2^first), or x (Aᵀ)^(k 2^first), as rows, k < count."""

    def __init__(self, chain: Chain, x: Array, count: int, first: int = 0, turned: bool = False):
        xp = namespace(x)
        self.chain, self.first, self.turned = chain, first, turned
        self.rows, self.steps = x[..., None, :], 0
        while (have := self.rows.shape[-2]) < count:
            early = self.rows[..., : min(have, count - have), :]
            later = early - early @ self._power(self.steps)
            own = xp.broadcast_to(self.rows, (*later.shape[:-2], *self.rows.shape[-2:]))
            self.rows = xp.concat([xp.astype(own, later.dtype, copy=False), later], axis=-2)
            self.steps += 1

    def _power(self, i: int) -> Array:
        E = self.chain[self.first + i]
        return namespace(E).matrix_transpose(E) if self.turned else E

    def back(self, dX: Array) -> Array:
        """The gradient of x; the chain takes those of its powers."""
        xp = namespace(dX)
        for i in reversed(range(self.steps)):
            have = 2**i
            early, late = dX[..., :have, :], dX[..., have:, :]
            count = late.shape[-2]
            own = -(adjoint(self.rows[..., :count, :]) @ late)
            self.chain.take(self.first + i, xp.matrix_transpose(own) if self.turned else own)
            back = late - late @ adjoint(self._power(i))
            rest = xp.zeros((*back.shape[:-2], have - count, back.shape[-1]), dtype=back.dtype)
            dX = early + xp.concat([back, rest], axis=-2)
        return dX[..., 0, :]


class Powers:
    """K_k = C A^k B, k < l: (…, n), (…, n) -> (…, l)."""

    def __init__(self, chain: Chain, B: Array, C: Array, l: int):
        self.l, bits = l, isqrt(max(l - 1, 0)).bit_length()
        m = 1 << bits  # at least √l
        self.right = DoubledRows(chain, B, m, turned=True)
        self.left = DoubledRows(chain, C, max(-(-l // m), 1), first=bits)

    def kernel(self) -> Array:
        """K."""
        xp = namespace(self.left.rows)
        K = self.left.rows @ xp.matrix_transpose(self.right.rows)
        return xp.reshape(K, (*K.shape[:-2], K.shape[-2] * K.shape[-1]))[..., : self.l]

    def back(self, dK: Array) -> tuple[Array, Array]:
        """dB and dC, not yet summed over broadcast axes."""
        xp, (left, right) = namespace(dK), (self.left.rows, self.right.rows)
        heads, m = left.shape[-2], right.shape[-2]
        rest = xp.zeros((*dK.shape[:-1], heads * m - self.l), dtype=dK.dtype)
        dK = xp.reshape(xp.concat([dK, rest], axis=-1), (*dK.shape[:-1], heads, m))
        dB = self.right.back(xp.matrix_transpose(dK) @ conj(left))
        return dB, self.left.back(dK @ conj(right))
