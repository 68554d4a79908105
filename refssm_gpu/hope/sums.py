"""Σ_i h_i p_j^{i+1} at the warped nodes, and its adjoint: one launch each, for any n and l.

All in double precision. cufinufft is not needed: half of the nodes and 21/16 multiply-adds for a
parameter are less than what it saves, up to many thousands of parameters.
"""

import numpy as np

from refssm_gpu._launching.arrays import blocks, empty, is_complex, namespace, widened
from refssm_gpu._launching.batch import batch
from refssm_gpu._launching.kernel import COMPLEX, Kernel, instances, record, target

THREADS = 128
NODES = (1, 2)  # of a thread
GROUP = 16  # parameters
SPAN, SHORT = 4096, 512  # nodes of a block of the adjoint: most, and least
RESIDENT = 2  # blocks for each multiprocessor, below which blocks are made smaller
WIDE = ("float64", "complex128")

_FORWARD = Kernel(
    "hope/hope_transfer.cuh",
    "hope_transfer",
    instances(WIDE, COMPLEX, NODES),
    THREADS,
    registers=168,
    double_inside=True,
    bound="flops",
)
_ADJOINT = Kernel(
    "hope/hope_transfer.cuh",
    "hope_adjoint",
    instances(WIDE, COMPLEX),
    THREADS,
    registers=168,
    double_inside=True,
    bound="flops",
)
# hope_sizes in hope_transfer.cuh
_SIZES = record("l", "n", "nodes", "out", "pieces", "span", "inner", "warped", mask=np.uint32)


def half(l):
    """The number of nodes up to l/2; the others are conjugates."""
    return min(l, l // 2 + 1)


def at_nodes(h, dt, l, kind, out=None, warped=False):
    """Σ_i h_i p_j^{i+1} at the first `out` nodes, l or half of them; of this type.

    `warped`: its derivative by dt, i (sin θ'_j/dt) Σ_i (i+1) h_i p_j^{i+1}.
    """
    h, dt = widened(h, dt)
    rows, n, nodes, kind = batch((h, dt), (1, 0)), h.shape[-1], half(l), np.dtype(kind)
    out = l if out is None else out
    plenty = rows.rows * blocks(nodes, 2 * THREADS) >= RESIDENT * target().multiprocessors
    each = NODES[plenty]
    pieces = blocks(nodes, each * THREADS)
    fields = (l, n, nodes, out, max(1, pieces), 0, rows.inner, warped, rows.mask)
    G = empty((rows.rows, out), kind, h)
    instance, size = (h.dtype.name, kind.name, each), np.array([fields], _SIZES)
    _FORWARD(instance, (rows.rows * pieces,), *rows.arrays, G, size)
    return rows.unfolded(G, (out,))


def at_nodes_back(dk, h, dt):
    """dh_i = Σ_j dk_j p_j*^{i+1}, its real part for real h, and ddt, not summed over the batch."""
    xp, l, n = namespace(h), dk.shape[-1], h.shape[-1]
    kind = np.result_type(dk.dtype, np.complex64)
    wide, step = widened(h, dt)
    rows = batch((dk, step), (1, 0), (kind, None))
    nodes, across = half(l), GROUP if is_complex(h) else 2 * GROUP
    slices = blocks(n, across)
    plenty = rows.rows * slices * blocks(nodes, SPAN) >= RESIDENT * target().multiprocessors
    span = SPAN if plenty else SHORT
    pieces = blocks(nodes, span)
    fields = (l, n, nodes, l, max(1, pieces), span, rows.inner, 0, rows.mask)
    parts = empty((rows.rows, pieces, n), wide.dtype, h)
    size = np.array([fields], _SIZES)
    grid = (rows.rows * pieces * slices,)
    _ADJOINT((wide.dtype.name, kind.name), grid, *rows.arrays, parts, size)
    dh = rows.unfolded(xp.sum(parts, axis=1), (n,))
    slope = at_nodes(h, dt, l, np.complex128, warped=True)
    return dh, xp.sum((dk * slope.conj()).real, axis=-1)
