"""CuPy mirrors of refssm.hope: sums at the nodes, and streams through a cascade of all-passes.

The transfer function is computed at half of the nodes. The aliased kernel is that and one
transform; the other kernel is what the stream answers to an impulse.
"""

from dataclasses import replace

import numpy as np

from refssm.hope import (
    HOPE_KERNEL,
    HOPE_KERNEL_ALIASED,
    HOPE_RECENCY_EXPONENTIAL,
    HOPE_RECENCY_POWER,
    HOPE_STEP,
    HOPE_STREAM,
    HOPE_STREAM_STATEFUL,
    HOPE_TRANSFER,
)
from refssm_gpu._algebra.parts import conj, counting
from refssm_gpu._algebra.transforms import real_signal
from refssm_gpu._launching.arrays import (
    Array,
    blocks,
    common,
    empty,
    in_type_of,
    is_complex,
    namespace,
    real_type,
    unbroadcast,
    unbroadcast_and_round,
    unbroadcast_each,
    widened,
)
from refssm_gpu._launching.batch import batch, in_every_row
from refssm_gpu._launching.checked import mirror
from refssm_gpu._launching.kernel import COMPLEX, FIELDS, Kernel, instances, record, target


@mirror(HOPE_TRANSFER)
def hope_transfer(h, dt, *, l):
    """Computed in double precision and rounded once."""
    return _at_nodes(h, dt, l, np.result_type(common(h, dt), np.complex64))


@mirror(HOPE_TRANSFER)
def hope_transfer_vjp(dk, h, dt, *, l):
    del l  # dk has it
    return unbroadcast_and_round(_at_nodes_back(dk, h, dt), (h, dt))


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased(h, dt, *, l):
    """In double precision, of a real h half of the nodes."""
    xp, kind = namespace(h), common(h, dt)
    if l == 0:
        return xp.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), 0), dtype=kind)
    if kind.kind == "c":
        return xp.fft.ifft(_at_nodes(h, dt, l, np.complex128)).astype(kind, copy=False)
    G = _at_nodes(h, dt, l, np.complex128, out=_half(l))
    return real_signal(G, l).astype(kind, copy=False)


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased_vjp(dk, h, dt, *, l):
    xp, wide = namespace(dk), dk.astype(np.complex128)
    gradients = _at_nodes_back(xp.fft.fft(wide) / l if l else wide, h, dt)
    return unbroadcast_and_round(gradients, (h, dt))


# Σ_i h_i p_j^{i+1} at the warped nodes, and its adjoint: one launch each, for any n and l
#
# All in double precision. cufinufft is not needed: half of the nodes and 21/16 multiply-adds for a
# parameter are less than what it saves, up to many thousands of parameters.


THREADS = 128
NODES = (1, 2)  # of a thread
GROUP = 16  # parameters
SPAN, SHORT = 4096, 512  # nodes of a block of the adjoint: most, and least
RESIDENT = 2  # blocks for each multiprocessor, below which blocks are made smaller
WIDE = ("float64", "complex128")

_TRANSFER = Kernel(
    "hope/hope_transfer.cuh",
    "hope_transfer",
    instances(WIDE, COMPLEX, NODES),
    THREADS,
    registers=168,
    double_inside=True,
    bound="flops",
)
_ADJOINT = replace(_TRANSFER, name="hope_adjoint", instances=instances(WIDE, COMPLEX))
# hope_sizes in hope_transfer.cuh
_NODE_SIZES = record("l", "n", "nodes", "out", "pieces", "span", "inner", "warped", mask=np.uint32)


def _half(l):
    """The number of nodes up to l/2; the others are conjugates."""
    return min(l, l // 2 + 1)


def _at_nodes(h, dt, l, kind, out=None, warped=False):
    """Σ_i h_i p_j^{i+1} at the first `out` nodes, l or half of them; of this type.

    `warped`: its derivative by dt, i (sin θ'_j/dt) Σ_i (i+1) h_i p_j^{i+1}.
    """
    h, dt = widened(h, dt)
    rows, n, nodes, kind = batch((h, dt), (1, 0)), h.shape[-1], _half(l), np.dtype(kind)
    out = l if out is None else out
    plenty = rows.rows * blocks(nodes, 2 * THREADS) >= RESIDENT * target().multiprocessors
    each = NODES[plenty]
    pieces = blocks(nodes, each * THREADS)
    fields = (l, n, nodes, out, max(1, pieces), 0, rows.inner, warped, rows.mask)
    G = empty((rows.rows, out), kind, h)
    instance, size = (h.dtype.name, kind.name, each), np.array([fields], _NODE_SIZES)
    _TRANSFER(instance, (rows.rows * pieces,), *rows.arrays, G, size)
    return rows.unfolded(G, (out,))


def _at_nodes_back(dk, h, dt):
    """dh_i = Σ_j dk_j p_j*^{i+1}, its real part for real h, and ddt, not summed over the batch."""
    xp, l, n = namespace(h), dk.shape[-1], h.shape[-1]
    kind = np.result_type(dk.dtype, np.complex64)
    wide, step = widened(h, dt)
    rows = batch((dk, step), (1, 0), (kind, None))
    nodes, across = _half(l), GROUP if is_complex(h) else 2 * GROUP
    slices = blocks(n, across)
    plenty = rows.rows * slices * blocks(nodes, SPAN) >= RESIDENT * target().multiprocessors
    span = SPAN if plenty else SHORT
    pieces = blocks(nodes, span)
    fields = (l, n, nodes, l, max(1, pieces), span, rows.inner, 0, rows.mask)
    parts = empty((rows.rows, pieces, n), wide.dtype, h)
    size = np.array([fields], _NODE_SIZES)
    grid = (rows.rows * pieces * slices,)
    _ADJOINT((wide.dtype.name, kind.name), grid, *rows.arrays, parts, size)
    dh = rows.unfolded(xp.sum(parts, axis=1), (n,))
    slope = _at_nodes(h, dt, l, np.complex128, warped=True)
    return dh, xp.sum((dk * slope.conj()).real, axis=-1)


# Streams: a pipeline of one warp per row, no signal between stages
#
# One kernel runs the cascade; one computes the gradients of h and dt from its signals. The backward
# pass is the cascade in reverse time. A single step is a stream of length 1.


WARP, ROWS = 32, 4  # lanes; rows of a block
U = 2  # the place of the signal among the arguments in the mask
STAGES = (1, 2, 4, 8)  # of a lane: more than 256 stages are several launches
KINDS = instances(FIELDS, STAGES)
# cascade_sizes in hope_stream.cuh
_STREAM_SIZES = record("l", "n", "rows", "inner", "first", mask=np.uint32)
_STREAM = Kernel("hope/hope_stream.cuh", "hope_stream", KINDS, 128, registers=168, bound="latency")
_STREAM_BACK = replace(_STREAM, name="hope_stream_back", registers=184)


def _rotation(dt):
    """ρ and c."""
    return (1 - dt) / (1 + dt), 2 * namespace(dt).sqrt(dt) / (1 + dt)


class _Cascade:
    """Arguments of one type, their batch, and the launches that the stages need."""

    def __init__(self, h, dt, u, x0, n, *beside):
        kind = common(h, dt, u, x0, *beside)
        self.kind, self.n, self.l = kind, n, u.shape[-1]
        self.rows, other = (  # both batches alike, for ρ and c have the same axes
            batch((h, x, u, x0), (1, 0, 1, 1), (kind, dt.dtype, kind, kind)) for x in _rotation(dt)
        )
        self.h, self.rho, self.u, self.x0 = self.rows.arrays
        self.c = other.arrays[1]
        self.grid = (blocks(self.rows.rows, ROWS),)

    def made(self, *core):
        """New memory for each row."""
        return empty((self.rows.rows, *core), self.kind, self.u)

    def launches(self):
        """Instance and sizes of each launch; after the first, every row has its own signal."""
        wanted = blocks(max(self.n, 1), WARP)
        stages = next((s for s in STAGES if s >= wanted), STAGES[-1])
        mask = int(self.rows.mask)
        for first in range(0, max(self.n, 1), stages * WARP):
            fields = (self.l, self.n, self.rows.rows, self.rows.inner, first, mask)
            yield (self.kind.name, stages), np.array([fields], _STREAM_SIZES)
            mask |= in_every_row(U)


def _streamed(h, dt, u, x0=None):
    """y_k = Σ_j h_j s_{j+1} and the last states."""
    c = _Cascade(h, dt, u, x0, h.shape[-1])
    x, y, signal = c.made(c.n), None, c.u
    for instance, sizes in c.launches():
        sums, y, beyond = y, c.made(c.l), c.made(c.l)
        _STREAM(instance, c.grid, c.h, c.rho, c.c, signal, c.x0, sums, y, x, beyond, sizes)
        signal = beyond
    return c.rows.unfolded(y, (c.l,)), c.rows.unfolded(x, (c.n,))


def _gathered(dy, h, dt, u, x0=None):
    """dh_j = Σ_k s_{j+1}* dy, Σ_k dy* Σ_j (j + 1) h_j (s_j − s_{j+2}), the last n + 1 states."""
    xp, n = namespace(u), h.shape[-1]
    if x0 is not None:
        x0 = xp.concat([x0, xp.zeros_like(x0[..., :1])], axis=-1)
    c = _Cascade(h, dt, u, x0, n + 1, dy)
    dy = c.rows.every_row(dy, 1, c.kind)
    dh, x = c.made(n), c.made(n + 1)
    slope = xp.zeros((c.rows.rows,), dtype=c.kind)
    signals = c.u, None
    for instance, sizes in c.launches():
        beyond = c.made(c.l), c.made(c.l)
        signal, earlier = signals
        _STREAM_BACK(
            instance, c.grid, dy, c.h, c.rho, c.c, signal, earlier, c.x0, dh, slope, x, *beyond,
            sizes,
        )  # fmt: skip
        signals = beyond
    unfolded = c.rows.unfolded
    return unfolded(dh, (n,)), unfolded(slope, ()), unfolded(x, (n + 1,))


def _pulled_back(dy, h, dt, u, x0=None):
    """Like refssm.hope.stream._pulled_back."""
    dh, slope, x = _gathered(dy, h, dt, u, x0)
    du, X = _streamed(h.conj(), dt, dy[..., ::-1])
    return dh, slope, du[..., ::-1], X, x


def _turning(x):
    """(T x)_j = j x_{j−1} − (j + 1) x_{j+1}, as in refssm.hope.allpass."""
    xp = namespace(x)
    j = xp.arange(x.shape[-1], dtype=real_type(x.dtype))
    nothing = xp.zeros_like(x[..., :1])
    lower = xp.concat([nothing, x[..., :-1]], axis=-1)
    upper = xp.concat([x[..., 1:], nothing], axis=-1)
    return j * lower - (j + 1) * upper


def _hankel_product(h, x):
    """y_i = Σ_j h_{i+j} x_j, h = 0 beyond its end."""
    xp, n = namespace(h), h.shape[-1]
    more = xp.concat([h, xp.zeros_like(h)], axis=-1)
    i = xp.arange(n)
    return (more[..., i[:, None] + i] @ x[..., None])[..., 0]


@mirror(HOPE_STREAM)
def hope_stream(h, dt, u):
    return _streamed(h, dt, u)[0]


@mirror(HOPE_STREAM)
def hope_stream_vjp(dy, h, dt, u):
    dh, slope, du, *_ = _pulled_back(dy, h, dt, u)
    return unbroadcast_each((dh, slope / (2 * dt), du), (h, dt, u))


@mirror(HOPE_STREAM_STATEFUL)
def hope_stream_stateful(h, dt, u, x0):
    y, x = _streamed(h, dt, u, x0)
    return y, in_type_of(x, dt, u, x0)


@mirror(HOPE_STREAM_STATEFUL)
def hope_stream_stateful_vjp(dy, dx, h, dt, u, x0):
    return _stateful_vjp(dy, dx, h, dt, u, x0)


def _stateful_vjp(dy, dx, h, dt, u, x0):
    xp, n = namespace(u), h.shape[-1]
    dh, slope, du, X, x = _pulled_back(dy, h, dt, u, x0)
    last = (xp.arange(n) == n - 1).astype(dt.dtype)
    free, Z = _streamed(last, dt, xp.zeros_like(dy), dx[..., ::-1])
    dx0 = _hankel_product(h.conj(), X) + Z[..., ::-1]
    slope = slope + (dx.conj() * _turning(x)[..., :n]).sum(-1)
    slope = slope - (dx0.conj() * _turning(x0)).sum(-1)
    gradients = dh, slope / (2 * dt), du + free[..., ::-1], dx0
    return unbroadcast_each(gradients, (h, dt, u, x0))


@mirror(HOPE_STEP)
def hope_step(h, dt, u, x):
    """A stream of length 1."""
    y, last = _streamed(h, dt, u[..., None], x)
    return y[..., 0], in_type_of(last, dt, u, x)


@mirror(HOPE_STEP)
def hope_step_vjp(dy, dx_next, h, dt, u, x):
    pulled = _stateful_vjp(dy[..., None], dx_next, h, dt, u[..., None], x)
    dh, ddt, du, dx = pulled
    return dh, ddt, du[..., 0], dx


# The kernel: what the stream answers to an impulse
#
# The response is infinitely long, so no transform of samples of its spectrum gives its first l
# steps. The pipeline of the stream takes n + l ticks, in double precision.


def _impulse(l, like):
    """1, 0, 0, …"""
    return (namespace(like).arange(l) == 0).astype(np.float64)


@mirror(HOPE_KERNEL)
def hope_kernel(h, dt, *, l):
    """Computed in double precision and rounded once."""
    wide, step = widened(h, dt)
    K, _ = _streamed(wide, step, _impulse(l, h))
    return K.astype(common(h, dt), copy=False)


@mirror(HOPE_KERNEL)
def hope_kernel_vjp(dk, h, dt, *, l):
    """The gradient of a stream, but for its input."""
    wide_dk, wide, step = widened(dk, h, dt)
    dh, slope, _ = _gathered(wide_dk, wide, step, _impulse(l, h))
    return unbroadcast_and_round((dh, slope / (2 * step)), (h, dt))


# Weights by recency


@mirror(HOPE_RECENCY_POWER)
def hope_recency_power(h, gamma):
    return h * _weights(gamma, _logarithms(h))


def _logarithms(h: Array) -> Array:
    """log(j + 1)."""
    return namespace(h).log1p(counting(h.shape[-1], h))


def _weights(parameter: Array, slope: Array) -> Array:
    """e^(parameter · slope_j)."""
    return namespace(slope).exp(parameter[..., None] * slope)


@mirror(HOPE_RECENCY_POWER)
def hope_recency_power_vjp(dy, h, gamma):
    return _recency_back(dy, h, gamma, _logarithms(h))


def _recency_back(dy: Array, h: Array, parameter: Array, slope: Array) -> tuple[Array, Array]:
    """Gradients of h e^(parameter · slope)."""
    weights = _weights(parameter, slope)
    d = namespace(dy).sum(conj(dy) * (h * weights) * slope, axis=-1)
    return unbroadcast(dy * weights, h), unbroadcast(d, parameter)


@mirror(HOPE_RECENCY_EXPONENTIAL)
def hope_recency_exponential(h, beta):
    return h * _weights(beta, -counting(h.shape[-1], h))


@mirror(HOPE_RECENCY_EXPONENTIAL)
def hope_recency_exponential_vjp(dy, h, beta):
    return _recency_back(dy, h, beta, -counting(h.shape[-1], h))
