"""Planted bugs in Hankel matrices and their gradients."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, of_result
from refssm.hankel import HANKEL_MATRIX

HANKEL = Planting(HANKEL_MATRIX, "float32")
HANKEL.usual()
# no argument has the memory of a matrix
HANKEL.bugs = [bug for bug in HANKEL.bugs if bug.name != "returns_input"]


def _at(places):
    """h at index places(i, j, n), or 0 if that is outside."""

    def matrix(right, h):
        n = h.shape[-1]
        k = places(*np.ogrid[:n, :n], n)
        inside = (k >= 0) & (k < n)
        return np.where(inside, h[..., np.where(inside, k, 0)], 0).astype(h.dtype)

    return matrix


HANKEL.plant(
    ("base_one", "h_{i+j+1}: from h_1 on", _at(lambda i, j, n: i + j + 1)),
    ("base_minus_one", "h_{i+j−1}: counted from one", _at(lambda i, j, n: i + j - 1)),
    ("wrapped", "h_{(i+j) mod n}: a circulant", _at(lambda i, j, n: (i + j) % max(n, 1))),
    ("last_repeated", "the last value beyond the end",
     _at(lambda i, j, n: np.minimum(i + j, n - 1))),
    ("toeplitz", "h_{i−j}: a Toeplitz matrix", _at(lambda i, j, n: i - j)),
    ("toeplitz_symmetric", "h_|i−j|", _at(lambda i, j, n: np.abs(i - j))),
    ("toeplitz_upper", "h_{j−i}", _at(lambda i, j, n: j - i)),
    ("reversed", "the last row first", _at(lambda i, j, n: n - 1 - i + j)),
    ("both_reversed", "h_{2(n−1)−i−j}", _at(lambda i, j, n: 2 * (n - 1) - i - j)),
    ("last_dropped", "the antidiagonal zero",
     _at(lambda i, j, n: np.where(i + j < n - 1, i + j, n))),
    ("first_row", "only the first row", _at(lambda i, j, n: np.where(i > 0, n, j))),
    ("doubled", "2h for h", of_result(lambda H: 2 * H)),
    ("product", "h_{i·j}", _at(lambda i, j, n: i * j)),
    ("flushed", "zero beyond 64", _at(lambda i, j, n: np.where(i + j < 64, i + j, n))),
    ("blocks", "a new start every 32 rows", _at(lambda i, j, n: i % 32 + j)),
    ("index_of_a_byte", "i + j in one byte", _at(lambda i, j, n: (i + j) % 256)),
    ("sign", "alternating signs", of_result(lambda H:
     H * (1 - 2 * (np.arange(H.shape[-1]) % 2)).astype(H.dtype))),
)  # fmt: skip
HANKEL.plant(
    ("conjugated", "h*", {"h": np.conj}),
    ("hermitian", "the lower triangle conjugated",
     of_result(lambda H: np.where(np.tri(H.shape[-1], k=-1) > 0, H.conj(), H))),
    ("real_part", "the real part", of_result(lambda H: H.real.astype(H.dtype))),
    by="value[complex64]",
)  # fmt: skip


def _summed(where):
    """For every k, the sum of dH over the entries for which where(i, j, k, n) is true."""

    def vjp(right, dH, h):
        n = h.shape[-1]
        i, j = np.ogrid[:n, :n]
        sums = [np.where(where(i, j, k, n), dH, 0).sum((-2, -1)) for k in range(n)]
        dh = np.stack(sums, -1) if n else dH[..., 0]
        return (unbroadcast(dh, h),)

    return vjp


HANKEL.plant(
    ("index_base", "the next antidiagonal", _summed(lambda i, j, k, n: i + j == k + 1)),
    ("wrapped", "beyond the end too", _summed(lambda i, j, k, n: (i + j) % n == k)),
    ("diagonals", "diagonals for antidiagonals", _summed(lambda i, j, k, n: i - j == k)),
    ("row", "the first row alone", _summed(lambda i, j, k, n: (i == 0) & (j == k))),
    ("upper", "the upper triangle alone", _summed(lambda i, j, k, n: (i + j == k) & (i <= j))),
    ("float16", "in float16", {"h": float16}),
    ("bfloat16", "in bfloat16", {"h": bfloat16}),
    ("sign", "the other sign", {"h": np.negative}),
    ("mean", "the mean of an antidiagonal",
     {"h": lambda g: (g / np.arange(1, g.shape[-1] + 1)).astype(g.dtype)}),
    by="gradient",
)  # fmt: skip
HANKEL.plant(("as_jax", "the conjugate convention", {"h": np.conj}), by="gradient[complex64]")
