"""Error rules of linear systems and matrix exponentials: one normwise bound for all entries.

Bounds that follow an elimination or repeated squaring operation by operation are too large to use.
Known bounds are normwise: a solver leaves a residual of n u (‖M‖ ‖X‖ + ‖N‖), and an exponential has
an error of a few u κ ‖e^G‖ [higham2005expm]. Importing this module registers the rules.
"""

from functools import lru_cache
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from refssm._numerics.expm import DEGREE, expm, expm_derivative
from refssm._numerics.powers import states
from refssm._numerics.triangular import unit_lower_inverse
from refssm.conformance.gauges.rules import rule, tree
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met
from refssm.dplr.system import around_the_circle

CHARGE = (
    2.5  # for one exponential, allowed 16 times: docs/decisions.md has what right programs err by
)
TRANSFORMS = 3  # of a convolution: two forward, one inverse
EXACT_CONDITION = 12  # above this size the condition number is estimated
POWER_STEPS = 4


def frobenius(x):
    """‖x‖_F of the last two axes."""
    return np.sqrt((np.abs(x) ** 2).sum((-2, -1)))


def two_norm(x):
    """‖x‖₂ along the last axis, which stays with length 1; squares neither under- nor overflow."""
    size = np.abs(x)
    largest = size.max(-1, keepdims=True, initial=0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return unit * np.sqrt(((size / unit) ** 2).sum(-1, keepdims=True))


def same_everywhere(value, k0, k1) -> Tracked:
    """`value`, with one k0 and one k1 for all entries of each matrix."""
    met(np.abs(value))
    bounds = np.stack(np.broadcast_arrays(k0, k1), axis=-1)[..., None, None, :]
    return Tracked(value, np.broadcast_to(bounds, (*value.shape, 2)).copy())


def norms_of_errors(x: Tracked):
    """‖errors‖_F for k0 and for k1."""
    return (frobenius(x.errors[..., 0]), frobenius(x.errors[..., 1]))


@rule(FUNCTIONS, np.linalg.solve)
def _solve(M, N):
    M, N = lifted(M), lifted(N)
    X = np.linalg.solve(M.value, N.value)
    amplified, size = spectral_norm(np.linalg.inv(M.value)), frobenius(X)
    residual = M.shape[-1] * (frobenius(M.value) * size + frobenius(N.value))
    carried = zip(norms_of_errors(M), norms_of_errors(N), strict=True)
    return same_everywhere(X, *(amplified * (residual + m * size + n) for m, n in carried))


@rule(FUNCTIONS, unit_lower_inverse)
def _unit_lower_inverse(L):
    """|X| (errors of L + roundings of a row's sum, for each product) |X|, entry by entry."""
    X, strict = unit_lower_inverse(L.value), np.tril(np.abs(L.value), -1)
    size, charge = np.abs(X), 1 + tree(L.shape[-1])
    met(size)
    made = [np.tril(L.errors[..., k], -1) + charge * strict for k in (0, 1)]
    return Tracked(X, np.stack([size @ e @ size for e in made], axis=-1))


def spectral_norm(x):
    """‖x‖₂, infinite where x is not finite."""
    finite = np.isfinite(x).all((-2, -1))
    norms = np.linalg.norm(np.where(np.isfinite(x), x, 0), 2, axis=(-2, -1)) if x.size else 0.0
    return np.where(finite, norms, np.inf)


@rule(FUNCTIONS, expm)
def _expm(G):
    """e^G: its own rounding errors, plus the errors of G times the norm of the derivative."""
    E, bound = expm(G.value), exponential_bound(G.value)
    derivative_norm = quotient(bound / CHARGE, frobenius(G.value))  # an upper bound of ‖derivative‖
    return same_everywhere(E, *(bound + derivative_norm * e for e in norms_of_errors(G)))


@rule(FUNCTIONS, expm_derivative)
def _expm_derivative(G, E):
    # The derivative is a block of the exponential of [[G, E], [0, G]]. It is linear in E, so E is
    # scaled to the norm of G first and the result is scaled back.
    G, E = lifted(G), lifted(E)
    size, direction = frobenius(G.value), frobenius(E.value)
    unit = np.where(size > 0, size, 1.0)
    scaled = E.value * quotient(unit, direction)[..., None, None]
    above = np.concatenate(np.broadcast_arrays(G.value, scaled), axis=-1)
    below = np.concatenate(np.broadcast_arrays(0 * scaled, G.value), axis=-1)
    bound = exponential_bound(np.concatenate([above, below], axis=-2)) * direction / unit
    slope = quotient(exponential_bound(G.value) / CHARGE, size)
    both = zip(norms_of_errors(G), norms_of_errors(E), strict=True)
    value = expm_derivative(G.value, E.value)
    return same_everywhere(value, *(bound + bound / CHARGE / unit * g + slope * e for g, e in both))


@rule(FUNCTIONS, states)
def _states(A, u):
    """‖error of x_k‖ ≤ Σ_i ‖A^i‖ · (error of step k − i)."""
    A, u = lifted(A), lifted(u)
    x = states(A.value, u.value)
    powers = _norms_of_powers(A.value, u.shape[-2])
    size = np.concatenate([np.zeros_like(x[..., :1, :]), x[..., :-1, :]], axis=-2)
    size = length_of(size)
    rounded = product_errors(A.shape[-1]) * powers[..., 1:2, None]
    made = _random_norms(A)[..., None, :] + rounded
    brought = made * size[..., None] + np.sqrt((u.errors**2).sum(-2))
    brought = brought + length_of(u.value)[..., None]
    batch = brought.shape[:-2]
    carried = np.zeros_like(brought)
    for i in np.ndindex(*batch):
        p = np.broadcast_to(powers, (*batch, powers.shape[-1]))[i][: brought.shape[-2]]
        for gauge in (0, 1):
            carried[(*i, slice(None), gauge)] = _convolved(p, brought[(*i, slice(None), gauge)])
    met(np.abs(x))
    return _even(x, carried[..., None, :])


@rule(FUNCTIONS, around_the_circle)
def _around_the_circle(l, *arguments):
    """1 ± z, where z is rounded once unless it is exactly 1, −1 or ±i."""
    values = around_the_circle(l, *(lifted(x).value for x in arguments))
    rounding = np.where(4 * np.arange(l) % max(l, 1) == 0, 0.0, 1.0)
    return tuple(Tracked(v, np.stack([rounding, rounding], axis=-1)) for v in values)


@rule(FUNCTIONS, np.fft.fft)
def _fft(x):
    """log2(2l) ‖x‖₂ for every entry: each stage rounds once, and roundings are independent."""
    X, length = np.fft.fft(x.value), max(1, x.shape[-1])
    made = np.log2(2 * length) * length_of(x.value)
    met(np.abs(X))
    return _alike(X, (made[..., None] + x.errors.sum(-2))[..., None, :])


def _random_norms(x: Tracked):
    """‖errors‖₂ of independent entries, for k0 and k1: largest row norm plus largest column norm.

    This is the 2-norm of a matrix with entries of random signs, up to a constant [bandeira2016];
    the Frobenius norm would assume that all errors add up.
    """
    squares = x.errors**2
    return np.sqrt(squares.sum(-2).max(-2, initial=0)) + np.sqrt(squares.sum(-3).max(-2, initial=0))


def product_errors(n):
    """‖error‖₂ / (‖A‖₂ ‖B‖₂) of a product of n×n matrices whose entries have independent errors."""
    return 3 + tree(n)


def length_of(x):
    """‖x‖₂ of the last axis."""
    return np.sqrt((np.abs(x) ** 2).sum(-1))


def _even(value, errors):
    """`value` with one error for all entries along the last axis: `errors` is its 2-norm there."""
    return _alike(value, errors / np.sqrt(max(1, value.shape[-1])))


def _alike(value, errors):
    """`value` with `errors` broadcast along its last axis."""
    return Tracked(value, np.broadcast_to(errors, (*value.shape, 2)).copy())


def _norms_of_powers(A, l):
    """Bounds ≥ ‖A^i‖₂ for i = 0 … l: products of the norms of A, A², A⁴ …."""
    norms, power = np.ones((*A.shape[:-2], 1)), A
    while norms.shape[-1] <= l:
        norms = np.concatenate([norms, norms * spectral_norm(power)[..., None]], axis=-1)
        power = power @ power
    return norms


def _convolved(p, x):
    """Σ_i p_i x_{k−i} for nonnegative p and x."""
    return np.convolve(p, x)[: len(x)] if len(x) else x


def exponential_bound(G):
    """2.5 max(1, κ) max(1, ‖e^G‖_F) for each matrix of a batch."""
    size = np.maximum(1, frobenius(expm(G)))  # an Ā that has decayed below u may be 0
    return CHARGE * np.maximum(1, condition(G)) * size


class BlockBounds(NamedTuple):
    """The bounds of one block of an exponential, for each matrix of a batch."""

    own: np.ndarray  # dt A is off by u max(1, ‖dt A‖)
    backward: np.ndarray  # dt A is off by u max(1, ‖[dt A, dt B]‖)


def blocks_of_exponential(G, n: int, floor: float) -> tuple[BlockBounds, BlockBounds]:
    """The bounds of Ā, n × n, and of what stands right of it in e^G: φ₁(dt A) dt B, and more.

    The first n rows of G are [dt A, dt B, …]. Each block is measured by how far it moves itself, so
    that none hides in the norm of another one. A program that scales G by its own norm errs as if
    dt A were off by u times that norm, and is backward stable.
    """
    F, rows, batch = G[..., :n, :n], G[..., :n, :], G.shape[:-2]
    own, whole = (np.maximum(1, frobenius(x)) for x in (F, rows))
    inputs, columns = frobenius(rows[..., n:]), G.shape[-1] - n
    first = exponential_bound(F)
    moved, held, most = (np.ones(batch) for _ in range(3))
    for i in np.ndindex(*batch):
        told = F[i].astype(np.result_type(G, np.float64))
        of = told.tobytes(), told.dtype, n
        (moved[i], held[i]), (most[i], _) = _norms_of_hold(*of), _norms_of_exponential(*of)
    with np.errstate(all="ignore"):
        # a scaled dt B loses what is below the smallest number, and each squaring doubles that
        underflows = floor * (n + 1) * np.sqrt(n * columns) * whole * np.maximum(1, held)
        right = [CHARGE * (moved * w + held) * inputs + underflows for w in (own, whole)]
        wider = np.maximum(first, CHARGE * most * whole)
    known = np.isfinite(G).all((-2, -1))
    told = BlockBounds(first, wider), BlockBounds(*right)
    return tuple(BlockBounds(*(np.where(known, k, np.inf) for k in block)) for block in told)


@lru_cache(4096)
def _norms_of_hold(entries, dtype, n) -> tuple[float, float]:
    """The norm of the derivative of φ₁(F), and ‖φ₁‖₂ + ‖φ₂‖₂."""
    F = np.frombuffer(entries, dtype).reshape(n, n)
    if not _bounded(F) or not n:
        return (0.0, 0.0) if not n else (np.inf, np.inf)
    hold = _Hold(F)
    slope = _norm_of_derivative if n <= EXACT_CONDITION else _estimated_norm
    return slope(hold), float(spectral_norm(hold.value) + spectral_norm(hold.joined))


def condition(G):
    """Relative condition number of e^G in the Frobenius norm, for each matrix of a batch."""
    kappa = np.ones(G.shape[:-2])
    for i in np.ndindex(*G.shape[:-2]):
        one = G[i].astype(np.result_type(G, np.float64))
        slope, size = _norms_of_exponential(one.tobytes(), one.dtype, len(one))
        if slope == np.inf:
            kappa[i] = np.inf
        elif size and one.any():  # where e^G underflows: as for κ = 1
            kappa[i] = slope * float(frobenius(one)) / size
    return kappa


def _bounded(G) -> bool:
    """True if e^G is finite, and what a program needs for it."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(G @ G).all() and np.isfinite(expm(G)).all())


@lru_cache(4096)
def _norms_of_exponential(entries, dtype, n) -> tuple[float, float]:
    """The norm of the derivative of e^G, and ‖e^G‖_F."""
    G = np.frombuffer(entries, dtype).reshape(n, n)
    if not _bounded(G):
        return np.inf, np.inf
    if not n:
        return 0.0, 0.0
    few = n <= EXACT_CONDITION
    exponential = _Exponential(G, 0 if few else squarings(G) - 1)
    slope = _norm_of_derivative(exponential) if few else _estimated_norm(exponential)
    return slope, float(frobenius(exponential.value))


def _norm_of_derivative(exponential):
    """The largest singular value of the derivative, from its matrix of n² columns."""
    n = len(exponential.G)
    units = np.eye(n * n).reshape(n * n, n, n)
    return float(spectral_norm(exponential.derivative(units).reshape(n * n, n * n)))


def _estimated_norm(exponential):
    """A lower bound of the norm of L, the derivative, by power iteration on L*L from e^G.

    A few steps come close to it.
    """
    direction, slope = exponential.value, 0.0
    for _ in range(POWER_STEPS):
        there = exponential.derivative(direction / frobenius(direction))
        slope = float(frobenius(there))
        if slope == 0:
            break
        direction = exponential.derivative(there.conj().T).conj().T  # L* E = (L Eᴴ)ᴴ
    return slope


def squarings(G):
    """Smallest s ≥ 0 with ‖G‖₁ ≤ 2^(s−1)."""
    norm = float(np.abs(G).sum(0).max(initial=0))
    return max(0, ceil(log2(2 * norm))) if norm > 0 else 0


class _Exponential:
    """e^G by the steps of `_numerics.expm`, all kept, so a derivative is two products a step.

    `expm_derivative` has matrices of twice the size: eight times the work, for each direction. The
    first `near` squarings are those of e^G − I, as there; the others square e^G, which keeps the
    digits of what decays.
    """

    def __init__(self, G, near):
        steps, I = squarings(G), np.eye(len(G))
        self.scale = 0.5**steps
        self.G = G * self.scale
        self.sums = [self.G / DEGREE]
        for k in range(DEGREE - 1, 0, -1):
            self.sums.append((self.G + self.G @ self.sums[-1]) / k)
        D, self.rests, self.powers = self.sums.pop(), [], []
        for _ in range(near):
            self.rests.append(D)
            D = 2 * D + D @ D
        self.value = I + D
        for _ in range(steps - len(self.rests)):
            self.powers.append(self.value)
            self.value = self.value @ self.value

    def derivative(self, E):
        """The derivative of e^G in the direction E."""
        E = E * self.scale
        slope = E / DEGREE
        for k, D in zip(range(DEGREE - 1, 0, -1), self.sums, strict=True):
            slope = (E + E @ D + self.G @ slope) / k
        for D in self.rests:
            slope = 2 * slope + slope @ D + D @ slope
        for power in self.powers:
            slope = slope @ power + power @ slope
        return slope


class _Hold:
    """φ₁(G), φ₂(G) = `joined`, and the derivative of φ₁, with the interface of `_Exponential`.

    φ₁(2z) = ½ (e^z + 1) φ₁(z), φ₂(2z) = ½ φ₂(z) + ¼ φ₁(z)².
    """

    def __init__(self, G):
        steps, I = squarings(G), np.eye(len(G))
        self.scale, self.I = 0.5**steps, I
        self.G = G * self.scale
        self.sums = [I]
        for k in range(DEGREE, 0, -1):  # I + G/2! + G²/3! + …
            self.sums.append(I + self.G @ self.sums[-1] / (k + 1))
        self.value, self.joined, joined = self.sums.pop(), I / 2, I
        for k in range(DEGREE, 0, -1):  # I/2! + G/3! + …
            joined = I + self.G @ joined / (k + 2)
        self.joined, e, self.levels = joined / 2, I + self.G @ self.value, []
        for _ in range(steps):
            self.levels.append((e, self.value))
            self.joined = self.joined / 2 + self.value @ self.value / 4
            self.value, e = (e + I) @ self.value / 2, e @ e

    def derivative(self, E):
        """The derivative of φ₁ in the direction E."""
        E = E * self.scale
        slope = np.zeros_like(E)
        for k, held in zip(range(DEGREE, 0, -1), self.sums, strict=True):
            slope = (E @ held + self.G @ slope) / (k + 1)
        first = self.levels[0][1] if self.levels else self.value
        of_e = E @ first + self.G @ slope
        for e, held in self.levels:
            slope = (of_e @ held + slope + e @ slope) / 2
            of_e = of_e @ e + e @ of_e
        return slope


def quotient(x, y):
    """x / y, or 0 where y is 0."""
    return np.where(y > 0, x / np.where(y > 0, y, 1), 0.0)
