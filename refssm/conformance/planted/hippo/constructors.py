"""Planted bugs in HiPPO's A and B: Legendre, Chebyshev, Laguerre and Fourier bases.

A constructor has no arrays to change: its right program is called as right(**given). The first
functions are mistakes in any constructor of A and B, with or without a window.
"""

from functools import partial

import numpy as np
from scipy.special import binom, gamma, gammaln

from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.planting import (
    Planting,
    every_third_call,
    instead,
    of_each_result,
    of_result,
)


def of_keywords(**changes):
    """The right program with changed keyword arguments."""

    def program(right, *args, **given):
        return right(*args, **given | {name: of(given[name]) for name, of in changes.items()})

    return program


def entries(A=None, B=None):
    """Other entries: of A by `i`, `k` and the keywords, of B by `i`; None keeps the right ones.

    All entries are divided by the window if there is one.
    """

    def program(right, *, n, **given):
        i, (right_A, right_B) = np.arange(n, dtype=float), right(n=n, **given)
        w = given.pop("window", 1.0)
        made_A = right_A if A is None else A(i[:, None], i, **given) / w + np.zeros((n, n))
        return made_A, right_B if B is None else B(i, **given) / w + np.zeros(n)

    return program


def without(y, place, instead=0):
    """y with zero, or another value, at one place."""
    y = y.copy()
    y[place] = instead
    return y


ANY = (
    ("transposed", "Aᵀ for A", of_result(lambda A, B: (A.T.copy(), B))),
    ("sign_of_A", "−A for A", of_result(lambda A, B: (-A, B))),
    ("sign_of_B", "−B for B", of_result(lambda A, B: (A, -B))),
    ("A_doubled", "2A for A", of_result(lambda A, B: (2 * A, B))),
    ("B_halved", "B/2 for B", of_result(lambda A, B: (A, B / 2))),
    ("B_normalised", "B of length 1", of_result(lambda A, B: (A, B / np.linalg.norm(B)))),
    ("reversed", "the last first", of_result(lambda A, B: (A[::-1, ::-1].copy(), B[::-1]))),
    ("block_of_64", "rows beyond 64 unwritten",
     of_result(lambda A, B: (np.where(np.arange(len(A))[:, None] < 64, A, 0), B))),
    ("last_entry", "the last entry of B unwritten",
     of_result(lambda A, B: (A, without(B, np.s_[len(B) - 1 - (B[-1] == 0) :])))),
    ("nan_on_top", "NaN in a corner of A",
     of_result(lambda A, B: (without(A, (0, -1), instead=np.nan), B))),
    ("single_inside", "single precision inside", of_each_result(lambda x: single(x).astype(float))),
    ("one_in_1e12", "all entries off by 1e-12",
     of_result(lambda A, B: (A * (1 + 1e-12), B * (1 - 1e-12)))),
)  # fmt: skip
WINDOW = (
    ("window_ignored", "w = 1 always", of_keywords(window=lambda w: 1.0)),
    ("window_inverted", "1/w for w", of_keywords(window=lambda w: 1 / w)),
    ("window_of_two", "2w for w: halves, as S4 has them", of_keywords(window=lambda w: 2 * w)),
    ("window_rounded", "w a whole number of at least 1",
     of_keywords(window=lambda w: max(1.0, np.round(w)))),
    ("window_single", "w in single precision", of_keywords(window=lambda w: float(np.float32(w)))),
    ("window_in_A_only", "B without the window", lambda right, *, n, window:
     (right(n=n, window=window)[0], right(n=n, window=1.0)[1])),
)  # fmt: skip


def making(op: Operator) -> Planting:
    """The planting of a constructor, with the mistakes of any constructor."""
    made, p = {}, Planting(op, "float64")  # what is made once is kept, for each operator apart
    p.plant(*ANY)
    p.plant(("unrepeatable", "a result that depends on the call", every_third_call()), by="repeat")
    p.plant(
        ("cached", "the same memory at every call",
         lambda right, **given: made.setdefault(tuple(given.items()), right(**given))),
        by="alias",
    )  # fmt: skip
    return p


MEASURES = ("legs", "legt", "lmu", "chebt", "lagt", "fourier", "fourier_naive", "fourier_diagonal")
LEGS, LEGT, LMU, CHEBT, LAGT, FOURIER, NAIVE, DIAGONAL = PLANTINGS = [
    making(operator_named(f"hippo_{measure}")) for measure in MEASURES
]
for _p in (LEGT, LMU, CHEBT, FOURIER, NAIVE):
    _p.plant(*WINDOW)


def root(i):
    """√(2i+1)."""
    return np.sqrt(2 * i + 1)


def lower(i, k, below, on):
    """A lower triangular matrix, from its entries below and on the diagonal."""
    return np.where(i > k, below, np.where(i == k, on, 0.0))


def _legs(below=lambda i, k: -root(i) * root(k), on=lambda i: -i - 1):
    """LegS with other entries below the diagonal or on it."""
    return entries(lambda i, k: lower(i, k, below(i, k), on(i)))


LEGS.plant(
    ("diagonal_from_0", "−i on the diagonal", _legs(on=lambda i: -i)),
    ("diagonal_of_normal", "−(i+½) on it", _legs(on=lambda i: -(i + 0.5))),
    ("diagonal_squared", "−(2i+1) on it", _legs(on=lambda i: -(2 * i + 1))),
    ("whole", "nothing masked",
     entries(lambda i, k: np.where(i == k, -(i + 1), -root(i) * root(k)))),
    ("no_root", "(2i+1)(2k+1) below", _legs(lambda i, k: -((2 * i + 1) * (2 * k + 1)))),
    ("rows_only", "−(2i+1) below", _legs(lambda i, k: -(2 * i + 1))),
    ("from_1", "√((2i−1)(2k−1)), as if i were counted from 1",
     _legs(lambda i, k: -root(abs(i - 1)) * root(abs(k - 1)))),
    ("alternating", "signs of LMU in B", entries(B=lambda i: (-1) ** i * root(i))),
    ("B_no_root", "B_i = 2i+1", entries(B=lambda i: 2 * i + 1)),
    ("normal_part", "HiPPO-N: A + p pᵀ, B halved",
     entries(lambda i, k: -0.5 * np.eye(len(i)) + np.sign(k - i) * root(i) * root(k) / 2,
             lambda i: root(i) / 2)),
)  # fmt: skip
LEGT.plant(
    ("unsigned", "no signs above", entries(lambda i, k: -root(i) * root(k))),
    ("signs_below", "the signs below the diagonal",
     entries(lambda i, k: -root(i) * root(k) * np.where(i > k, (-1) ** (i - k), 1))),
    ("signs_everywhere", "(−1)^{i−k} on both sides",
     entries(lambda i, k: -root(i) * root(k) * (-1) ** (i - k))),
    ("masked", "nothing above, as legs", entries(lambda i, k: -root(i) * root(k) * (i >= k))),
    ("rows_only", "(2i+1) for the root",
     entries(lambda i, k: -(2 * i + 1) * np.where(i < k, (-1) ** (i - k), 1))),
    ("alternating", "signs of LMU in B", entries(B=lambda i: (-1) ** i * root(i))),
    ("lmu", "LMU for LegT", instead(LMU.op.reference)),
)  # fmt: skip
LMU.plant(
    ("sign_of_triangle", "(−1)^{i−k} below",
     entries(lambda i, k: (2 * i + 1) * np.where(i < k, -1, (-1) ** (i - k)))),
    ("sign_above", "+1 above",
     entries(lambda i, k: (2 * i + 1) * np.where(i < k, 1, -(-1) ** (i - k)))),
    ("columns", "2k+1 for 2i+1",
     entries(lambda i, k: (2 * k + 1) * np.where(i < k, -1, -(-1) ** (i - k)))),
    ("diagonal_above", "the diagonal counted to the upper triangle of the other sign",
     entries(lambda i, k: (2 * i + 1) * np.where(i <= k, 1 - 2 * (i < k), -(-1) ** (i - k)))),
    ("B_unsigned", "B without signs", entries(B=lambda i: 2 * i + 1)),
    ("B_root", "√(2i+1) in B", entries(B=lambda i: (-1) ** i * root(i))),
    ("legt", "LegT for LMU", instead(LEGT.op.reference)),
)  # fmt: skip


def _odd(i, k):
    """True where i − k is odd and positive: the nonzero entries."""
    return (i > k) & ((i - k) % 2 == 1)


def _first_column(factor):
    """Another factor instead of 1/√2 in the first column."""
    return entries(lambda i, k: -4 * i * _odd(i, k) * np.where(k == 0, factor, 1.0))


CHEBT.plant(
    ("first_column", "1 for 1/√2", _first_column(1.0)),
    ("first_halved", "½ for 1/√2", _first_column(0.5)),
    ("first_grown", "√2 for 1/√2", _first_column(2**0.5)),
    ("columns", "4k for 4i", entries(lambda i, k: -4 * k * _odd(i, k))),
    ("dense", "even differences too", entries(lambda i, k: -4 * i * (i > k))),
    ("even", "even differences for odd ones",
     entries(lambda i, k: -4 * i * ((i > k) & ((i - k) % 2 == 0)))),
    ("B_flat", "B without the √2", entries(B=lambda i: np.sqrt(8) / np.pi)),
    ("B_no_pi", "B without 1/π", entries(B=lambda i: np.where(i == 0, 8**0.5, 4))),
)  # fmt: skip


def scale(i, alpha):
    """L_i = √(Γ(i+α+1)/i!)."""
    return np.sqrt(gamma(1 + alpha) * binom(i + alpha, i))


def _lagt(below=lambda i, k, alpha, beta: -scale(k, alpha) / scale(i, alpha),
          on=lambda beta: -(1 + beta) / 2):  # fmt: skip
    """LagT with other entries instead of −L_k/L_i below the diagonal, or on it."""
    return entries(lambda i, k, alpha, beta: lower(i, k, below(i, k, alpha, beta), on(beta)))


def _by_logarithms(right, *, n, alpha, beta):
    """Ratios of Γ by exponentials of logarithms, as in S4's glagt: an error of log Γ(n)·u."""
    i = np.arange(n)
    L = np.exp(0.5 * (gammaln(i + alpha + 1) - gammaln(i + 1)))
    A = -np.tril(L / L[:, None], -1) - (1 + beta) / 2 * np.eye(n)
    return A, right(n=n, alpha=alpha, beta=beta)[1]


LAGT.plant(
    ("as_s4", "S4's lagt: diagonal −½, B = 1",  # the limit β → 0 of (A, B/√β)
     instead(lambda *, n, alpha, beta: (np.eye(n) / 2 - np.tril(np.ones((n, n))), np.ones(n)))),
    ("by_logarithms", "exponentials of logarithms of Γ", _by_logarithms),
    ("alpha_ignored", "α = 0 always", of_keywords(alpha=lambda alpha: 0.0)),
    ("beta_ignored", "β = 1 always", of_keywords(beta=lambda beta: 1.0)),
    ("alpha_sign", "−α for α", of_keywords(alpha=lambda alpha: -alpha)),
    ("beta_inverted", "1/β", of_keywords(beta=lambda beta: 1 / beta)),
    ("diagonal", "−1 on it", _lagt(on=lambda beta: -1.0)),
    ("diagonal_of_beta", "−β/2 on it", _lagt(on=lambda beta: -beta / 2)),
    ("diagonal_of_tilt", "(1−β)/2 − 1", _lagt(on=lambda beta: (1 - beta) / 2)),
    ("scaled_back", "L A₀ L⁻¹", _lagt(lambda i, k, alpha, beta:
     -scale(i, alpha) / scale(k, alpha))),
    ("unscaled", "A₀ for A", _lagt(lambda i, k, alpha, beta: -1.0)),
    ("rates_below", "β times what is below the diagonal", _lagt(lambda i, k, alpha, beta:
     -beta * scale(k, alpha) / scale(i, alpha))),
    ("B_no_gamma", "B without Γ(1−α)", entries(B=lambda i, alpha, beta:
     binom(i + alpha, i) / scale(i, alpha) * beta ** ((1 - alpha) / 2))),
    ("B_gamma_plus", "Γ(1+α) for Γ(1−α)", entries(B=lambda i, alpha, beta:
     binom(i + alpha, i) / scale(i, alpha) / gamma(1 + alpha) ** 0.5 * beta ** ((1 - alpha) / 2))),
    ("B_unscaled", "B without 1/L", entries(B=lambda i, alpha, beta:
     binom(i + alpha, i) / gamma(1 - alpha) ** 0.5 * beta ** ((1 - alpha) / 2))),
    ("B_power", "β^{1−α} for its root", entries(B=lambda i, alpha, beta:
     binom(i + alpha, i) / scale(i, alpha) / gamma(1 - alpha) ** 0.5 * beta ** (1 - alpha))),
    ("B_ones", "B = 1", entries(B=lambda i, alpha, beta: np.ones_like(i))),
    ("B_rate", "B = β", entries(B=lambda i, alpha, beta: np.full_like(i, beta))),
)  # fmt: skip


def rotation(n, window, step=2 * np.pi, first=0):
    """S with frequencies `step`·(first + k)/w."""
    k, S = np.arange(n // 2), np.zeros((n, n))
    S[2 * k + 1, 2 * k] = step * (k + first) / window
    return S - S.T


def now(n, first=1.0, others=2**0.5):
    """b, the basis at the current time."""
    return without(np.tile([others, 0.0], n // 2), 0, instead=first)


def _permuted(order):
    """The states in another order; `order` is applied to rows and to columns."""
    return of_result(lambda A, B: (order(order(A).T).T, order(B)))


def _of(assembled, S=rotation, b=now):
    """A and B from assembled(S, b, window)."""
    return lambda right, *, n, window=1.0: assembled(S(n, window), b(n), window)


def _any(assembled):
    """Bugs of all three bases: another S, another b, another order."""
    of = partial(_of, assembled)
    return (
        ("turned_back", "−S for S", of(lambda n, w: -rotation(n, w))),
        ("half_turns", "πk for 2πk", of(lambda n, w: rotation(n, w, np.pi))),
        ("cycles", "k for 2πk", of(lambda n, w: rotation(n, w, 1.0))),
        ("from_1", "frequencies from 1", of(lambda n, w: rotation(n, w, first=1))),
        ("symmetric", "Sᵀ = S", of(lambda n, w: abs(rotation(n, w)))),
        ("b_ones", "cosines without √2", of(b=lambda n: now(n, 1, 1))),
        ("b_first", "√2 for the constant too", of(b=lambda n: now(n, 2**0.5))),
        ("b_doubled", "2 for √2", of(b=lambda n: now(n, 1, 2))),
        ("pi_of_seven_digits", "π = 3.141593", of(lambda n, w: rotation(n, w, 2 * 3.141593))),
        ("sines_first", "each sine before its cosine",
         _permuted(lambda x: x[np.arange(len(x)) ^ 1])),
        ("cosines_then_sines", "all cosines first",
         _permuted(lambda x: np.append(x[::2], x[1::2], axis=0))),
    )  # fmt: skip


def _sliding(in_A, in_B):
    """A and B with other factors of b bᵀ/w and of b/w."""
    return lambda S, b, w: (S - in_A * np.outer(b, b) / w, in_B * b / w)


for _p, _ends, _other in ((FOURIER, 2, 1), (NAIVE, 1, 2)):
    _p.plant(
        *_any(_sliding(_ends, _ends)),
        ("other_end", f"the factor {_other} for {_ends}", _of(_sliding(_other, _other))),
        ("other_end_in_A", f"the factor {_other} in A only", _of(_sliding(_other, _ends))),
        ("other_end_in_B", f"the factor {_other} in B only", _of(_sliding(_ends, _other))),
        ("sign_of_ends", "S + b bᵀ", _of(_sliding(-_ends, _ends))),
        ("no_ends", "S alone", _of(_sliding(0, _ends))),
    )


def _damped(by, per=1):
    """S/per − by·I; S − I/2 is right."""
    return lambda S, b, w: (S / per - by * np.eye(len(b)), b)


DIAGONAL.plant(
    *_any(_damped(0.5)),
    ("undamped", "S alone", _of(_damped(0))),
    ("damped_twice", "S − I", _of(_damped(1))),
    ("window_of_two", "w = 2", _of(_damped(0.5, per=2))),
    ("sliding", "the sliding window", instead(lambda *, n: FOURIER.op.reference(n=n, window=1))),
)
