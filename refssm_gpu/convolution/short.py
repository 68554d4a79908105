"""CuPy mirrors of refssm.convolution.short, and of the direct sum: as many taps as inputs.

One launch for the outputs, one for all gradients; the parts of a tap's gradient are added after.
"""

import numpy as np

from refssm.convolution import (
    CAUSAL_CONVOLUTION_DIRECT,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm_gpu._launching.arrays import (
    HALVES,
    accumulated,
    blocks,
    common,
    empty,
    namespace,
    unbroadcast_each,
)
from refssm_gpu._launching.batch import batch
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances, record

TILE = 1024  # outputs of a block
KINDS = instances((*FIELDS, *HALVES))
# convolution_sizes in short_convolution.cuh
SIZES = record("l", "taps", "past", "inner", mask=np.uint32)
_FORWARD = Kernel(
    "convolution/short_convolution.cuh",
    "short_convolution",
    KINDS,
    128,
    registers=128,
    bound="memory",
)
_BACK = Kernel(
    "convolution/short_convolution.cuh",
    "short_convolution_back",
    KINDS,
    128,
    registers=128,
    bound="memory",
)


def _prepared(u, k, s0, *beside):
    """Arguments of one type and their batch, and the sizes for the kernel."""
    kind = common(u, k, s0, *beside)
    rows = batch((u, k, s0), (1, 1, 1), (kind, kind, kind))
    past = 0 if s0 is None else s0.shape[-1]
    sizes = np.array([(u.shape[-1], k.shape[-1], past, rows.inner, rows.mask)], SIZES)
    return kind, rows, sizes


def _convolved(u, k, s0=None):
    """y_i = Σ_j k_j u_{i−j}, with the inputs before the first in s0, the newest at its end."""
    kind, rows, sizes = _prepared(u, k, s0)
    y = empty((rows.rows, u.shape[-1]), kind, u)
    grid = (rows.rows * blocks(u.shape[-1], TILE),)
    _FORWARD((kind.name,), grid, *rows.arrays, y, sizes)
    return rows.unfolded(y, u.shape[-1:])


def _pulled_back(dy, u, k, s0=None, ds=None):
    """Gradients of the outputs, and of the last inputs if `ds` is given: (du, dk, ds0)."""
    kind, rows, sizes = _prepared(u, k, s0, dy, ds)
    (l,), (t,), past = u.shape[-1:], k.shape[-1:], int(sizes["past"][0])
    tiles = blocks(l + past, TILE)
    du, ds0 = (empty((rows.rows, size), kind, u) for size in (l, past))
    dk = namespace(u).zeros((rows.rows, tiles, t), dtype=accumulated(kind))
    dy, grid = rows.every_row(dy, 1, kind), (rows.rows * tiles,)
    _BACK((kind.name,), grid, dy, *rows.arrays, du, dk, ds0, sizes)
    du, ds0 = rows.unfolded(du, (l,)), rows.unfolded(ds0, (past,))
    dk = rows.unfolded(dk.sum(1).astype(kind), (t,))
    if ds is not None:
        kept = min(l, t)  # this many of the last inputs are in u, the others in s0
        du[..., l - kept :] += ds[..., t - kept :]
        ds0[..., kept:] += ds[..., : t - kept]
    return du, dk, ds0


def _newest(u, k, s0):
    """The last t inputs: a copy with all batch axes."""
    xp, l, t = namespace(u), u.shape[-1], k.shape[-1]
    shape = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], s0.shape[:-1])
    pieces = s0[..., min(l, t) :], u[..., max(0, l - t) :]
    return xp.concat([xp.broadcast_to(c, (*shape, c.shape[-1])) for c in pieces], axis=-1)


@mirror(SHORT_CONVOLUTION, WITH_HALVES)
def short_convolution(u, k):
    """Halves are computed in single precision."""
    return _convolved(u, k)


@mirror(SHORT_CONVOLUTION, WITH_HALVES)
def short_convolution_vjp(dy, u, k):
    return unbroadcast_each(_pulled_back(dy, u, k)[:2], (u, k))


@mirror(SHORT_CONVOLUTION_STATEFUL, WITH_HALVES)
def short_convolution_stateful(u, k, s0):
    return _convolved(u, k, s0), _newest(u, k, s0)


@mirror(SHORT_CONVOLUTION_STATEFUL, WITH_HALVES)
def short_convolution_stateful_vjp(dy, ds, u, k, s0):
    return unbroadcast_each(_pulled_back(dy, u, k, s0, ds), (u, k, s0))


@mirror(SHORT_CONVOLUTION_STEP, WITH_HALVES)
def short_convolution_step(u, k, s):
    """A convolution of length 1."""
    u = u[..., None]
    return _convolved(u, k, s)[..., 0], _newest(u, k, s)


@mirror(SHORT_CONVOLUTION_STEP, WITH_HALVES)
def short_convolution_step_vjp(dy, ds_next, u, k, s):
    du, dk, ds = _pulled_back(dy[..., None], u[..., None], k, s, ds_next)
    return unbroadcast_each((du[..., 0], dk, ds), (u, k, s))


@mirror(CAUSAL_CONVOLUTION_DIRECT, WITH_HALVES)
def causal_convolution_direct(u, k):
    """L² / 2 products a row."""
    return _convolved(u, k)


@mirror(CAUSAL_CONVOLUTION_DIRECT, WITH_HALVES)
def causal_convolution_direct_vjp(dy, u, k):
    return unbroadcast_each(_pulled_back(dy, u, k)[:2], (u, k))
