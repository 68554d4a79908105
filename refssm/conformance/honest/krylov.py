"""Honest Krylov kernels: the powers from the left, by doubling, each by itself, in two tables."""

import numpy as np

from refssm.conformance.honest import Honest
from refssm.conformance.honest.compiled import compiled
from refssm.krylov import KRYLOV_KERNEL


def from_the_left(A, B, C, *, l):
    """C A^k, one row after another, times B."""
    row, K = C, []
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    for _ in range(l):
        K.append(np.broadcast_to((row * B).sum(-1), batch))
        row = (row[..., None, :] @ A)[..., 0, :]
    common = np.result_type(A, B, C)
    return np.stack(K, axis=-1).astype(common) if K else np.zeros((*batch, 0), common)


def two_tables(A, B, C, *, l):
    """k = aq + b: the rows C A^{aq} times the columns A^b B."""
    q = max(1, int(np.ceil(np.sqrt(l))))
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    columns = [np.broadcast_to(B, (*batch, B.shape[-1]))]
    for _ in range(q - 1):
        columns.append((A @ columns[-1][..., None])[..., 0])
    leap, rows = np.linalg.matrix_power(A, q), [np.broadcast_to(C, (*batch, C.shape[-1]))]
    for _ in range(-(-l // q) - 1):
        rows.append((rows[-1][..., None, :] @ leap)[..., 0, :])
    K = np.stack(rows, axis=-2) @ np.stack(columns, axis=-1)
    return K.reshape(*batch, -1)[..., :l].astype(np.result_type(A, B, C))


def as_a_scan(A, B, C, *, l):
    """The states row by row in one array, C applied to all of them at the end."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    x = np.zeros((*batch, l, B.shape[-1]), np.result_type(A, B))
    for k in range(l):
        x[..., k, :] = (A @ x[..., k - 1, :, None])[..., 0] if k else B
    return (x @ C[..., :, None])[..., 0].astype(np.result_type(A, B, C))


IMPLEMENTATIONS = [
    Honest(KRYLOV_KERNEL.name, "reference", KRYLOV_KERNEL.reference, KRYLOV_KERNEL.bare_vjp),
    compiled(KRYLOV_KERNEL, "doubling"),
    *(
        Honest(KRYLOV_KERNEL.name, form.__name__, form)
        for form in (from_the_left, two_tables, as_a_scan)
    ),
]
