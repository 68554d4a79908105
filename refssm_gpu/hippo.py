"""Mirrors of refssm.hippo: rescaled memories, states and reconstructions.

The matrices themselves have none: they are made once, on the CPU.
"""

from math import gamma, pi, prod, sqrt

from refssm.hippo import (
    HIPPO_PROJECT,
    HIPPO_PROJECT_LEGS,
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    HIPPO_RESCALE,
    HIPPO_SCALED_BACKWARD,
    HIPPO_SCALED_BILINEAR,
    HIPPO_SCALED_EULER,
)
from refssm_gpu import discretize
from refssm_gpu._algebra.exponential import exponential_held
from refssm_gpu._algebra.parts import (
    adjoint,
    along,
    applied,
    batch_of,
    conj,
    counting,
    identity,
    solve,
)
from refssm_gpu._launching.arrays import Array, folded, namespace, real_type, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.discretize import scaled
from refssm_gpu.scan.dense import driven


@mirror(HIPPO_RESCALE)
def hippo_rescale(A, B, s):
    batch = batch_of((A, B, s), (2, 1, 1))
    A_scaled = s[..., :, None] * A / s[..., None, :]
    return along(A_scaled, batch, 2), along(s * B, batch, 1)


@mirror(HIPPO_RESCALE)
def hippo_rescale_vjp(dA_scaled, dB_scaled, A, B, s):
    xp, rows, columns = namespace(A), conj(s)[..., :, None], conj(s)[..., None, :]
    grown = dA_scaled * conj(A) / columns
    ds = xp.sum(grown, axis=-1) - xp.sum(grown * rows / columns, axis=-2) + dB_scaled * conj(B)
    dA, dB = dA_scaled * rows / columns, dB_scaled * conj(s)
    return unbroadcast(dA, A), unbroadcast(dB, B), unbroadcast(ds, s)


# Memories: states by log₂ l rounds of matrix products, no loop over time


_zoh_vjp = discretize.discretize_zoh_vjp.__wrapped__  # without its checks


@mirror(HIPPO_PROJECT)
def hippo_project(A, B, u, dt):
    A_bar, B_bar = _held(A, B, dt)
    x = driven(A_bar, B_bar[..., None, :] * u[..., :, None])
    return along(x, batch_of((A, B, u, dt), (2, 1, 1, 0)), 2)


def _held(A: Array, B: Array, dt: Array) -> tuple[Array, Array]:
    """e^{dt A} and dt φ₁(dt A) B."""
    A_bar, B_bar = exponential_held(scaled(A, dt), (dt[..., None] * B)[..., None])
    return A_bar, B_bar[..., 0]


@mirror(HIPPO_PROJECT)
def hippo_project_vjp(dx, A, B, u, dt):
    """Gradients are summed before the exponential's."""
    xp, (A_bar, B_bar) = namespace(dx), _held(A, B, dt)
    x = driven(A_bar, B_bar[..., None, :] * u[..., :, None])
    g = xp.flip(driven(adjoint(A_bar), xp.flip(dx, axis=-2)), axis=-2)
    over_time = xp.matrix_transpose(g)  # (…, n, l)
    dA_bar = over_time[..., 1:] @ conj(x)[..., :-1, :]
    dB_bar = over_time @ conj(u)[..., None]
    du = (g @ conj(B_bar)[..., None])[..., 0]
    batch = batch_of((A, B, dt), (2, 1, 0))
    dA_bar, dB_bar = (folded(d, (*batch, *d.shape[-2:])) for d in (dA_bar, dB_bar))
    dA, dB, ddt = _zoh_vjp(dA_bar, dB_bar, A, B[..., None], dt)
    return dA, dB[..., 0], unbroadcast(du, u), ddt


@mirror(HIPPO_PROJECT_LEGS)
def hippo_project_legs(u, *, n):
    """States of halves joined, see `halves`."""
    xp, (*batch, l) = namespace(u), u.shape
    if not l * n:
        return xp.zeros((*u.shape, n), dtype=u.dtype)
    pieces = xp.matrix_transpose(xp.reshape(u, (prod(batch), l)))[:, None, :]
    c = _Halves(u, n).states(pieces)  # (l, n, members of the batch)
    return xp.reshape(xp.permute_dims(c, (2, 0, 1)), (*u.shape, n))


@mirror(HIPPO_PROJECT_LEGS)
def hippo_project_legs_vjp(dc, u, *, n):
    """The joining, backwards."""
    xp, (*batch, l) = namespace(u), u.shape
    if not l * n:
        return (xp.zeros_like(u),)
    members = xp.reshape(dc, (prod(batch), l, n))
    du = _Halves(u, n).back(xp.permute_dims(members, (1, 2, 0)), 1)[:, 0, :]
    return (unbroadcast(xp.reshape(xp.matrix_transpose(du), u.shape), u),)


# The memory of scaled Legendre polynomials from the memories of its parts
#
#     c([0, T]) = S(−1, T−1) c([0, T−1]) + S(T−1, 1) c([T−1, T])
#
#     S_ik(p, q) = q/2T ∫ φ_i((p + qξ)/T) φ_k(ξ) dξ over [−1, 1],   φ_i = √(2i+1) P_i
#
# A polynomial on an interval is one on each part of it, so n coefficients of two parts give exactly
# those of the whole. With T in blocks of 1, 2, 4, … steps the matrices are the same on every level:
# two neighbouring blocks are joined with T = 2, which halves the length, and the states at the
# other places follow with T = 3, 5, 7, …. O(l n²) operations and l n² numbers of tables for the
# whole batch, where the sum over all pieces has O(l² n) operations. S is lower triangular.


class _Halves:
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


# Reconstructions: the basis at all delays, then one matrix product
#
# Delays that the whole batch shares make one table for all states.


def _sum(c: Array, p: Array) -> Array:
    """Σ_n c_n p_ln."""
    return c @ namespace(p).matrix_transpose(p) if p.ndim == 2 else applied(p, c)


def _gradients(dy: Array, c: Array, s: Array, p: Array, slopes: Array) -> tuple[Array, Array]:
    """dc_n = Σ_l p_ln* dy_l,  ds_l = Re dy_l (Σ_n c_n p'_ln)*."""
    dc = dy @ p if p.ndim == 2 else (dy[..., None, :] @ p)[..., 0, :]
    return unbroadcast(dc, c), unbroadcast(dy * conj(_sum(c, slopes)), s)


def _roots(c: Array) -> Array:
    """√(2i + 1), the factor that makes Legendre polynomials orthonormal."""
    return namespace(c).sqrt(2 * counting(c.shape[-1], c) + 1)


@mirror(HIPPO_RECONSTRUCT_LEGS)
def hippo_reconstruct_legs(c, s):
    return _sum(_roots(c) * c, _legendre(1 - 2 * s, c.shape[-1]))


@mirror(HIPPO_RECONSTRUCT_LEGS)
def hippo_reconstruct_legs_vjp(dy, c, s):
    P = _legendre(1 - 2 * s, c.shape[-1])
    return _gradients(dy, c, s, _roots(c) * P, -2 * (_roots(c) * _legendre_slopes(P)))


@mirror(HIPPO_RECONSTRUCT_LEGT)
def hippo_reconstruct_legt(c, s, *, window=1.0):
    return _sum(_roots(c) * c, _legendre(1 - 2 * (s / window), c.shape[-1]))


@mirror(HIPPO_RECONSTRUCT_LEGT)
def hippo_reconstruct_legt_vjp(dy, c, s, *, window=1.0):
    P = _legendre(1 - 2 * (s / window), c.shape[-1])
    slopes = _roots(c) * _legendre_slopes(P)
    return _gradients(dy, c, s, _roots(c) * P, slopes * -2 / window)


@mirror(HIPPO_RECONSTRUCT_LMU)
def hippo_reconstruct_lmu(c, s, *, window=1.0):
    return _sum(c, _legendre(2 * (s / window) - 1, c.shape[-1]))


@mirror(HIPPO_RECONSTRUCT_LMU)
def hippo_reconstruct_lmu_vjp(dy, c, s, *, window=1.0):
    P = _legendre(2 * (s / window) - 1, c.shape[-1])
    return _gradients(dy, c, s, P, _legendre_slopes(P) * 2 / window)


@mirror(HIPPO_RECONSTRUCT_LAGT)
def hippo_reconstruct_lagt(c, s, *, alpha=0.0, beta=1.0):
    return _sum(c, _laguerre_functions(c, s, alpha, beta)[0])


@mirror(HIPPO_RECONSTRUCT_LAGT)
def hippo_reconstruct_lagt_vjp(dy, c, s, *, alpha=0.0, beta=1.0):
    return _gradients(dy, c, s, *_laguerre_functions(c, s, alpha, beta))


def _laguerre_functions(c: Array, s: Array, alpha: float, beta: float) -> tuple[Array, Array]:
    """The basis and its derivative with respect to s."""
    xp, n = namespace(c, s), c.shape[-1]
    size = xp.asarray(_laguerre_sizes(n, alpha, beta), dtype=real_type(c.dtype, xp))
    L = _laguerre(s, n, alpha)
    if alpha == 0 and beta == 1:
        return size * L, size * _laguerre_slopes(L)
    weight = xp.exp((beta - 1) / 2 * s)
    rate = xp.full_like(s, (beta - 1) / 2)  # derivative of log weight
    if alpha:
        weight, rate = weight * xp.exp(alpha * xp.log(s)), rate + alpha / s
    p = weight[..., None] * (size * L)
    return p, rate[..., None] * p + weight[..., None] * (size * _laguerre_slopes(L))


def _laguerre_sizes(n: int, alpha: float, beta: float) -> list[float]:
    """√(Γ(1−α) β^(α−1) i!/Γ(i+α+1)), i = 0 … n−1: constants, so the host computes them."""
    square = gamma(1 - alpha) / gamma(1 + alpha) * beta ** (alpha - 1)
    sizes = []
    for i in range(n):
        sizes.append(sqrt(square))
        square /= 1 + alpha / (i + 1)
    return sizes


@mirror(HIPPO_RECONSTRUCT_FOURIER)
def hippo_reconstruct_fourier(c, s, *, window=1.0):
    return _sum(c, _waves(c, s, window)[0])


@mirror(HIPPO_RECONSTRUCT_FOURIER)
def hippo_reconstruct_fourier_vjp(dy, c, s, *, window=1.0):
    return _gradients(dy, c, s, *_waves(c, s, window))


def _waves(c: Array, s: Array, window: float) -> tuple[Array, Array]:
    """1, 0, √2 cos θ, √2 sin θ, √2 cos 2θ, … and the derivatives with respect to s."""
    xp, i = namespace(c, s), counting(c.shape[-1], c)
    size = xp.sqrt(xp.where(i > 1, xp.full_like(i, 2.0), 1.0))
    rate = 2 * pi * (i // 2)
    phase = (s / window)[..., None] * rate
    cosine, sine = size * xp.cos(phase), size * xp.sin(phase)
    even = i % 2 == 0
    return xp.where(even, cosine, sine), rate * xp.where(even, -sine, cosine) / window


# Orthogonal polynomials by three-term recurrences
#
#     (i + 1) P_{i+1}(x) = (2i + 1) x P_i(x) − i P_{i−1}(x)
#     (i + 1) L_{i+1}(s) = (2i + 1 + α − s) L_i(s) − (i + α) L_{i−1}(s)
#
# The loop is over degrees, one pass over the points for each; the points, which are many, are the
# arrays.


def _legendre(x: Array, n: int) -> Array:
    """P_0 … P_{n−1} at x, along a new last axis: (…, n)."""
    steps = range(n - 1)
    return _recurrence(x, n, [((2 * i + 1) / (i + 1), 0.0, i / (i + 1)) for i in steps])


def _laguerre(s: Array, n: int, alpha: float) -> Array:
    """L_0^(α) … L_{n−1}^(α) at s, along a new last axis: (…, n)."""
    rows = [(-1 / (i + 1), (2 * i + 1 + alpha) / (i + 1), (i + alpha) / (i + 1)) for i in range(n)]
    return _recurrence(s, n, rows)


def _recurrence(x: Array, n: int, rows) -> Array:
    """p_0 = 1, p_{i+1} = (a_i x + b_i) p_i − c_i p_{i−1}, i = 0 … n−2."""
    xp = namespace(x)
    if n == 0:
        return xp.zeros((*x.shape, 0), dtype=x.dtype)
    # p_0 = 1 for every x, but NaN in x reaches every sum of the p_i
    p = [xp.where(xp.isnan(x), x, 1.0)]
    for i, (a, b, c) in enumerate(rows[: n - 1]):
        grown = ((a * x + b) if b else a * x) * p[i]
        p.append(grown - c * p[i - 1] if i else grown)
    return xp.stack(p, axis=-1)


def _legendre_slopes(P: Array) -> Array:
    """P_i' = Σ (2k + 1) P_k over k = i − 1, i − 3, …"""
    xp, i = namespace(P), counting(P.shape[-1], P)
    k = i[:, None]
    below = (i > k) & ((i - k) % 2 == 1)
    return P @ xp.where(below, 2 * k + 1, 0.0)


def _laguerre_slopes(L: Array) -> Array:
    """L_i' = −Σ_{k<i} L_k, for any α."""
    xp, i = namespace(L), counting(L.shape[-1], L)
    return L @ xp.where(i > i[:, None], xp.full_like(i, -1.0), 0.0)


# Scaled memories: a step is a product, or one solve for all signals that share A


@mirror(HIPPO_SCALED_EULER)
def hippo_scaled_euler(A, B, x, u, time, *, p):
    return _systems(A, B, x, u, time, p, 0)[1]


@mirror(HIPPO_SCALED_EULER)
def hippo_scaled_euler_vjp(dx_next, A, B, x, u, time, *, p):
    return _scaled_back(dx_next, x, A, B, x, u, time, p, 0)


@mirror(HIPPO_SCALED_BILINEAR)
def hippo_scaled_bilinear(A, B, x, u, time, *, p):
    """Infinity or NaN where 2 p t is an eigenvalue of A."""
    return solve(*_systems(A, B, x, u, time, p, 0.5))


@mirror(HIPPO_SCALED_BILINEAR)
def hippo_scaled_bilinear_vjp(dx_next, A, B, x, u, time, *, p):
    return _solved_back(dx_next, A, B, x, u, time, p, 0.5)


@mirror(HIPPO_SCALED_BACKWARD)
def hippo_scaled_backward(A, B, x, u, time, *, p):
    """Infinity or NaN where p t is an eigenvalue of A."""
    return solve(*_systems(A, B, x, u, time, p, 1))


@mirror(HIPPO_SCALED_BACKWARD)
def hippo_scaled_backward_vjp(dx_next, A, B, x, u, time, *, p):
    return _solved_back(dx_next, A, B, x, u, time, p, 1)


def _systems(A: Array, B: Array, x: Array, u: Array, time: Array, p: float, alpha: float):
    """M = I − α h A, and M x_k = x + (1 − α) h A x + h B uᵀ, h = 1/(p t)."""
    h = 1 / (p * time)
    F, driven = scaled(A, h), (h[..., None] * B)[..., None] * u[..., None, :]
    through = (1 - alpha) * (F @ x) if alpha < 1 else 0 * x
    return identity(A) - alpha * F, x + through + driven


def _solved_back(dx_next, A, B, x, u, time, p, alpha):
    M, side = _systems(A, B, x, u, time, p, alpha)
    return _scaled_back(solve(adjoint(M), dx_next), solve(M, side), A, B, x, u, time, p, alpha)


def _scaled_back(S, x_next, A, B, x, u, time, p, alpha):
    """The gradients from S = M⁻ᴴ dx_k."""
    xp, h = namespace(x), 1 / (p * time)
    mean = (1 - alpha) * x + alpha * x_next if alpha < 1 else x_next
    dF, dH = S @ adjoint(mean), xp.sum(S * conj(u)[..., None, :], axis=-1)
    dx = S + (1 - alpha) * (adjoint(scaled(A, h)) @ S) if alpha < 1 else S
    du = xp.sum(conj(h[..., None] * B)[..., None] * S, axis=-2)
    dh = xp.sum(conj(A) * dF, axis=(-2, -1)) + xp.sum(conj(B) * dH, axis=-1)
    grads = (scaled(dF, h), h[..., None] * dH, dx, du, -h / time * dh)
    return tuple(unbroadcast(g, a) for g, a in zip(grads, (A, B, x, u, time), strict=True))
