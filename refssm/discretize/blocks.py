"""What the matrix forms share: the step as a factor, blocks, and a solve that names its failure."""

import numpy as np

from refssm.broadcasting import unbroadcast


def scaled(A, dt):
    """dt A."""
    return dt[..., None, None] * A


def adjoint(M):
    """Mᴴ."""
    return M.conj().swapaxes(-1, -2)


def identity(A):
    """I of A's size and precision."""
    return np.eye(A.shape[-1], dtype=np.finfo(A.dtype).dtype)


def above(*blocks):
    """[[F, H, …], [0, 0, …]]: rows of zeros below make it square, over the broadcast batch."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in blocks))
    wide = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in blocks]
    rows = np.concatenate(wide, axis=-1)
    n, size = rows.shape[-2:]
    return np.concatenate([rows, np.zeros_like(rows, shape=(*batch, size - n, size))], axis=-2)


def for_every(A_bar, *B_bars, rank=2):
    """Ā, of `rank` core axes, and the B̄ with all leading axes that any of them has."""
    ranks = (rank, *(2 for _ in B_bars))
    both = list(zip((A_bar, *B_bars), ranks, strict=True))
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - r] for x, r in both))
    return tuple(_along(x, (*batch, *x.shape[x.ndim - r :])) for x, r in both)


def _along(x, shape):
    """x in a shape it broadcasts to."""
    return x if x.shape == shape else np.broadcast_to(x, shape).copy()


def through_steps(dF, dH, A, B, dt):
    """The gradients of A, B and dt from those of F = dt A and H = dt B."""
    h = dt[..., None, None]
    ddt = (A.conj() * dF).sum((-1, -2)) + (B.conj() * dH).sum((-1, -2))
    return unbroadcast(h * dF, A), unbroadcast(h * dH, B), unbroadcast(ddt, dt)


def solve(name, share, M, N, dt):
    """M⁻¹ N, all NaN where M has one; a singular M = I − share·dt·A is named with its step."""
    # LAPACK may skip a NaN or call it a zero pivot, and NumPy then raises for the whole batch
    finite = np.isfinite(M).all((-2, -1))[..., None, None]
    M = np.where(finite, M, identity(M))
    try:
        return np.where(finite, np.linalg.solve(M, N), np.nan)
    except np.linalg.LinAlgError:
        told = f"I − {share}dt·A is singular at dt = {_first_singular(M, dt):.6g}"
        raise np.linalg.LinAlgError(f"{name}: {told}") from None


def _first_singular(M, dt):
    """The step of the first matrix of a batch that has no inverse."""
    steps = np.broadcast_to(dt, M.shape[:-2])
    for i in np.ndindex(*M.shape[:-2]):
        try:
            np.linalg.inv(M[i])
        except np.linalg.LinAlgError:
            return steps[i]
    raise AssertionError("each matrix has an inverse alone")
