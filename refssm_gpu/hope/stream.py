"""CuPy mirrors of refssm.hope.stream: a pipeline of one warp per row, no signal between stages.

One kernel runs the cascade; one computes the gradients of h and dt from its signals. The backward
pass is the cascade in reverse time. A single step is a stream of length 1.
"""

import numpy as np

from refssm.hope import HOPE_STEP, HOPE_STREAM, HOPE_STREAM_STATEFUL
from refssm_gpu._launching.arrays import (
    blocks,
    common,
    empty,
    in_type_of,
    namespace,
    real_type,
    unbroadcast_each,
)
from refssm_gpu._launching.batch import batch, in_every_row
from refssm_gpu._launching.checked import mirror
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances, record

WARP, ROWS = 32, 4  # lanes; rows of a block
U = 2  # the place of the signal among the arguments in the mask
STAGES = (1, 2, 4, 8)  # of a lane: more than 256 stages are several launches
KINDS = instances(FIELDS, STAGES)
# cascade_sizes in hope_stream.cuh
SIZES = record("l", "n", "rows", "inner", "first", mask=np.uint32)
_STREAM = Kernel("hope/hope_stream.cuh", "hope_stream", KINDS, 128, registers=168, bound="latency")
_BACK = Kernel(
    "hope/hope_stream.cuh", "hope_stream_back", KINDS, 128, registers=184, bound="latency"
)


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
            yield (self.kind.name, stages), np.array([fields], SIZES)
            mask |= in_every_row(U)


def streamed(h, dt, u, x0=None):
    """y_k = Σ_j h_j s_{j+1} and the last states."""
    c = _Cascade(h, dt, u, x0, h.shape[-1])
    x, y, signal = c.made(c.n), None, c.u
    for instance, sizes in c.launches():
        sums, y, beyond = y, c.made(c.l), c.made(c.l)
        _STREAM(instance, c.grid, c.h, c.rho, c.c, signal, c.x0, sums, y, x, beyond, sizes)
        signal = beyond
    return c.rows.unfolded(y, (c.l,)), c.rows.unfolded(x, (c.n,))


def gathered(dy, h, dt, u, x0=None):
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
        _BACK(
            instance, c.grid, dy, c.h, c.rho, c.c, signal, earlier, c.x0, dh, slope, x, *beyond,
            sizes,
        )  # fmt: skip
        signals = beyond
    unfolded = c.rows.unfolded
    return unfolded(dh, (n,)), unfolded(slope, ()), unfolded(x, (n + 1,))


def _pulled_back(dy, h, dt, u, x0=None):
    """Like refssm.hope.stream._pulled_back."""
    dh, slope, x = gathered(dy, h, dt, u, x0)
    du, X = streamed(h.conj(), dt, dy[..., ::-1])
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
    return streamed(h, dt, u)[0]


@mirror(HOPE_STREAM)
def hope_stream_vjp(dy, h, dt, u):
    dh, slope, du, *_ = _pulled_back(dy, h, dt, u)
    return unbroadcast_each((dh, slope / (2 * dt), du), (h, dt, u))


@mirror(HOPE_STREAM_STATEFUL)
def hope_stream_stateful(h, dt, u, x0):
    y, x = streamed(h, dt, u, x0)
    return y, in_type_of(x, dt, u, x0)


@mirror(HOPE_STREAM_STATEFUL)
def hope_stream_stateful_vjp(dy, dx, h, dt, u, x0):
    return _stateful_vjp(dy, dx, h, dt, u, x0)


def _stateful_vjp(dy, dx, h, dt, u, x0):
    xp, n = namespace(u), h.shape[-1]
    dh, slope, du, X, x = _pulled_back(dy, h, dt, u, x0)
    last = (xp.arange(n) == n - 1).astype(dt.dtype)
    free, Z = streamed(last, dt, xp.zeros_like(dy), dx[..., ::-1])
    dx0 = _hankel_product(h.conj(), X) + Z[..., ::-1]
    slope = slope + (dx.conj() * _turning(x)[..., :n]).sum(-1)
    slope = slope - (dx0.conj() * _turning(x0)).sum(-1)
    gradients = dh, slope / (2 * dt), du + free[..., ::-1], dx0
    return unbroadcast_each(gradients, (h, dt, u, x0))


@mirror(HOPE_STEP)
def hope_step(h, dt, u, x):
    """A stream of length 1."""
    y, last = streamed(h, dt, u[..., None], x)
    return y[..., 0], in_type_of(last, dt, u, x)


@mirror(HOPE_STEP)
def hope_step_vjp(dy, dx_next, h, dt, u, x):
    pulled = _stateful_vjp(dy[..., None], dx_next, h, dt, u[..., None], x)
    dh, ddt, du, dx = pulled
    return dh, ddt, du[..., 0], dx
