"""Solves of batches of small systems by LU with partial pivoting: cuBLAS on the card."""

from __future__ import annotations

from refssm_gpu._algebra.parts import batch_of, identity
from refssm_gpu._launching.arrays import Array, namespace


def solve(M: Array, N: Array) -> Array:
    """M⁻¹ N; all NaN where M is not finite, for pivoting need not see a NaN.

    A singular M gives infinity or NaN on the card: an error would need its answer on the host. In
    the host build NumPy raises its LinAlgError. Both arrays are expanded to one batch and one type,
    because CuPy's `solve` does not broadcast.
    """
    xp, batch = namespace(M), batch_of((M, N), (2, 2))
    finite = xp.all(xp.isfinite(M), axis=(-2, -1))[..., None, None]
    kind = xp.result_type(M, N)
    sides = (xp.where(finite, M, identity(M)), N)
    M, N = (xp.broadcast_to(xp.astype(x, kind, copy=False), (*batch, *x.shape[-2:])) for x in sides)
    if 0 in N.shape:  # CuPy's batched solver divides by the size of a column
        return xp.zeros(N.shape, dtype=kind)
    return xp.where(finite, xp.linalg.solve(M, N), float("nan"))
