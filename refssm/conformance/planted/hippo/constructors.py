"""Planted bugs in HiPPO's A and B: Legendre, Chebyshev, Laguerre and Fourier bases."""

from functools import partial

import numpy as np
from scipy.special import binom, gamma, gammaln

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.hippo.making import WINDOW, entries, making, of_keywords, without
from refssm.conformance.planted.planting import instead, of_result

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
