"""Planted bugs in recurrences with a matrix, written for a scan from x0, for both operators."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.recurrences import RESETS, starts
from refssm.conformance.planted.scan import programs
from refssm.conformance.planted.scan.programs import same, zero
from refssm.scan import (
    DENSE_SCAN,
    DENSE_SCAN_FROM,
    DENSE_SCAN_VARYING,
    DENSE_SCAN_VARYING_FROM,
    DENSE_SCAN_VARYING_PACKED,
    DENSE_STEP,
)


def applied(A, x):
    """A x."""
    return np.einsum("...ij,...j->...i", A, x)


def stepwise(step, A, b, x0):
    """x_k = step(k, A, x_{k-1}, b_k) from x0."""
    batch = np.broadcast_shapes(A.shape[:-2], b.shape[:-2], x0.shape[:-1])
    x = np.empty((*batch, *b.shape[-2:]), np.result_type(A, b, x0))
    state = np.broadcast_to(x0, x[..., 0, :].shape).astype(x.dtype)
    for k in range(x.shape[-2]):
        x[..., k, :] = state = step(k, A, state, b[..., k, :])
    return x


def following(k, A, x, b_k):
    """The right step."""
    return applied(A, x) + b_k


def by_step(step):
    """A wrong scan of (right, A, b, x0) that repeats x_k = step(k, A, x_{k-1}, b_k)."""
    return lambda right, A, b, x0: stepwise(step, A, b, x0)


def _carry_lost(size):
    return by_step(lambda k, A, x, b_k: following(k, A, 0 * x if k and k % size == 0 else x, b_k))


def _in_tree(combined):
    """Hillis and Steele's scan; `combined` combines the matrices of two spans."""

    def scan(right, A, b, x0):
        x = b.astype(np.result_type(A, b, x0))
        x[..., 0, :] += applied(A, x0)
        maps = np.broadcast_to(A[..., None, :, :], (*x.shape, x.shape[-1])).astype(x.dtype)
        return programs.in_tree(combined, maps, x)

    return scan


def _back(*, through=lambda A: A.mT.conj(), late=False, conj=np.conj, forget=0, cast=same, dA=same):
    """The VJP by the adjoint recurrence; each keyword replaces a part by a wrong one."""

    def vjp(right, dx, A, b, x0):
        x, back = stepwise(following, A, b, x0), through(A)
        g = programs.adjoint(dx, lambda k, g: applied(back, g), forget, cast)
        outer = g.mT @ conj(x if late else programs.before(x, x0))
        return unbroadcast_each((dA(outer), g, cast(applied(back, g[..., 0, :]))), (A, b, x0))

    return vjp


def _start_not_conjugated(right, dx, A, b, x0):
    dA, db, _ = right(dx, A, b, x0)
    return dA, db, unbroadcast(applied(A.mT, db[..., 0, :]), x0)


BOTH = {
    "value": [
        ("transposed", "Aᵀ for A", {"A": lambda A: A.mT}),
        ("diagonal", "the diagonal of A", {"A": lambda A: A * np.eye(A.shape[-1], dtype="f4")}),
        ("lower_triangle", "the lower triangle of A", {"A": lambda A: np.tril(A).astype(A.dtype)}),
        ("squared", "A² for A", {"A": lambda A: A @ A}),
        ("matrix_of_first_batch", "the first member's matrix for the batch",
         {"A": programs.of_first_member}),
        ("sign", "b subtracted", {"b": np.negative}),
        ("input_too", "A (x + b)", by_step(lambda k, A, x, b_k: applied(A, x + b_k))),
        ("elementwise", "the diagonal of A times x, entry by entry, and its first row besides",
         by_step(lambda k, A, x, b_k: A[..., 0, :] * x + b_k)),
        ("state_forgotten", "x_k = b_k", {"A": zero}),
        ("exclusive", "x_{k-1} returned for x_k", programs.exclusive),
        ("input_late", "b_{k-1} in place of b_k", {"b": programs.late}),
        ("backwards", "scanned from the end",
         lambda right, A, b, x0: right(A, b[..., ::-1, :], x0)[..., ::-1, :].copy()),
        *((f"carry_lost_{size}", f"the carry lost at chunks of {size}", _carry_lost(size))
          for size in (16, 64, 256)),
        ("carry_undecayed", "the carry of a chunk of 16 added without A", by_step(
            lambda k, A, x, b_k: (x if k and k % 16 == 0 else applied(A, x)) + b_k)),
        ("combined_wrong_way", "the affine maps combined in the wrong order",
         _in_tree(lambda A, x, early, x_early: (early @ A, applied(early, x) + x_early))),
        ("combined_transposed", "the product of two maps transposed",
         _in_tree(lambda A, x, early, x_early: ((A @ early).mT, applied(A, x_early) + x))),
        ("combined_elementwise", "A ∘ A for A²",
         _in_tree(lambda A, x, early, x_early: (A * early, applied(A, x_early) + x))),
        ("state_in_bfloat16", "the state kept in bfloat16",
         by_step(lambda *step: bfloat16(following(*step)))),
        ("symmetrized", "the symmetric part of A", {"A": lambda A: (A + A.mT) / 2}),
        ("shrunk", "A times 1 − 1e-4, for safety",
         {"A": lambda A: A * A.real.dtype.type(1 - 1e-4)}),
    ],
    "value[complex64]": [
        ("conjugate", "A* for A", {"A": np.conj}),
        ("hermitian", "Aᴴ for A", {"A": lambda A: A.mT.conj()}),
    ],
    "nan": [("nan_spread", "0 · NaN of the future reaches the past",
             {"b": programs.masked_by_product})],
    "gradient": [
        ("not_transposed", "A for Aᴴ in the adjoint", _back(through=same)),
        ("state_one_late", "dA with x_k for x_{k-1}", _back(late=True)),
        ("outer_product_turned", "dA transposed: x g for g xᴴ", _back(dA=lambda dA: dA.mT)),
        ("carry_lost_64", "the adjoint's carry lost at chunks of 64", _back(forget=64)),
        ("recurrence_forgotten", "db = dx", _back(forget=1)),
        ("float16", "the adjoint carried in float16", _back(cast=float16)),
        ("sign", "db with the other sign", {"b": np.negative}),
    ],
    "gradient[complex64]": [
        ("only_transposed", "Aᵀ for Aᴴ in the adjoint", _back(through=lambda A: A.mT)),
        ("only_conjugated", "A* for Aᴴ in the adjoint", _back(through=np.conj)),
        ("state_not_conjugated", "dA with xᵀ for xᴴ", _back(conj=same)),
    ],
}  # fmt: skip
FROM = {
    "value": [
        *programs.START,
        ("start_undecayed", "x_0 = x0 + b_0",
         by_step(lambda k, A, x, b_k: (applied(A, x) if k else x) + b_k)),
        ("start_every_step", "A x0 added at every step", lambda right, A, b, x0:
         right(A, b + applied(A, x0)[..., None, :], 0 * x0)),
    ],
    "gradient": [
        ("start_missing", "dx0 = 0", {"x0": zero}),
        ("start_undecayed", "dx0 = g_0", programs.start_undecayed),
        ("start_ignored", "dA without g_0 x0ᴴ", programs.start_ignored),
    ],
    "gradient[complex64]": [("start_not_conjugated", "dx0 = Aᵀ g_0", _start_not_conjugated)],
}  # fmt: skip
DENSE = programs.planting(DENSE_SCAN, BOTH, adapt=programs.from_rest)
DENSE_FROM = programs.planting(DENSE_SCAN_FROM, BOTH, FROM)


def _within(size):
    """Chunks of so many steps that do not go on from one another."""

    def program(right, A, b, *more):
        k = np.arange(b.shape[-2])
        begins = ((k > 0) & (k % size == 0))[:, None, None]
        return right(np.where(begins, 0, A).astype(A.dtype), b, *more)

    return program


ANY_MATRICES = {
    "value": [
        ("transposed", "Aᵀ for A", {"A": lambda A: A.mT}),
        ("diagonal", "the diagonals of the matrices",
         {"A": lambda A: A * np.eye(A.shape[-1], dtype="f4")}),
        ("lower_triangle", "the lower triangles of the matrices",
         {"A": lambda A: np.tril(A).astype(A.dtype)}),
        ("sign", "b subtracted", {"b": np.negative}),
        ("state_forgotten", "x_k = b_k", {"A": zero}),
        ("matrix_in_bfloat16", "the matrices rounded to bfloat16", {"A": bfloat16}),
        ("matrix_in_float16", "the matrices rounded to float16", {"A": float16}),
        ("symmetrized", "the symmetric parts of the matrices", {"A": lambda A: (A + A.mT) / 2}),
        ("shrunk", "A times 1 − 1e-4, for safety",
         {"A": lambda A: A * A.real.dtype.type(1 - 1e-4)}),
    ],
    "value[complex64]": [
        ("conjugate", "A* for A", {"A": np.conj}),
        ("hermitian", "Aᴴ for A", {"A": lambda A: A.mT.conj()}),
    ],
    "gradient": [
        ("sign", "db with the other sign", {"b": np.negative}),
        ("outer_product_turned", "dA transposed: x g for g xᴴ", {"A": lambda dA: dA.mT}),
        ("matrix_missing", "dA = 0", {"A": zero}),
    ],
    "gradient[complex64]": [("conjugate", "dA*", {"A": np.conj})],
}  # fmt: skip
EACH_STEP = {
    "value": [
        ("input_late", "b_{k-1} in place of b_k", {"b": programs.late}),
        ("matrix_late", "A_{k-1} in place of A_k", {"A": lambda A: np.roll(A, 1, -3)}),
        ("matrix_early", "A_{k+1} in place of A_k", {"A": lambda A: np.roll(A, -1, -3)}),
        ("matrix_of_second_step", "one matrix for all steps",
         {"A": lambda A: np.broadcast_to(A[..., 1:2, :, :], A.shape) if A.shape[-3] > 1 else A}),
        *((f"carry_lost_{n}", f"the carry lost at chunks of {n}", _within(n))
          for n in (16, 64, 128)),
    ],
    "gradient": [
        ("matrix_gradient_late", "dA of the step before", {"A": lambda dA: np.roll(dA, 1, -3)}),
        ("in_float16", "the cotangent rounded to float16", {"dx": float16}),
    ],
}  # fmt: skip
_STEP = {
    "value": [*starts("x", 1), ("input_twice", "A x + 2 b", {"b": lambda b: 2 * b})],
    "gradient": [
        ("state_missing", "dx = 0", {"x": zero}),
        ("in_float16", "the cotangent rounded to float16", {"dx_next": float16}),
    ],
}
VARYING = [
    programs.planting(DENSE_SCAN_VARYING, ANY_MATRICES, EACH_STEP),
    programs.planting(
        DENSE_SCAN_VARYING_FROM,
        ANY_MATRICES,
        EACH_STEP,
        {"value": starts("x0", 1), "gradient": [("start_missing", "dx0 = 0", {"x0": zero})]},
    ),
    programs.planting(DENSE_SCAN_VARYING_PACKED, ANY_MATRICES, EACH_STEP, {"value": RESETS}),
    programs.planting(DENSE_STEP, ANY_MATRICES, _STEP),
]
