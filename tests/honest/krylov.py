"""Honest Krylov kernels: powers from the left, the right or both, doubling, halving, each alone."""

import numpy as np

from honest import Honest, mirror
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.krylov import KRYLOV_KERNEL


def started(A, B, C):
    """B and C broadcast over all leading axes, in the type of the result."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    common = np.result_type(A, B, C)
    return (np.broadcast_to(a, (*batch, a.shape[-1])).astype(common) for a in (B, C))


def columns(A, B, count):
    """B, A B, …, A^{count−1} B, as rows."""
    X = np.empty((*B.shape[:-1], count, B.shape[-1]), B.dtype)
    for j in range(count):
        X[..., j, :] = (A @ X[..., j - 1, :, None])[..., 0] if j else B
    return X


def as_a_scan(A, B, C, *, l):
    """All states in one array; C is applied at the end."""
    B, C = started(A, B, C)
    return (columns(A, B, l) @ C[..., None])[..., 0]


def from_the_left(A, B, C, *, l):
    """C A^j, one row after another, times B."""
    return as_a_scan(A.mT, C, B, l=l)


def from_both_sides(A, B, C, *, l):
    """K_{i+j} = (C A^i)(A^j B) with i = j or i = j − 1: half as many powers of each kind."""
    B, C = started(A, B, C)
    X, R = columns(A, B, l // 2 + 1), columns(A.mT, C, (l + 1) // 2)
    K = np.empty((*B.shape[:-1], l), B.dtype)
    K[..., 0::2] = (R * X[..., : (l + 1) // 2, :]).sum(-1)
    K[..., 1::2] = (R[..., : l // 2, :] * X[..., 1 : l // 2 + 1, :]).sum(-1)
    return K


def two_tables(A, B, C, *, l):
    """j = aq + b: the rows C A^{aq} times the columns A^b B (giant steps and baby steps)."""
    B, C = started(A, B, C)
    q = max(1, int(np.ceil(np.sqrt(l))))
    giant = columns(np.linalg.matrix_power(A, q).mT, C, -(-l // q))
    K = giant @ columns(A, B, q).mT
    return np.ascontiguousarray(K.reshape(*K.shape[:-2], -1)[..., :l])


def even_and_odd(A, B, C, *, l):
    """The even entries are the kernel of A² and B, the odd ones the kernel of A² and A B."""
    B, C = started(A, B, C)
    if l < 2:
        return (C * B).sum(-1, keepdims=True)[..., :l]
    K, square = np.empty((*B.shape[:-1], l), B.dtype), A @ A
    K[..., 0::2] = even_and_odd(square, B, C, l=(l + 1) // 2)
    K[..., 1::2] = even_and_odd(square, (A @ B[..., None])[..., 0], C, l=l // 2)
    return K


def doubled_rows(A, B, C, *, l):
    """[C; C A; …], twice as many rows per product with A^q; q need not divide l."""
    B, C = started(A, B, C)
    R, power = C[..., None, :], A
    while R.shape[-2] < l:
        R = np.concatenate([R, R @ power], axis=-2)
        power = power @ power
    return (R[..., :l, :] @ B[..., None])[..., 0]


def all_powers(A, B, C, *, l):
    """Every A^j separately, by NumPy's matrix_power."""
    B, C = started(A, B, C)
    K = np.empty((*B.shape[:-1], l), B.dtype)
    for j in range(l):
        K[..., j] = np.einsum("...i,...ij,...j->...", C, np.linalg.matrix_power(A, j), B)
    return K


def backwards_numbered(A, B, C, *, l):
    """The states in reverse order, so that every sum has the other order."""
    return KRYLOV_KERNEL.reference(A[..., ::-1, ::-1], B[..., ::-1], C[..., ::-1], l=l)


def wider(A, B, C, *, l):
    """Computed in long double, rounded once."""
    K = KRYLOV_KERNEL.reference(
        *(a.astype(np.result_type(a, np.longdouble)) for a in (A, B, C)), l=l
    )
    return K.astype(np.result_type(A, B, C))


def through_hankel(dK, A, B, C, *, l):
    """dA = Rᴴ H X*, H_ij = dK_{i+j+1}, with rows R of C A^i and columns X of A^j B."""
    start, row = started(A, B, C)
    X, R = columns(A, start, l).conj(), columns(A.mT, row, l).conj()
    lag = np.add.outer(np.arange(l), np.arange(l)) + 1
    padded = np.concatenate([dK, np.zeros_like(dK)], axis=-1)
    dA = R.mT @ (padded[..., lag] if l else np.zeros((*dK.shape, 0), dK.dtype)) @ X
    dB, dC = ((dK[..., None, :] @ table)[..., 0, :] for table in (R, X))
    return unbroadcast_each((dA, dB, dC), (A, B, C))


def from_the_left_vjp(dK, A, B, C, *, l):
    """The gradients of the transposed system, transposed back; it stores rows."""
    dA, dC, dB = KRYLOV_KERNEL.bare_vjp(dK, A.mT, C, B, l=l)
    return dA.mT, dB, dC


IMPLEMENTATIONS = [
    mirror(KRYLOV_KERNEL, "doubling"),
    Honest(KRYLOV_KERNEL.name, "from_the_left", from_the_left, from_the_left_vjp),
    Honest(KRYLOV_KERNEL.name, "two_tables", two_tables, through_hankel),
    *(
        Honest(KRYLOV_KERNEL.name, form.__name__, form)
        for form in (
            as_a_scan,
            from_both_sides,
            even_and_odd,
            doubled_rows,
            all_powers,
            backwards_numbered,
            wider,
        )
    ),
]
