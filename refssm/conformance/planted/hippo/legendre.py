"""Planted bugs in HiPPO with Legendre and Chebyshev polynomials."""

import numpy as np

from refssm.conformance.planted.hippo.base import Making, windowed
from refssm.hippo import HIPPO_CHEBT, HIPPO_LEGS, HIPPO_LEGT, HIPPO_LMU


def root(i):
    """√(2i+1)."""
    return np.sqrt(2 * i + 1)


def sign(power):
    """(−1)^power."""
    return np.where(power % 2, -1.0, 1.0)


def lower(i, k, below, on):
    """A triangle and its diagonal."""
    return np.where(i > k, below, np.where(i == k, on, 0.0))


def roots(i, k):
    """√((2i+1)(2k+1))."""
    return root(i) * root(k)


LEGS, LEGT, LMU, CHEBT = map(Making, (HIPPO_LEGS, HIPPO_LEGT, HIPPO_LMU, HIPPO_CHEBT))
for _p in (LEGS, LEGT, LMU, CHEBT):
    _p.usual()
for _p in (LEGT, LMU, CHEBT):
    windowed(_p)

LEGS.entries("diagonal_from_0", "−i on the diagonal", lambda i, k: lower(i, k, -roots(i, k), -i))
LEGS.entries(
    "diagonal_of_normal", "−(i+½) on it", lambda i, k: lower(i, k, -roots(i, k), -(i + 0.5))
)
LEGS.entries(
    "diagonal_squared", "−(2i+1) on it", lambda i, k: lower(i, k, -roots(i, k), -(2 * i + 1))
)
LEGS.entries("whole", "nothing masked", lambda i, k: np.where(i == k, -(i + 1), -roots(i, k)))
LEGS.entries(
    "no_root", "(2i+1)(2k+1) below", lambda i, k: lower(i, k, -((2 * i + 1) * (2 * k + 1)), -i - 1)
)
LEGS.entries("rows_only", "−(2i+1) below", lambda i, k: lower(i, k, -(2 * i + 1), -i - 1))
LEGS.entries(
    "from_1",
    "√((2i−1)(2k−1)), as if i were counted from 1",
    lambda i, k: lower(i, k, -roots(abs(i - 1), abs(k - 1)), -i - 1),
)
LEGS.entries("alternating", "signs of LMU in B", None, lambda i: sign(i) * root(i))
LEGS.entries("B_no_root", "B_i = 2i+1", None, lambda i: 2 * i + 1)
LEGS.entries(
    "normal_part",
    "HiPPO-N: A + p pᵀ, B halved",
    lambda i, k: -0.5 * np.eye(len(i)) + np.sign(k - i) * roots(i, k) / 2,
    lambda i: root(i) / 2,
)

LEGT.entries("unsigned", "no signs above", lambda i, k, window: -roots(i, k) / window)
LEGT.entries(
    "signs_below",
    "the signs below the diagonal",
    lambda i, k, window: -roots(i, k) * np.where(i > k, sign(i - k), 1) / window,
)
LEGT.entries(
    "signs_everywhere",
    "(−1)^{i−k} on both sides",
    lambda i, k, window: -roots(i, k) * sign(i - k) / window,
)
LEGT.entries(
    "masked", "nothing above, as legs", lambda i, k, window: -roots(i, k) * (i >= k) / window
)
LEGT.entries(
    "rows_only",
    "(2i+1) for the root",
    lambda i, k, window: -(2 * i + 1) * np.where(i < k, sign(i - k), 1) / window,
)
LEGT.entries("alternating", "signs of LMU in B", None, lambda i, window: sign(i) * root(i) / window)
LEGT.wrong("lmu", "LMU for LegT", lambda *, n, window: HIPPO_LMU.reference(n=n, window=window))

LMU.entries(
    "sign_of_triangle",
    "(−1)^{i−k} below",
    lambda i, k, window: (2 * i + 1) / window * np.where(i < k, -1, sign(i - k)),
)
LMU.entries(
    "sign_above",
    "+1 above",
    lambda i, k, window: (2 * i + 1) / window * np.where(i < k, 1, -sign(i - k)),
)
LMU.entries(
    "columns",
    "2k+1 for 2i+1",
    lambda i, k, window: (2 * k + 1) / window * np.where(i < k, -1, -sign(i - k)),
)
LMU.entries(
    "diagonal_above",
    "the diagonal counted to the upper triangle of the other sign",
    lambda i, k, window: (2 * i + 1) / window * np.where(i <= k, 1 - 2 * (i < k), -sign(i - k)),
)
LMU.entries("B_unsigned", "B without signs", None, lambda i, window: (2 * i + 1) / window)
LMU.entries("B_root", "√(2i+1) in B", None, lambda i, window: sign(i) * root(i) / window)
LMU.wrong("legt", "LegT for LMU", lambda *, n, window: HIPPO_LEGT.reference(n=n, window=window))


def _chequered(i, k, window, first):
    odd = (i > k) & ((i - k) % 2 == 1)
    return -4 * i * odd / window * np.where(k == 0, first, 1.0)


def _columns(i, k, window):
    return -4 * k * ((i > k) & ((i - k) % 2 == 1)) / window


CHEBT.entries("first_column", "1 for 1/√2", lambda i, k, window: _chequered(i, k, window, 1.0))
CHEBT.entries("first_halved", "½ for 1/√2", lambda i, k, window: _chequered(i, k, window, 0.5))
CHEBT.entries("first_grown", "√2 for 1/√2", lambda i, k, window: _chequered(i, k, window, 2**0.5))
CHEBT.entries("columns", "4k for 4i", _columns)
CHEBT.entries(
    "dense", "even differences too", lambda i, k, window: -4 * i * (i > k) / window + 0 * k
)
CHEBT.entries(
    "even",
    "even differences for odd ones",
    lambda i, k, window: -4 * i * ((i > k) & ((i - k) % 2 == 0)) / window,
)
CHEBT.entries("B_flat", "B without the √2", None, lambda i, window: np.sqrt(8) / (np.pi * window))
CHEBT.entries(
    "B_no_pi", "B without 1/π", None, lambda i, window: np.where(i == 0, 8**0.5, 4) / window
)

DEVIATIONS = [*LEGS.bugs, *LEGT.bugs, *LMU.bugs, *CHEBT.bugs]
