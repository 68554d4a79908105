"""CuPy mirror of refssm.dplr_kernel_aliased: the spectrum at all nodes, and one transform.

C Ā^k (I − Ā^l)⁻¹ B̄ by doubling would be fewer operations, but the solve with I − Ā^l loses three
bits and more where modes of many sizes are coupled, and its derivative by dt is no exact zero at
z = 1. 64 systems of 64 modes, l = 16384: 67 million complex reciprocals, and for rank 1 four
products of each with a number of its mode. Ranks 1 and 2 have kernels; other ranks are array code.
"""

from math import prod

from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm_gpu._algebra.parts import applied, batch_of, conj, solve
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_and_round, widened
from refssm_gpu._launching.checked import mirror
from refssm_gpu.dplr import small_rank


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """In double precision, rounded once."""
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    if l == 0:
        shape = batch_of((w, P, Q, B, C, dt), (1, 2, 2, 1, 1, 0))
        return xp.zeros((*shape, 0), dtype=kind)
    w, P, Q, B, C, dt = widened(w, P, Q, B, C, dt)
    K = xp.fft.ifft(spectrum(w, P, Q, B, C, dt, int(l)))
    return xp.astype(K if xp.isdtype(kind, "complex floating") else xp.real(K), kind, copy=False)


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Sums over the nodes."""
    del l  # dk has it
    arguments = w, P, Q, B, C, dt
    wide_dk, w, P, Q, B, C, dt = widened(dk, *arguments)
    found = gradients(wide_dk, w, P, Q, B, C, dt)
    return unbroadcast_and_round(found, arguments)


# Systems at their nodes, X = s (diag D + s P Qᴴ)⁻¹ B by Woodbury, forwards and backwards
#
# With s = 1 + z and D = s T, T = 2/dt i tan θ/2 − w at z = e^(−iθ):
#
#     X = (B − P c)/T,   (I_r + Σ_n Q*_n P_nᵀ/T_n) c = Σ_n Q*_n B_n/T_n
#
# A mode m with T_m = 0 is left out of the sums: its X_m is one more unknown, and P_m c = B_m one
# more equation. (Two modes exactly at one node give NaN.) At z = −1 T is infinite: see `Circle`.
# Ranks 1 and 2 have kernels (`small_rank`). For others arrays of nodes times modes are made for
# some of the nodes at a time, ENTRIES numbers each.


ENTRIES = 1 << 22  # 64 MB of complex numbers: enough threads for any card


class Circle:
    """tan θ/2, and 1 + i tan θ/2 = 2/(1 + z), at some of l nodes; 0 in place of ∞."""

    def __init__(self, l: int, nodes: range, like: Array):
        xp = namespace(like)
        j = xp.arange(nodes.start, nodes.stop, dtype=xp.int64)
        pi = xp.asarray(3.141592653589793, dtype=xp.float64)
        near = 4 * xp.minimum(j, l - j) <= l  # of z = 1
        quarter = xp.where(near, 2 * xp.minimum(j, l - j), l - 2 * xp.minimum(j, l - j))
        angle = pi * xp.astype(quarter, xp.float64) / (2 * l)
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


def pieces(l: int, batch: tuple[int, ...], n: int):
    """Ranges of nodes, so many that ENTRIES numbers have a place for each mode."""
    each = max(1, ENTRIES // max(1, prod(batch) * n))
    return (range(i, min(l, i + each)) for i in range(0, l, each))


def spectrum(w: Array, P: Array, Q: Array, B: Array, C: Array, dt: Array, l: int) -> Array:
    """K̂ = 2 C (diag D + s P Qᴴ)⁻¹ B."""
    if P.shape[-1] in small_rank.RANKS:
        return small_rank.spectrum(w, P, Q, B, C, dt, l)
    xp, batch = namespace(w), batch_of((w, P, Q, B, C, dt), (1, 2, 2, 1, 1, 0))
    at_infinity = (dt / 2 * xp.sum(B * C, axis=-1))[..., None]
    found = []
    for nodes in pieces(l, batch, w.shape[-1]):
        circle = Circle(l, nodes, w)
        X = Resolved(circle.denominators(w, dt), P, conj(Q), B).X
        K = circle.turn * applied(X, C + 0j)
        found.append(
            xp.broadcast_to(xp.where(circle.infinite, at_infinity, K), (*batch, len(nodes)))
        )
    return xp.concat(found, axis=-1)


def gradients(dk: Array, w: Array, P: Array, Q: Array, B: Array, C: Array, dt: Array):
    """dw, dP, dQ, dB, dC and ddt of the aliased kernel, not yet summed over broadcast axes."""
    l = dk.shape[-1]
    if l == 0:
        dk, l = namespace(dk).zeros((*dk.shape[:-1], 1), dtype=dk.dtype), 1
    d = namespace(dk).fft.fft(dk + 0j)
    if P.shape[-1] in small_rank.RANKS:
        return small_rank.gradients(d, w, P, Q, B, C, dt)
    d = conj(2 * d / l)
    parts = [
        _gradients(d[..., nodes.start : nodes.stop], Circle(l, nodes, w), w, P, Q, B, C, dt)
        for nodes in pieces(l, dk.shape[:-1], w.shape[-1])
    ]
    return tuple(sum(own[1:], start=own[0]) for own in zip(*parts, strict=True))


def _gradients(d: Array, circle: Circle, w, P, Q, B, C, dt):
    """What some of the nodes add to the gradients; d is that of ½K̂*, conjugated."""
    xp, T = namespace(d), circle.denominators(w, dt)
    X = Resolved(T, P, conj(Q), B)
    Y = Resolved(T, conj(Q), P, C)
    turned = (d * circle.turn / 2)[..., None]
    products = X.X * Y.X
    dw = xp.sum(turned * products, axis=-2)
    dC, dB = xp.sum(turned * X.X, axis=-2), xp.sum(turned * Y.X, axis=-2)
    dP = -(xp.matrix_transpose(turned * Y.X) @ X.c)
    dQ = -(xp.matrix_transpose(turned * X.X) @ Y.c)
    slope = 1j * circle.tangent * turned[..., 0]
    ddt = 2 * xp.sum(slope * xp.sum(products, axis=-1), axis=-1) / dt / dt  # dt² may underflow
    last = xp.sum(xp.where(circle.infinite, d, 0.0), axis=-1)  # at z = −1, X = dt/4 B
    h = (last * dt / 4)[..., None]
    dC, dB = dC + h * B, dB + h * C
    ddt = ddt + last / 4 * xp.sum(B * C + 0j, axis=-1)
    return conj(dw), conj(dP), dQ, conj(dB), conj(dC), conj(ddt)
