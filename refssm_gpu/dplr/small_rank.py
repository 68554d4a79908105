"""DPLR systems of rank 1 and 2 at their nodes, by kernels; `nodes` has the formulas and all ranks.

The spectrum is one launch. Backwards one launch solves the small systems of all nodes, and another
one sums over the nodes of each mode. No array has both nodes and modes.
"""

from dataclasses import replace

import numpy as np

from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import Array, blocks, contiguous, empty, namespace
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.kernel import Kernel, instances, record, target

RANKS = (1, 2)
THREADS = 128  # of a block; nodes of a block that sums over modes
CHUNK, LONGEST = 64, 2048  # nodes in shared memory; of a block that sums over nodes
LANES = 32  # most modes of such a block
RESIDENT = 4  # blocks for each multiprocessor, below which blocks are made smaller
CORES = (1, 2, 2, 1, 1, 0)  # axes of w, P, Q, B, C and dt that are not batch

_SPECTRUM = Kernel(
    "dplr/dplr_nodes.cuh",
    "dplr_spectrum",
    instances(RANKS),
    THREADS,
    registers=128,
    double_inside=True,
    bound="flops",
)
_SOLUTIONS = replace(_SPECTRUM, name="dplr_solutions", registers=168)
_GRADIENTS = replace(_SOLUTIONS, source="dplr/dplr_gradients.cuh", name="dplr_gradients")

_SIZES = record("l", "n", "tiles", "inner", mask=np.uint32)
_GRADIENT_SIZES = record("l", "n", "span", "pieces", "across", "inner", mask=np.uint32)


def _rows(w: Array, P: Array, Q: Array, B: Array, C: Array, dt: Array) -> Batch:
    """The arguments, complex but for dt, and where each has its rows."""
    modes = (contiguous(x, np.complex128) for x in (w, P, Q, B, C))
    return batch((*modes, dt), CORES)


def _at_nodes(kernel: Kernel, rows: Batch, l: int, *arrays: Array) -> None:
    """Launch a thread for each node."""
    n, r = rows.arrays[1].shape[-2:]
    tiles = blocks(l, THREADS)
    size = np.array([(l, n, tiles, rows.inner, rows.mask)], _SIZES)
    kernel((r,), (rows.rows * tiles,), *rows.arrays, *arrays, size)


def spectrum(w: Array, P: Array, Q: Array, B: Array, C: Array, dt: Array, l: int) -> Array:
    """K̂ = 2 C (diag D + s P Qᴴ)⁻¹ B at l > 0 nodes."""
    rows = _rows(w, P, Q, B, C, dt)
    K = empty((rows.rows, l), np.complex128, w)
    _at_nodes(_SPECTRUM, rows, l, K)
    return rows.unfolded(K, (l,))


def gradients(
    d: Array, w: Array, P: Array, Q: Array, B: Array, C: Array, dt: Array
) -> tuple[Array, ...]:
    """dw, dP, dQ, dB, dC and ddt, not yet summed over broadcast axes.

    `d` is the transform of the kernel's cotangent, with all batch axes and l > 0 nodes.
    """
    xp, l, r, shape = namespace(d), d.shape[-1], P.shape[-1], d.shape[:-1]
    sums = _summed(contiguous(d, np.complex128), _rows(w, P, Q, B, C, dt), l)
    dw, dB, dC, products = (sums[..., i, :] for i in range(4))
    dP, dQ = (xp.matrix_transpose(sums[..., i : i + r, :]) for i in (4, 4 + r))
    ddt = 2j * xp.sum(products, axis=-1) / dt / dt  # dt² may underflow
    last = conj(2 * d[..., l // 2] / l) if l % 2 == 0 else xp.zeros(shape, dtype=d.dtype)
    h = (last * dt / 4)[..., None]  # at z = −1, X = dt/4 B
    dC, dB = dC + h * B, dB + h * C
    ddt = ddt + last / 4 * xp.sum(B * C + 0j, axis=-1)
    return conj(dw), conj(dP), dQ, conj(dB), conj(dC), conj(ddt)


def _summed(d: Array, rows: Batch, l: int) -> Array:
    """Sums over the nodes, (…, 4 + 2r, n): for dw, dB, dC, ddt, dP and dQ."""
    n, r = rows.arrays[1].shape[-2:]
    records = empty((rows.rows, l, 4 + 2 * r), np.complex128, d)
    _at_nodes(_SOLUTIONS, rows, l, d, records)
    across = min(LANES, 1 << max(0, n - 1).bit_length())
    slices = blocks(n, across)
    many = rows.rows * slices * blocks(l, LONGEST)
    span = LONGEST if many >= RESIDENT * target().multiprocessors else CHUNK
    pieces = blocks(l, span)
    found = empty((rows.rows, pieces, 4 + 2 * r, n), np.complex128, d)
    size = np.array([(l, n, span, pieces, across, rows.inner, rows.mask)], _GRADIENT_SIZES)
    _GRADIENTS((r,), (rows.rows * pieces * slices,), *rows.arrays, records, found, size)
    return rows.unfolded(namespace(d).sum(found, axis=1), (4 + 2 * r, n))
