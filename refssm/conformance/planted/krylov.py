"""Planted bugs in the Krylov kernel and its VJP, which also fit Markov parameters."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.krylov import KRYLOV_KERNEL

power, same = np.linalg.matrix_power, np.positive


def applied(A, x):
    """A x."""
    return np.einsum("...ij,...j->...i", A, x)


def started(A, B, C):
    """B and C broadcast over all leading axes, in the type of the result."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    common = np.result_type(A, B, C)
    return [np.broadcast_to(a, (*batch, a.shape[-1])).astype(common) for a in (B, C)]


def stepwise(step):
    """A kernel whose states are x_{j+1} = step(A x_j)."""

    def kernel(right, A, B, C, *, l):
        x, C = started(A, B, C)
        K = np.empty((*x.shape[:-1], l), x.dtype)
        for j in range(l):
            K[..., j] = (C * x).sum(-1)
            x = step(applied(A, x))
        return K

    return kernel


def in_blocks(step):
    """[B, A B, …] by doubling; `step(A, q)` is the power that continues after q columns."""

    def kernel(right, A, B, C, *, l):
        B, C = started(A, B, C)
        X = B[..., None]
        while X.shape[-1] < l:
            X = np.concatenate([X, step(A, X.shape[-1]) @ X], axis=-1)
        return (C[..., None, :] @ X[..., :l])[..., 0, :]

    return kernel


def without(a, place):
    """a with zero at one place of the last axis."""
    a = a.copy()
    a[..., place] = 0
    return a


def _in_eigenbasis(right, A, B, C, *, l):
    w, V = np.linalg.eig(A)
    left = np.linalg.solve(V + 1e-12 * np.eye(V.shape[-1]), B[..., None])[..., 0]
    K = right(w[..., None] * np.eye(w.shape[-1]), left, applied(V.mT, C), l=l)
    common = np.result_type(A, B, C)
    return (K if common.kind == "c" else K.real).astype(common)


def _clamped(K):
    """Blocks of 64 that must not pass the end: the last block starts too early."""
    j = np.arange(K.shape[-1])
    start = j // 64 * 64
    return K[..., np.minimum(start, max(len(j) - 64, 0)) + j - start]


def back(*, through=lambda A: A.mT.conj(), before=1, late=0, forget=0,
         x_conj=np.conj, C_conj=np.conj, cast=same):  # fmt: skip
    """The VJP by the adjoint recurrence; each keyword replaces a part by a wrong one."""

    def vjp(right, dK, A, B, C, *, l):
        start, row = started(A, B, C)
        x = [start]
        for _ in range(l + 1):
            x.append(applied(A, x[-1]))
        g = dC = 0 * start * dK[..., :1] if l else 0 * start
        dA = 0 * A * g[..., None]
        for j in range(l - 1, -1, -1):
            g = 0 * g if forget and (j + 1) % forget == 0 else g
            g = cast(dK[..., j, None] * C_conj(row) + g)
            dC = dC + dK[..., j, None] * x_conj(x[j + late])
            if j:
                dA = dA + g[..., :, None] * x_conj(x[j - before])[..., None, :]
                g = applied(through(A), g)
        return unbroadcast_each((dA, g, dC), (A, B, C))

    return vjp


KRYLOV = Planting(KRYLOV_KERNEL, "float32")
KRYLOV.usual()
KRYLOV.plant(
    ("transposed", "Aᵀ for A", {"A": lambda A: A.mT}),
    ("diagonal", "the diagonal of A", {"A": lambda A: A * np.eye(A.shape[-1], dtype="f4")}),
    ("lower", "the lower triangle of A", {"A": lambda A: np.tril(A).astype(A.dtype)}),
    ("symmetrized", "the symmetric part of A", {"A": lambda A: (A + A.mT) / 2}),
    ("squared", "A² for A", {"A": lambda A: A @ A}),
    ("shrunk", "A times 1 − 1e-4", {"A": lambda A: A * A.real.dtype.type(1 - 1e-4)}),
    ("matrix_of_first_batch", "the first member's matrix for the batch",
     {"A": lambda A: np.broadcast_to(A[:1], A.shape) if A.ndim > 2 else A}),
    ("one_late", "from C A B on: the first output misses the first input",
     lambda right, A, B, C, *, l: right(A, applied(A, B), C, l=l)),
    ("one_early", "a zero before C B, as in the shifted convention",
     of_result(lambda K: np.concatenate([0 * K[..., :1], K[..., :-1]], axis=-1))),
    ("exchanged", "B and C exchanged", lambda right, A, B, C, *, l: right(A, C, B, l=l)),
    ("entrywise", "powers of the entries", in_blocks(lambda A, q: A**q)),
    ("doubled", "2 Re of pairs that are not there", of_result(lambda K: 2 * K)),
    ("reversed", "backwards in time", of_result(lambda K: K[..., ::-1])),
    ("flushed", "zero below 1e-4 of the largest", of_result(lambda K:
     np.where(np.abs(K) < 1e-4 * np.abs(K).max(-1, keepdims=True, initial=0), 0, K))),
    ("beyond_64", "zero beyond 64", of_result(lambda K: without(K, np.s_[64:]))),
    ("tail_dropped", "whole blocks of 16 only, but for a kernel within the first",
     of_result(lambda K: without(K, np.s_[max(16, K.shape[-1] // 16 * 16) :]))),
    ("tail_repeated", "the last block of 64 shifted to end at l, and written from its start",
     of_result(_clamped)),
    ("restarted", "every block of 64 starts from B",
     of_result(lambda K: K[..., np.arange(K.shape[-1]) % 64])),
    ("last_state", "the last state's output forgotten", {"C": lambda C: without(C, np.s_[-1:])}),
    ("aliased", "K_j + K_{j+l}: sampled at l roots of unity, without I − A^l",
     lambda right, *args, l: right(*args, l=l) + right(*args, l=2 * l)[..., l:]),
    ("truncated", "C (I − A^l) taken for C",
     lambda right, *args, l: right(*args, l=l) - right(*args, l=2 * l)[..., l:]),
    ("power_one_short", "blocks led on by A^{q−1}",
     in_blocks(lambda A, q: power(A, max(q - 1, 1)))),
    ("power_of_two", "A^64 by squaring seven times",
     in_blocks(lambda A, q: power(A, 128 if q == 64 else q))),
    ("power_transposed", "the power of A transposed from the second doubling on",
     in_blocks(lambda A, q: power(A, q) if q < 2 else power(A, q).mT)),
    ("power_in_float16", "the powers rounded to float16",
     in_blocks(lambda A, q: float16(power(A, q)))),
    ("state_in_float16", "the state in float16", stepwise(float16)),
    ("state_in_bfloat16", "the state in bfloat16", stepwise(bfloat16)),
    ("state_normalized", "the state divided by its largest entry, as in the power method",
     stepwise(lambda x: x / np.abs(x).max(-1, keepdims=True, initial=1e-30).astype(x.real.dtype))),
    ("input_held", "B added at every step: the step response",
     of_result(lambda K: np.cumsum(K, axis=-1, dtype=K.dtype))),
    ("in_eigenbasis", "by eigenvectors, which some matrices do not have", _in_eigenbasis),
)  # fmt: skip
KRYLOV.plant(
    ("conjugate", "A* for A", {"A": np.conj}),
    ("hermitian", "Aᴴ for A", {"A": lambda A: A.mT.conj()}),
    ("output_conjugate", "C* for C", {"C": np.conj}),
    ("input_conjugate", "B* for B", {"B": np.conj}),
    ("real_part", "the real part", of_result(lambda K: K.real.astype(K.dtype))),
    by="value[complex64]",
)
KRYLOV.plant(
    ("not_transposed", "A for Aᴴ backwards", back(through=same)),
    ("state_one_late", "dA with x_j for x_{j−1}", back(before=0)),
    ("output_one_late", "dC with x_{j+1} for x_j", back(late=1)),
    ("carry_lost_64", "the adjoint's carry lost at blocks of 64", back(forget=64)),
    ("recurrence_forgotten", "dB of the first output alone", back(forget=1)),
    ("float16", "the adjoint carried in float16", back(cast=float16)),
    ("last_missing", "the last output left out", {"dK": lambda d: without(d, np.s_[-1:])}),
    ("first_missing", "the first output left out", {"dK": lambda d: without(d, np.s_[:1])}),
    ("backwards", "the cotangent in the other order", {"dK": lambda d: d[..., ::-1]}),
    ("exchanged", "dB and dC exchanged", of_result(lambda dA, dB, dC: (dA, dC, dB))),
    ("turned", "dA transposed", {"A": lambda g: g.mT}),
    ("sign", "dB with the other sign", {"B": np.negative}),
    by="gradient",
)  # fmt: skip
KRYLOV.plant(
    ("only_transposed", "Aᵀ for Aᴴ backwards", back(through=lambda A: A.mT)),
    ("only_conjugated", "A* for Aᴴ backwards", back(through=np.conj)),
    ("state_not_conjugated", "x for x*", back(x_conj=same)),
    ("output_row_not_conjugated", "C for C*", back(C_conj=same)),
    ("as_jax", "the conjugate convention", of_each_result(np.conj)),
    by="gradient[complex64]",
)
KRYLOV.plant(
    ("nan_spread", "NaN of one member of the batch reaches the others",
     of_result(lambda K: K + 0 * K.sum(tuple(range(K.ndim - 1)), keepdims=True))),
    by="nan",
)  # fmt: skip
BUGS = KRYLOV.bugs
