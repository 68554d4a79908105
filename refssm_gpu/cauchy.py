"""CuPy mirrors of refssm.cauchy: sums at given nodes, and at the roots of unity by a transform.

A Cauchy kernel takes one launch forwards, two backwards. The resolvent at the roots of unity is a
product of two tables of powers, and one transform:

    1/(1 − aω) = Σ_{k<l} a^k ω^k / (1 − a^l)            if |a| ≤ 1
               = −Σ_{k<l} a^(k−l) ω^k / (1 − a^(−l))    otherwise

because ω^l = 1. With x = ±log a, Re x ≤ 0, no power overflows, and 1 − e^{lx} = −lx φ₁(lx) does not
cancel. Logarithms and coefficients are made by one launch, in double precision.
"""

from dataclasses import replace
from inspect import unwrap
from math import prod

import numpy as np

from refssm.cauchy import CAUCHY_KERNEL, CAUCHY_KERNEL_PAIRS, RESOLVENT_AT_ROOTS
from refssm_gpu._algebra.parts import batch_of, conj, folded, paired
from refssm_gpu._launching.arrays import (
    blocks,
    common,
    contiguous,
    empty,
    expanded,
    namespace,
    unbroadcast_and_round,
)
from refssm_gpu._launching.checked import mirror
from refssm_gpu._launching.kernel import COMPLEX, FIELDS, Kernel, instances, record, target
from refssm_gpu.diagonal import RESOLVENT, modes

NODES = {"float32": 512, "float64": 512, "complex64": 512, "complex128": 256}  # of a block
CHUNK, LONGEST = 256, 2048  # nodes in shared memory; of a block that sums over nodes
LANES = 32  # most poles of such a block
RESIDENT = 4  # blocks for each multiprocessor, below which blocks are made smaller

_FORWARD = Kernel(
    "cauchy/cauchy.cuh",
    "cauchy",
    instances(FIELDS),
    128,
    registers=96,
    double_inside=True,
    bound="flops",
)
_NODES_BACK = replace(_FORWARD, name="cauchy_nodes_back")
_MOMENTS = replace(
    _FORWARD,
    source="cauchy/cauchy_moments.cuh",
    name="cauchy_moments",
    instances=(*instances(FIELDS, (0,)), *instances(COMPLEX, (1,))),
)
_SIZES = record("l", "n", "tiles", "rows", "group", "step_z")
_MOMENT_SIZES = record("l", "n", "span", "pieces", "across", "step_z")


def _rows(x, shape, kind):
    """The residues or poles of each row, in this type."""
    return expanded(x, (*shape, x.shape[-1]), kind)


def _nodes(z, shape, kind):
    """The nodes of each row, or of all rows at once; and the step from a row to the next."""
    if prod(z.shape[:-1]) == 1:
        return contiguous(z, kind), 0
    return expanded(z, (*shape, z.shape[-1]), kind), z.shape[-1]


@mirror(CAUCHY_KERNEL)
def cauchy_kernel(v, w, z):
    kind, shape = common(v, w, z), batch_of((v, w, z), (1, 1, 1))
    l, n = z.shape[-1], v.shape[-1]
    k = empty((*shape, l), kind, z)
    nodes, step = _nodes(z, shape, kind)
    tiles = blocks(l, NODES[kind.name])
    size = np.array([(l, n, max(1, tiles), prod(shape), 1, step)], _SIZES)
    grid = (prod(shape) * tiles,)
    _FORWARD((kind.name,), grid, _rows(v, shape, kind), _rows(w, shape, kind), nodes, k, size)
    return k


def _moments(dk, w, z, roots=False):
    """Σ_l dk_l R* and Σ_l dk_l (R²)*, R = 1/(z_l − w_n), in double precision.

    `dk` has all batch axes. With `roots` z is ignored: z_l = ω_l* are the roots of unity, and R has
    the factor z once, so that R = 1/(1 − w ω_l) in the first sum.
    """
    kind = common(dk, w) if roots else common(dk, w, z)
    shape, l, n = dk.shape[:-1], dk.shape[-1], w.shape[-1]
    nodes, step = (None, 0) if roots else _nodes(z, shape, kind)
    across = min(LANES, 1 << max(0, n - 1).bit_length())
    wide = np.result_type(kind, np.float64)
    many = prod(shape) * blocks(n, across) * blocks(l, LONGEST)
    span = LONGEST if many >= RESIDENT * target().multiprocessors else CHUNK
    pieces = blocks(l, span)
    found = empty((prod(shape), pieces, 2, n), wide, dk)
    size = np.array([(l, n, span, max(1, pieces), across, step)], _MOMENT_SIZES)
    grid = (prod(shape) * pieces * blocks(n, across),)
    instance = (kind.name, int(roots))
    _MOMENTS(instance, grid, contiguous(dk, kind), _rows(w, shape, kind), nodes, found, size)
    xp = namespace(dk)
    total = xp.sum(found, axis=1)
    return tuple(xp.reshape(total[:, i], (*shape, n)) for i in range(2))


def _nodes_back(dk, v, w, z):
    """−dk_l Σ_n (v_n R²)*, summed over the rows that share their nodes."""
    kind, shape = common(dk, v, w, z), dk.shape[:-1]
    l, n, rows = z.shape[-1], v.shape[-1], prod(dk.shape[:-1])
    nodes, step = _nodes(z, shape, kind)
    tiles = blocks(l, NODES[kind.name])
    wanted = blocks(RESIDENT * target().multiprocessors, max(1, tiles))
    group = 1 if step else max(1, rows // wanted)
    groups = blocks(rows, group)
    dz = empty((groups, l), kind, z)
    size = np.array([(l, n, max(1, tiles), rows, group, step)], _SIZES)
    arrays = contiguous(dk, kind), _rows(v, shape, kind), _rows(w, shape, kind), nodes
    _NODES_BACK((kind.name,), (groups * tiles,), *arrays, dz, size)
    xp = namespace(z)
    return xp.reshape(dz, (*shape, l)) if step else xp.sum(dz, axis=0)


@mirror(CAUCHY_KERNEL)
def cauchy_kernel_vjp(dk, v, w, z):
    first, second = _moments(dk, w, z)
    dz = _nodes_back(dk, v, w, z)
    if dz.ndim < z.ndim:  # nodes shared by all rows have one gradient, already summed over them
        dz = namespace(z).reshape(dz, z.shape)
    return unbroadcast_and_round((first, conj(v) * second, dz), (v, w, z))


_whole, _whole_vjp = unwrap(cauchy_kernel), unwrap(cauchy_kernel_vjp)


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs(v, w, z):
    return _whole(paired(v), paired(w), z)


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs_vjp(dk, v, w, z):
    dv, dw, dz = _whole_vjp(dk, paired(v), paired(w), z)
    return folded(dv), folded(dw), dz


@mirror(RESOLVENT_AT_ROOTS)
def resolvent_at_roots(v, a, *, l):
    """One error for all entries, as that of a transform."""
    kind, xp = np.result_type(common(v, a), np.complex64), namespace(a)
    if l == 0:
        return xp.zeros((*np.broadcast_shapes(v.shape[:-1], a.shape[:-1]), 0), dtype=kind)
    return xp.fft.fft(modes(RESOLVENT, a.astype(kind, copy=False), None, v, None, l).kernel(l))


@mirror(RESOLVENT_AT_ROOTS)
def resolvent_at_roots_vjp(dk, v, a, *, l):
    """Sums over the nodes, as for a Cauchy kernel."""
    del l  # dk has it
    kind = np.result_type(common(dk, v, a), np.complex64)
    first, second = _moments(
        dk.astype(kind, copy=False), a.astype(kind, copy=False), None, roots=True
    )
    return unbroadcast_and_round((first, conj(v) * second), (v, a))
