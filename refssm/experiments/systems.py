"""The systems of the experiments, by name, and the numbers of an experiment as a table."""

from typing import NamedTuple

import numpy as np

import refssm


class Table(NamedTuple):
    """A table of texts: the first column names a row, the others have its numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def told(value: float, least: float = 0.0) -> str:
    """Three digits, or "< least" if smaller, where only rounding errors remain."""
    return f"< {least:.0e}" if value < least else f"{value:.3g}"


class Diagonal(NamedTuple):
    """A diagonal system G(s) = Σ_j v_j / (s − w_j), with B_j C_j = v_j."""

    w: np.ndarray
    v: np.ndarray


def normal(rng, n):
    """n random complex numbers with mean |·|² = 1."""
    return (rng.standard_normal(n) + 1j * rng.standard_normal(n)) * np.sqrt(0.5)


def pairs(w, v):
    """Both modes of every conjugate pair."""
    return Diagonal(np.concatenate([w, w.conj()]), np.concatenate([v, v.conj()]))


def s4d_lin(rng, n):
    """S4D-Lin with n modes."""
    return Diagonal(refssm.s4d_lin(n=n), normal(rng, n))


def slower(rng, n):
    """S4D-Lin with a memory a hundred times as long: Re w = −0.005."""
    w = refssm.s4d_lin(n=n)
    return Diagonal(w.real / 100 + 1j * w.imag, normal(rng, n))


def s4d_inv(rng, n):
    """S4D-Inv with n modes."""
    return Diagonal(refssm.s4d_inv(n=n), normal(rng, n))


def s5(rng, n):
    """One channel of an S5 layer with n states: 4 blocks of LegS's normal part, random B, C."""
    w, V = refssm.block_diagonal(n=n, blocks=4)
    B, C = V.conj().T @ rng.standard_normal(n), rng.standard_normal(n) @ V
    return Diagonal(w, B * C)


def disc(rng, n):
    """Discrete poles a, uniform in the unit disc, mapped by w = (a − 1)/(a + 1).

    With z = (1 + s)/(1 − s), r/(z − a) is a constant plus 2r/(1 + a)²/(s − w), so the Hankel
    singular values are the same.
    """
    a, _ = refssm.lru_ring(rng.random(n), rng.random(n))
    return Diagonal((a - 1) / (a + 1), 2 * normal(rng, n) / (1 + a) ** 2)


def radial(rng, n, alpha):
    """Discrete poles a with uniform angles and P(1 − |a| ≤ r) = r^α, mapped as in `disc`.

    Re w = −(1 − |a|²)/|1 + a|² is computed from 1 − |a|: for small α some poles are nearer to the
    circle than the roundings of |a|.
    """
    gap = rng.random(n) ** (1 / alpha)
    a = (1 - gap) * np.exp(2j * np.pi * rng.random(n))
    w = (-gap * (2 - gap) + 2j * a.imag) / np.abs(1 + a) ** 2
    return Diagonal(w, 2 * normal(rng, n) / (1 + a) ** 2)


def ring(rng, n):
    """Discrete poles of LRU, uniform between the radii 0.9 and 0.999, mapped as in `disc`."""
    a, _ = refssm.lru_ring(rng.random(n), rng.random(n), r_min=0.9, r_max=0.999)
    return Diagonal((a - 1) / (a + 1), 2 * normal(rng, n) / (1 + a) ** 2)


def line(rng, n):
    """Poles −½ + iy, y normal with standard deviation 10."""
    return Diagonal(-0.5 + 10j * rng.standard_normal(n), normal(rng, n))


def equal(rng, n):
    """Equal poles −½ with residues 1: the worst system for the bounds."""
    return Diagonal(np.full(n, -0.5 + 0j), np.ones(n, complex))


def singular_values(system):
    """The Hankel singular values of a diagonal system, descending, in n² steps and one SVD.

    P = L Lᴴ, P_ij = −v_i v_j*/(w_i + w_j*), and Q is the same for w* and ones. Schur complements of
    Cauchy-like matrices are Cauchy-like, so the pivots need no subtraction. The SVD is accurate for
    values above 1e-16 of the largest, which is enough for ranks, and fast enough at n = 512.
    """
    L, M = _factor(system.w, system.v), _factor(system.w.conj(), np.ones_like(system.v))
    return np.linalg.svd(M.conj().T @ L, compute_uv=False)


def markov_singular_values(h):
    """Singular values of h_(i+j) (0 beyond the end): those of HOPE, for every `dt`."""
    return np.linalg.svd(refssm.hankel_matrix(h), compute_uv=False)


def _factor(w, g):
    """L with L Lᴴ = −g_i g_j*/(w_i + w_j*), largest pivots first."""
    columns, least = [], 0.0
    for _ in range(len(w)):
        pivots = np.abs(g) ** 2 / (-2 * w.real)
        p = pivots.argmax()
        if pivots[p] <= least:  # the rest of L is below a rounding error of its largest entry
            break
        least = least or np.finfo(float).eps ** 2 / len(w) * pivots[p]
        columns.append(-g * g[p].conj() / (w + w[p].conj()) / np.sqrt(pivots[p]))
        g = g * (w - w[p]) / (w + w[p].conj())
    return np.stack(columns, axis=-1)
