"""Initial poles of diagonal models, in closed form except those of HiPPO-LegS.

S4D keeps one mode of each conjugate pair: n modes represent N = 2n states [gu2022s4d]. LRU draws
discrete poles from a ring [orvieto2023lru].
"""

import numpy as np
from scipy.linalg import eigvalsh

from refssm.hippo.systems import rows_and_columns, size


def s4d_lin(*, n):
    """w_k = −½ + iπk, k = 0 … n−1.

    `n` modes, complex; w_0 is real and has no partner. ValueError if `n` is not an integer ≥ 1.
    Source: [gu2022s4d].

    >>> import refssm
    >>> refssm.s4d_lin(n=3).round(4)
    array([-0.5+0.j    , -0.5+3.1416j, -0.5+6.2832j])
    """
    return -0.5 + 1j * np.pi * np.arange(size("s4d_lin", n))


def s4d_inv(*, n):
    """w_k = −½ + i(N/π)(N/(2k+1) − 1), N = 2n, k = 0 … n−1.

    `n` modes, complex, the fastest first. Errors and source: as in `s4d_lin`.

    >>> import refssm
    >>> refssm.s4d_inv(n=2).round(4)
    array([-0.5+3.8197j, -0.5+0.4244j])
    """
    k, N = np.arange(size("s4d_inv", n)), 2 * n
    return -0.5 + 1j * (N * (N - (2 * k + 1)) / (np.pi * (2 * k + 1)))  # N/(2k+1) − 1 cancels


def s4d_quad(*, n):
    """w_k = −½ + i(2k+1)²/π, k = 0 … n−1.

    `n` modes, complex. Errors and source: as in `s4d_lin`.

    >>> import refssm
    >>> refssm.s4d_quad(n=2).round(4)
    array([-0.5+0.3183j, -0.5+2.8648j])
    """
    return -0.5 + 1j * ((2 * np.arange(size("s4d_quad", n)) + 1) ** 2 / np.pi)


def s4d_real(*, n):
    """w_k = −(k+1), k = 0 … n−1.

    `n` modes, real: the diagonal of HiPPO-LegS. Errors and source: as in `s4d_lin`.

    >>> import refssm
    >>> refssm.s4d_real(n=3)
    array([-1., -2., -3.])
    """
    return -(np.arange(size("s4d_real", n)) + 1.0)


def s4d_legs(*, n):
    """The eigenvalues with Im w > 0 of HiPPO-LegS with 2n states, without its rank-one part.

    A + p pᵀ with p_i = √(i+½) is −½I + S, S_ik = −½√((2i+1)(2k+1)) below the diagonal and Sᵀ = −S:
    w = −½ + iλ, λ the positive eigenvalues of −iS, ascending. `n` modes, complex; Re w is exact,
    Im w has an error of a few u·‖S‖. Errors and source: as in `s4d_lin`.

    >>> import refssm
    >>> refssm.s4d_legs(n=1).round(4)
    array([-0.5+0.866j])
    """
    i, k = rows_and_columns(2 * size("s4d_legs", n))
    S = np.sign(k - i) * (0.5 * np.sqrt((2 * i + 1) * (2 * k + 1)))
    return -0.5 + 1j * eigvalsh(-1j * S)[n:]


def lru_ring(u1, u2, *, r_min=0.0, r_max=1.0, max_phase=2 * np.pi):
    """λ = r e^{iθ} with r² = r_min² + u1 (r_max² − r_min²), θ = max_phase·u2;  γ = √(1 − r²).

    `u1` and `u2` are numbers from 0 to 1, of one shape: for random poles, two of
    ``np.random.default_rng(seed).random(n)``; the poles are then uniform over the ring. Returns λ,
    complex, and γ, both in double precision. Near r = 1 the difference 1 − |λ|² would cancel; here
    r² and 1 − r² are sums of positive numbers. r = 0 gives γ = 1. r = 1 gives γ = 0, a mode without
    input, with log γ = −∞.

    Raises ValueError unless all `u1` and `u2` are from 0 to 1 and 0 ≤ r_min ≤ r_max ≤ 1.
    Source: [orvieto2023lru].

    >>> import refssm
    >>> a, gamma = refssm.lru_ring([0.0, 1.0], [0.0, 0.5], r_min=0.6, r_max=0.8)
    >>> a.round(12) + 0.0, gamma.round(12)
    (array([ 0.6+0.j, -0.8+0.j]), array([0.8, 0.6]))
    """
    if not 0 <= r_min <= r_max <= 1:
        msg = f"must satisfy 0 <= r_min <= r_max <= 1, got {r_min!r} and {r_max!r}"
        raise ValueError(f"lru_ring: `r_min` and `r_max` {msg}")
    u1, u2 = (_fractions(name, u) for name, u in (("u1", u1), ("u2", u2)))
    if u1.shape != u2.shape:
        raise ValueError(f"lru_ring: `u2` has shape {u2.shape}, but `u1` has {u1.shape}")
    width = (r_max - r_min) * (r_max + r_min)
    square, rest = r_min**2 + u1 * width, (1 - r_max) * (1 + r_max) + (1 - u1) * width
    return np.sqrt(square) * np.exp(1j * (max_phase * u2)), np.sqrt(rest)


def _fractions(name, u):
    """`u` as an array; ValueError unless all numbers are from 0 to 1."""
    u = np.asarray(u, dtype=np.float64)
    if not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"lru_ring: `{name}` must be from 0 to 1, got {u[~((u >= 0) & (u <= 1))]}")
    return u
