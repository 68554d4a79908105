"""Planted bugs in Hankel matrices and their gradients."""

import numpy as np

from refssm.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting_old import Planting
from refssm.hankel import HANKEL_MATRIX

HANKEL = Planting(HANKEL_MATRIX, "float32")
right, wrong = HANKEL.right, HANKEL.forward
HANKEL.usual()
# no argument has the memory of a matrix
HANKEL.bugs = [bug for bug in HANKEL.bugs if bug.name != "returns_input"]


def indices(h):
    """i and j."""
    return np.ogrid[: h.shape[-1], : h.shape[-1]]


def read(h, places):
    """h at `places`, 0 outside."""
    n = h.shape[-1]
    inside = (places >= 0) & (places < n)
    return np.where(inside, h[..., np.where(inside, places, 0)], 0).astype(h.dtype)


def at(places):
    """h at places(i, j, n), 0 outside."""
    return lambda h: read(h, places(*indices(h), h.shape[-1]))


FORWARD = {
    "base_one": ("h_{i+j+1}: from h_1 on", at(lambda i, j, n: i + j + 1)),
    "base_minus_one": ("h_{i+j−1}: counted from one", at(lambda i, j, n: i + j - 1)),
    "wrapped": ("h_{(i+j) mod n}: a circulant", at(lambda i, j, n: (i + j) % max(n, 1))),
    "last_repeated": (
        "the last value beyond the end",
        at(lambda i, j, n: np.minimum(i + j, n - 1)),
    ),
    "toeplitz": ("h_{i−j}: a Toeplitz matrix", at(lambda i, j, n: i - j)),
    "toeplitz_symmetric": ("h_|i−j|", at(lambda i, j, n: np.abs(i - j))),
    "toeplitz_upper": ("h_{j−i}", at(lambda i, j, n: j - i)),
    "reversed": ("the last row first", at(lambda i, j, n: n - 1 - i + j)),
    "both_reversed": ("h_{2(n−1)−i−j}", at(lambda i, j, n: 2 * (n - 1) - i - j)),
    "last_dropped": (
        "the antidiagonal zero",
        at(lambda i, j, n: np.where(i + j < n - 1, i + j, n)),
    ),
    "first_row": ("only the first row", at(lambda i, j, n: np.where(i > 0, n, j))),
    "doubled": ("2h for h", lambda h: 2 * right(h)),
    "product": ("h_{i·j}", at(lambda i, j, n: i * j)),
    "flushed": ("zero beyond 64", at(lambda i, j, n: np.where(i + j < 64, i + j, n))),
    "blocks": ("a new start every 32 rows", at(lambda i, j, n: i % 32 + j)),
    "sign": (
        "alternating signs",
        lambda h: right(h) * (1 - 2 * (np.arange(h.shape[-1]) % 2)).astype(h.dtype),
    ),
}
COMPLEX = {
    "conjugated": ("h*", lambda h: right(h.conj())),
    "hermitian": (
        "the lower triangle conjugated",
        lambda h: np.where(np.tri(h.shape[-1], k=-1) > 0, right(h).conj(), right(h)),
    ),
    "real_part": ("the real part", lambda h: right(h).real.astype(h.dtype)),
}
for _table, _dtype in ((FORWARD, ""), (COMPLEX, "complex64")):
    for _name, (_what, _matrix) in _table.items():
        wrong(_name, _what, dtype=_dtype)(_matrix)


def summed(where, change=lambda g: g):
    """The sum of dH over the places where(i, j, k, n) is true, for every k."""

    def vjp(dH, h):
        (i, j), n = indices(h), h.shape[-1]
        sums = [np.where(where(i, j, k, n), dH, 0).sum((-2, -1)) for k in range(n)]
        dh = np.stack(sums, -1) if n else dH[..., 0]
        return (unbroadcast(change(dh).astype(dH.dtype), h),)

    return vjp


GRADIENTS = {
    "index_base": ("the next antidiagonal", summed(lambda i, j, k, n: i + j == k + 1)),
    "wrapped": ("beyond the end too", summed(lambda i, j, k, n: (i + j) % n == k)),
    "diagonals": ("diagonals for antidiagonals", summed(lambda i, j, k, n: i - j == k)),
    "row": ("the first row alone", summed(lambda i, j, k, n: (i == 0) & (j == k))),
    "upper": ("the upper triangle alone", summed(lambda i, j, k, n: (i + j == k) & (i <= j))),
    "float16": ("in float16", summed(lambda i, j, k, n: i + j == k, float16)),
    "bfloat16": ("in bfloat16", summed(lambda i, j, k, n: i + j == k, bfloat16)),
    "sign": ("the other sign", summed(lambda i, j, k, n: i + j == k, np.negative)),
    "mean": (
        "the mean of an antidiagonal",
        summed(lambda i, j, k, n: i + j == k, lambda g: g / np.arange(1, g.shape[-1] + 1)),
    ),
}
for _name, (_what, _vjp) in GRADIENTS.items():
    HANKEL.gradient(_name, _what)(_vjp)
HANKEL.gradient("as_jax", "the conjugate convention", "complex64")(
    summed(lambda i, j, k, n: i + j == k, np.conj)
)

DEVIATIONS = HANKEL.bugs
