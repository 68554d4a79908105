"""Mirrors of refssm.krylov: rows times columns, each found by doubling.

    K_{pm+r} = (C A^{pm}) (A^r B),   r < m ≈ √l

[B, AB, …] doubles its columns with one product by A^(2^i), [C, C A^m, …] its rows likewise, so l
entries cost about 2 log₂ l products of small matrices and O(n√l) memory, no step for each time.
"""

from math import isqrt

from refssm.krylov import KRYLOV_KERNEL
from refssm_gpu._algebra.parts import adjoint, batch_of, conj
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror


@mirror(KRYLOV_KERNEL)
def krylov_kernel(A, B, C, *, l):
    K, xp = _Factors(A, B, C, l).product(), namespace(A, B, C)
    K = xp.reshape(K, (*K.shape[:-2], K.shape[-2] * K.shape[-1]))[..., :l]
    batch = batch_of((A, B, C), (2, 1, 1))  # up to l = 1 no product has met A
    return K if K.shape[:-1] == batch else xp.asarray(xp.broadcast_to(K, (*batch, l)), copy=True)


@mirror(KRYLOV_KERNEL)
def krylov_kernel_vjp(dK, A, B, C, *, l):
    """The doubling, backwards."""
    return unbroadcast_each(_Factors(A, B, C, l).gradients(dK), (A, B, C))


class _Doubled:
    """[x, P x, …, P^(count−1) x] as columns, and the powers P, P², P⁴ … that made them."""

    def __init__(self, P: Array, x: Array, count: int):
        self.columns, self.powers = x[..., None], []
        xp = namespace(P, x)
        while (have := self.columns.shape[-1]) < count:
            self.powers.append(self.powers[-1] @ self.powers[-1] if self.powers else P)
            later = self.powers[-1] @ self.columns[..., : min(have, count - have)]
            batch = later.shape[:-2]
            own = xp.broadcast_to(self.columns, (*batch, *self.columns.shape[-2:]))
            self.columns = xp.concat([own, later], axis=-1)

    def back(self, dX: Array, dpower: Array | None) -> tuple[Array | None, Array]:
        """Gradients of P and x; `dpower` is that of the power after the last, None for no use."""
        xp = namespace(dX)
        for i in reversed(range(len(self.powers))):
            P, have = self.powers[i], 2**i
            early, late = dX[..., :have], dX[..., have:]
            own = late @ adjoint(self.columns[..., : late.shape[-1]])
            if dpower is not None:
                own = own + dpower @ adjoint(P) + adjoint(P) @ dpower
            back = adjoint(P) @ late
            rest = xp.zeros((*back.shape[:-1], have - back.shape[-1]), dtype=back.dtype)
            dpower, dX = own, early + xp.concat([back, rest], axis=-1)
        return dpower, dX[..., 0]


class _Factors:
    """The columns A^r B and the rows C A^{pm}, as columns of the transposed system."""

    def __init__(self, A: Array, B: Array, C: Array, l: int):
        xp = namespace(A, B, C)
        self.A, self.length = A, l
        m = 1 << (isqrt(max(l - 1, 0)).bit_length())  # a power of 2 not below √l
        self.right = _Doubled(A, B, m)
        leap = self.right.powers[-1] @ self.right.powers[-1] if self.right.powers else A
        self.left = _Doubled(xp.matrix_transpose(leap), C, max(-(-l // m), 1))

    def product(self) -> Array:
        """K as rows of m entries."""
        return namespace(self.A).matrix_transpose(self.left.columns) @ self.right.columns

    def gradients(self, dK: Array) -> tuple[Array, Array, Array]:
        """dA, dB and dC, on all leading axes."""
        xp, (left, right) = namespace(dK), (self.left, self.right)
        rows, m = left.columns.shape[-1], right.columns.shape[-1]
        rest = xp.zeros((*dK.shape[:-1], rows * m - self.length), dtype=dK.dtype)
        dK = xp.reshape(xp.concat([dK, rest], axis=-1), (*dK.shape[:-1], rows, m))
        dleap, dC = left.back(xp.matrix_transpose(dK @ adjoint(right.columns)), None)
        onward = None if dleap is None else xp.matrix_transpose(dleap)
        dA, dB = right.back(conj(left.columns) @ dK, onward)
        return xp.zeros_like(self.A) if dA is None else dA, dB, dC
