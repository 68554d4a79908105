"""Small parts of formulas on arrays of any namespace: conjugates, identities, batches, solves."""

from collections.abc import Sequence

import numpy as np

from refssm_gpu._launching.arrays import Array, is_complex, namespace, real_type


def conj(x: Array) -> Array:
    """x*; a real array stays as it is, without a pass over memory."""
    return namespace(x).conj(x) if is_complex(x) else x


def adjoint(M: Array) -> Array:
    """Mᴴ."""
    return conj(namespace(M).matrix_transpose(M))


def identity(A: Array) -> Array:
    """The identity with A's size and precision."""
    xp = namespace(A)
    return xp.eye(A.shape[-1], dtype=real_type(A.dtype, xp))


def counting(n: int, like: Array) -> Array:
    """0, 1, …, n−1 in the precision of `like`."""
    xp = namespace(like)
    return xp.arange(n, dtype=real_type(like.dtype, xp))


def applied(M: Array, x: Array) -> Array:
    """M x."""
    return (M @ x[..., None])[..., 0]


def batch_of(arrays: Sequence[Array], cores: Sequence[int]) -> tuple[int, ...]:
    """The broadcast leading axes; `cores` counts the last axes of each array that are not batch."""
    return np.broadcast_shapes(*(x.shape[: x.ndim - c] for x, c in zip(arrays, cores, strict=True)))


def along(x: Array, batch: Sequence[int], core: int) -> Array:
    """`x` with leading axes `batch`; its last `core` axes stay. A copy if it had other ones."""
    xp, shape = namespace(x), (*batch, *x.shape[x.ndim - core :])
    return x if x.shape == shape else xp.asarray(xp.broadcast_to(x, shape), copy=True)


def for_every(A_bar: Array, *B_bars: Array, rank: int = 2) -> tuple[Array, ...]:
    """Ā (`rank` core axes) and the B̄, broadcast to all leading axes."""
    both, ranks = (A_bar, *B_bars), (rank, *(2 for _ in B_bars))
    batch = batch_of(both, ranks)
    return tuple(along(x, batch, r) for x, r in zip(both, ranks, strict=True))


def joined(*blocks: Array, axis: int) -> Array:
    """Blocks side by side (axis −1) or one below the other (−2); leading axes broadcast."""
    xp, batch = namespace(*blocks), batch_of(blocks, [2] * len(blocks))
    wide = [xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in blocks]
    return xp.concat(wide, axis=axis)


def above(*blocks: Array) -> Array:
    """[[F, H, …], [0, 0, …]]: zero rows below make it square; leading axes broadcast."""
    rows = joined(*blocks, axis=-1)
    n, size = rows.shape[-2:]
    below = namespace(rows).zeros((*rows.shape[:-2], size - n, size), dtype=rows.dtype)
    return joined(rows, below, axis=-2)


def at_places(x: Array, places: Array) -> Array:
    """`x` at an array of indices of its last axis; 0 at indices from its length on."""
    xp = namespace(x)
    padded = xp.concat([x, xp.zeros((*x.shape[:-1], 1), dtype=x.dtype)], axis=-1)
    flat = xp.reshape(xp.where(places < x.shape[-1], places, x.shape[-1]), (-1,))
    return xp.reshape(xp.take(padded, flat, axis=-1), (*x.shape[:-1], *places.shape))


def paired(x: Array, axis: int = -1) -> Array:
    """(x, x*) along an axis: conjugate pairs of which x, one half, is stored."""
    return namespace(x).concat([x, conj(x)], axis=axis)


def folded(gradient: Array, axis: int = -1) -> Array:
    """The gradient of x from that of (x, x*): its first half plus the conjugate of its second."""
    n, after = gradient.shape[axis] // 2, (slice(None),) * (-1 - axis)
    return gradient[..., :n, *after] + conj(gradient[..., n:, *after])


def solve(M: Array, N: Array) -> Array:
    """M⁻¹ N by LU with partial pivoting; all NaN where M is not finite: pivoting may miss a NaN.

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
