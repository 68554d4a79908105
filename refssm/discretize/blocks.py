"""Helpers of the matrix forms: multiply by the step size, build block matrices, solve."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast


def scaled(A, dt):
    """dt A."""
    return dt[..., None, None] * A


def identity(A):
    """The identity with A's size and precision."""
    return np.eye(A.shape[-1], dtype=np.finfo(A.dtype).dtype)


def above(*blocks):
    """[[F, H, …], [0, 0, …]]: zero rows below make it square; leading axes broadcast."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in blocks))
    wide = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in blocks]
    rows = np.concatenate(wide, axis=-1)
    n, size = rows.shape[-2:]
    return np.concatenate([rows, np.zeros_like(rows, shape=(*batch, size - n, size))], axis=-2)


def for_every(A_bar, *B_bars, rank=2):
    """Ā (`rank` core axes) and the B̄, broadcast to all leading axes."""
    ranks = (rank, *(2 for _ in B_bars))
    both = list(zip((A_bar, *B_bars), ranks, strict=True))
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - r] for x, r in both))
    return tuple(_along(x, (*batch, *x.shape[x.ndim - r :])) for x, r in both)


def _along(x, shape):
    """Broadcast x to `shape`; a copy unless it has that shape already."""
    return x if x.shape == shape else np.broadcast_to(x, shape).copy()


def through_steps(dF, dH, A, B, dt):
    """The gradients of A, B and dt from those of F = dt A and H = dt B."""
    h = dt[..., None, None]
    ddt = (A.conj() * dF).sum((-1, -2)) + (B.conj() * dH).sum((-1, -2))
    return unbroadcast(h * dF, A), unbroadcast(h * dH, B), unbroadcast(ddt, dt)


def solve(name, share, M, N, dt):
    """M⁻¹ N; all NaN if M is not finite. LinAlgError with dt if M = I − share·dt·A is singular."""
    # for a NaN, LAPACK may skip it or report a zero pivot; NumPy then raises for the whole batch
    finite = np.isfinite(M).all((-2, -1))[..., None, None]
    M = np.where(finite, M, identity(M))
    try:
        return np.where(finite, np.linalg.solve(M, N), np.nan)
    except np.linalg.LinAlgError:
        told = f"I − {share}dt·A is singular at dt = {_first_singular(M, dt):.6g}"
        raise np.linalg.LinAlgError(f"{name}: {told}") from None


def _first_singular(M, dt):
    """The step size of the first matrix in a batch that has no inverse."""
    steps = np.broadcast_to(dt, M.shape[:-2])
    for i in np.ndindex(*M.shape[:-2]):
        try:
            np.linalg.inv(M[i])
        except np.linalg.LinAlgError:
            return steps[i]
    raise AssertionError("each matrix has an inverse alone")
