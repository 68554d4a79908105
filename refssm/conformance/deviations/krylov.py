"""Planted bugs in the Krylov kernel and its gradient."""

import numpy as np

from refssm.conformance.deviations.planting import Planting
from refssm.krylov import KRYLOV_KERNEL

KRYLOV = Planting(KRYLOV_KERNEL, "float32")
right, vjp, wrong = KRYLOV.right, KRYLOV.right_vjp, KRYLOV.forward
KRYLOV.usual()


def turned(A):
    """Aᵀ."""
    return A.swapaxes(-1, -2)


def without(a, keep):
    """Zero but where `keep` is true of the index of the last axis."""
    return np.where(keep(np.arange(a.shape[-1])), a, 0).astype(a.dtype)


wrong("transposed", "Aᵀ for A")(lambda A, B, C, *, l: right(turned(A), B, C, l=l))
wrong("one_late", "from C A B on: the first output misses the first input")(
    lambda A, B, C, *, l: right(A, B, C, l=l + 1)[..., 1:]
)
wrong("one_early", "a zero before C B, as in the shifted convention")(
    lambda A, B, C, *, l: np.concatenate(
        [0 * right(A, B, C, l=min(l, 1)), right(A, B, C, l=max(l - 1, 0))], axis=-1
    )
)
wrong("exchanged", "B and C exchanged")(lambda A, B, C, *, l: right(A, C, B, l=l))
wrong("entrywise", "powers of the entries")(lambda A, B, C, *, l: _entrywise(A, B, C, l))
wrong("diagonal", "only the diagonal of A")(
    lambda A, B, C, *, l: right(A * np.eye(A.shape[-1], dtype=A.real.dtype), B, C, l=l)
)
wrong("lower", "A taken as lower triangular")(lambda A, B, C, *, l: right(np.tril(A), B, C, l=l))
wrong("conjugate", "A* for A", dtype="complex64")(lambda A, B, C, *, l: right(A.conj(), B, C, l=l))
wrong("output_conjugate", "C* for C", dtype="complex64")(
    lambda A, B, C, *, l: right(A, B, C.conj(), l=l)
)
wrong("real_part", "the real part", dtype="complex64")(
    lambda A, B, C, *, l: right(A, B, C, l=l).real.astype(np.result_type(A, B, C))
)
wrong("doubled", "a factor 2 for pairs that are not there")(
    lambda A, B, C, *, l: 2 * right(A, B, C, l=l)
)
wrong("last_state", "the last state's output forgotten")(
    lambda A, B, C, *, l: right(A, B, without(C, lambda i: i < C.shape[-1] - 1), l=l)
)
wrong("beyond_64", "zero beyond 64")(
    lambda A, B, C, *, l: without(right(A, B, C, l=l), lambda i: i < 64)
)
wrong("restarted", "every block of 64 starts again")(
    lambda A, B, C, *, l: right(A, B, C, l=l)[..., np.arange(l) % 64]
)
wrong("reversed", "backwards in time")(lambda A, B, C, *, l: right(A, B, C, l=l)[..., ::-1])
wrong("flushed", "late entries below 1e-4 of the largest are zero")(
    lambda A, B, C, *, l: _flushed(right(A, B, C, l=l))
)


def _entrywise(A, B, C, l):
    powers = [A**k for k in range(l)]
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    K = [np.broadcast_to((C[..., None, :] @ P @ B[..., None])[..., 0, 0], batch) for P in powers]
    return np.stack(K, axis=-1) if K else np.zeros((*batch, 0), np.result_type(A, B, C))


def _flushed(K):
    size = np.abs(K)
    return np.where(size < 1e-4 * size.max(-1, keepdims=True, initial=0), 0, K).astype(K.dtype)


KRYLOV.gradient("not_adjoint", "A for Aᴴ backwards")(
    lambda dK, A, B, C, *, l: (
        vjp(dK, A, B, C, l=l)[0],
        vjp(dK, turned(A).conj(), B, C, l=l)[1],
        vjp(dK, A, B, C, l=l)[2],
    )
)
KRYLOV.gradient("transposed", "dAᵀ for dA")(
    lambda dK, A, B, C, *, l: (turned(vjp(dK, A, B, C, l=l)[0]), *vjp(dK, A, B, C, l=l)[1:])
)
KRYLOV.gradient("first_tap_only", "dB of the first output alone")(
    lambda dK, A, B, C, *, l: (
        vjp(dK, A, B, C, l=l)[0],
        vjp(without(dK, lambda i: i < 1), A, B, C, l=l)[1],
        vjp(dK, A, B, C, l=l)[2],
    )
)
KRYLOV.gradient("exchanged", "dB and dC exchanged")(
    lambda dK, A, B, C, *, l: tuple(vjp(dK, A, B, C, l=l)[i] for i in (0, 2, 1))
)
KRYLOV.gradient("as_jax", "the conjugate convention", "complex64")(
    lambda dK, A, B, C, *, l: tuple(g.conj() for g in vjp(dK, A, B, C, l=l))
)
KRYLOV.gradient("not_conjugated", "C for C* in dA", "complex64")(
    lambda dK, A, B, C, *, l: (vjp(dK, A, B, C.conj(), l=l)[0], *vjp(dK, A, B, C, l=l)[1:])
)

DEVIATIONS = KRYLOV.bugs
