"""CuPy mirror of refssm.diagonal.ema: every power by its logarithm, made in double precision."""

import numpy as np

from refssm.diagonal import EMA_KERNEL
from refssm_gpu._launching.arrays import blocks, common, empty, real_type, unbroadcast_and_round
from refssm_gpu._launching.batch import batch
from refssm_gpu._launching.checked import mirror
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances, record
from refssm_gpu._parts.powers import later_sums, sums

BLOCK = 128
_MODES = Kernel(
    "diagonal/averages.cuh",
    "average_modes",
    instances(FIELDS),
    BLOCK,
    64,
    double_inside=True,
    bound="launch",
)
_MODES_BACK = Kernel(
    "diagonal/averages.cuh",
    "average_modes_back",
    instances(FIELDS),
    BLOCK,
    64,
    double_inside=True,
    bound="launch",
)
_SIZES = record("count", "n", "inner", mask=np.uint32)


def _averaged(delta, alpha, beta, gamma):
    """The arguments of all rows, their sizes, and coefficients and logarithms."""
    kind, n = common(delta, alpha, beta, gamma), beta.shape[-1]
    real = real_type(kind)
    rows = batch((delta, alpha, beta, gamma), (1, 1, 1, 1), (real, real, kind, kind))
    size = np.array([(rows.rows * n, n, rows.inner, rows.mask)], _SIZES)
    v, x = (empty((*rows.shape, n), np.result_type(kind, float), beta) for _ in range(2))
    _MODES((kind.name,), (blocks(v.size, BLOCK),), *rows.arrays, v, x, size)
    return rows.arrays, size, v, x


@mirror(EMA_KERNEL)
def ema_kernel(delta, alpha, beta, gamma, *, l):
    *_, v, x = _averaged(delta, alpha, beta, gamma)
    return sums(v, x, l=l, kind=common(delta, alpha, beta, gamma))


@mirror(EMA_KERNEL)
def ema_kernel_vjp(dk, delta, alpha, beta, gamma, *, l):
    del l  # dk has it
    primals = delta, alpha, beta, gamma
    given, size, _, x = _averaged(*primals)
    found, start = later_sums(dk, x)
    made = [empty(x.shape, found.dtype, dk) for _ in range(4)]
    grid = (blocks(x.size, BLOCK),)
    _MODES_BACK((common(*primals).name,), grid, *given, found, start, *made, size)
    return unbroadcast_and_round(made, primals)
