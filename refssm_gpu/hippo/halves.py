"""The memory of scaled Legendre polynomials from the memories of its parts, in log₂ l rounds.

    c([0, T]) = S(−1, T−1) c([0, T−1]) + S(T−1, 1) c([T−1, T])

    S_ik(p, q) = q/2T ∫ φ_i((p + qξ)/T) φ_k(ξ) dξ over [−1, 1],   φ_i = √(2i+1) P_i

A polynomial on an interval is one on each part of it, so n coefficients of two parts give exactly
those of the whole. With T in blocks of 1, 2, 4, … steps the matrices are the same on every level:
two neighbouring blocks are joined with T = 2, which halves the length, and the states at the other
places follow with T = 3, 5, 7, …. O(l n²) operations and l n² numbers of tables for the whole
batch, where the sum over all pieces has O(l² n) operations. S is lower triangular.
"""

from __future__ import annotations

from refssm_gpu._algebra.parts import counting
from refssm_gpu._launching.arrays import Array, namespace


class Halves:
    """Matrices for signals like `u` (…, l); arrays below are (time, coefficients, batch)."""

    def __init__(self, u: Array, n: int):
        xp = namespace(u)
        self.n = n
        places = xp.arange((u.shape[-1] + 1) // 2, dtype=xp.float64)
        before = xp.where(places > 0, 2 * places, 1.0)  # T − 1 = 1, 2, 4, 6, …
        one = xp.ones_like(before)
        self.past = xp.astype(_joining(-one, before, n), u.dtype)
        self.latest = xp.astype(_joining(before, one, n), u.dtype)

    def states(self, b: Array) -> Array:
        """Coefficients of all prefixes, from the first `rank` of each block; the others are 0."""
        xp, (l, rank, members) = namespace(b), b.shape
        rest = xp.broadcast_to(0 * b[:1, :1, :], (1, self.n - rank, members))  # NaN reaches all
        first = xp.concat([b[:1, ...], rest], axis=1)
        if l == 1:
            return first
        even, odd = b[0::2, ...], b[1::2, ...]
        early = even[: odd.shape[0], ...]
        pairs = self.past[0, :, :rank] @ early + self.latest[0, :, :rank] @ odd
        at_odd, count = self.states(pairs), even.shape[0]
        x = xp.empty((l, self.n, members), dtype=b.dtype)
        x[1::2, ...] = at_odd
        x[:1, ...] = first
        before = self.past[1:count, ...] @ at_odd[: count - 1, ...]
        x[2::2, ...] = before + self.latest[1:count, :, :rank] @ even[1:, ...]
        return x

    def back(self, dx: Array, rank: int) -> Array:
        """The adjoint of `states`: gradients of the first `rank` coefficients of each block."""
        xp, (l, _, members) = namespace(dx), dx.shape
        if l == 1:
            return xp.asarray(dx[:, :rank, :], copy=True)
        even, odd = dx[0::2, ...], dx[1::2, ...]
        count = even.shape[0]
        past, latest = (xp.matrix_transpose(S) for S in (self.past, self.latest))
        brought = past[1:count, ...] @ even[1:, ...]
        own = xp.zeros((odd.shape[0] - brought.shape[0], *brought.shape[1:]), dtype=dx.dtype)
        pairs = self.back(odd + xp.concat([brought, own], axis=0), self.n)
        db = xp.empty((l, rank, members), dtype=pairs.dtype)
        db[:1, ...] = even[:1, :rank, :]
        db[2::2, ...] = latest[1:count, :rank, :] @ even[1:, ...]
        db[1::2, ...] = latest[0, :rank, :] @ pairs
        half = 2 * pairs.shape[0]
        db[:half:2, ...] = db[:half:2, ...] + past[0, :rank, :] @ pairs
        return db


def _joining(p: Array, q: Array, n: int) -> Array:
    """q/T √(2i+1) G_ik/√(2k+1),  P_i((p + qξ)/T) = Σ_k G_ik P_k(ξ),  T = |p| + q: (…, n, n).

    Legendre's recurrence on rows of coefficients. p, q and T are integers: were the argument
    rounded, errors would grow like the slope of P_n at the ends, n²/2.
    """
    xp, k = namespace(p), counting(n, p)
    p, q = p[:, None], q[:, None]
    T = xp.abs(p) + q
    rows = [xp.where(k == 0, 1.0, 0 * (p + k))]
    for i in range(n - 1):
        g = rows[i]
        turned = (p * g + q * _times_argument(g, k)) / T
        before = i * rows[i - 1] if i else 0.0
        rows.append(((2 * i + 1) * turned - before) / (i + 1))
    size = xp.sqrt(2 * k + 1)
    G = xp.tril(xp.stack(rows, axis=-2))
    return size[:, None] * G / size * (q / T)[..., None]


def _times_argument(g: Array, k: Array) -> Array:
    """Coefficients of ξ g(ξ):  ξ P_k = ((k+1) P_{k+1} + k P_{k−1})/(2k+1); n stays."""
    xp, none = namespace(g), g[..., :1] * 0
    shares = k * g / (2 * k + 1)
    raised = (k[1:] * g[..., :-1]) / (2 * k[:-1] + 1)
    return xp.concat([none, raised], axis=-1) + xp.concat([shares[..., 1:], none], axis=-1)
