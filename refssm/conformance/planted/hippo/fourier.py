"""Planted bugs in HiPPO with a Fourier basis."""

import numpy as np

from refssm.conformance.planted.hippo.base import Making, windowed
from refssm.hippo import HIPPO_FOURIER, HIPPO_FOURIER_DIAGONAL, HIPPO_FOURIER_NAIVE

ENDS = {HIPPO_FOURIER: 2, HIPPO_FOURIER_NAIVE: 1}  # the factor of b bᵀ/w and of b/w


def rotation(n, window, step=2 * np.pi, first=0):
    """S with frequencies `step`·(first + k)/w."""
    k, S = np.arange(n // 2), np.zeros((n, n))
    S[2 * k + 1, 2 * k] = step * (k + first) / window
    return S - S.T


def now(n, first=1.0, others=2**0.5):
    """b."""
    b = np.tile([others, 0.0], n // 2)
    b[0] = first
    return b


def sines_first(n):
    """Each sine before its cosine."""
    return np.arange(n) ^ 1


def cosines_then_sines(n):
    """All cosines, then all sines."""
    return np.append(np.arange(0, n, 2), np.arange(1, n, 2))


def _plant(p: Making, assembled):
    """Bugs of all three; `assembled` makes A and B of S, b and the window."""

    def made(S, b):
        return lambda *, n, window=1.0: assembled(S(n, window), b(n), window)

    def permuted(order):
        def made(*, n, **given):
            A, B = p.right(n=n, **given)
            return A[np.ix_(order(n), order(n))], B[order(n)]

        return made

    p.usual()
    p.wrong("turned_back", "−S for S", made(lambda n, w: -rotation(n, w), now))
    p.wrong("half_turns", "πk for 2πk", made(lambda n, w: rotation(n, w, np.pi), now))
    p.wrong("cycles", "k for 2πk", made(lambda n, w: rotation(n, w, 1.0), now))
    p.wrong("from_1", "frequencies from 1", made(lambda n, w: rotation(n, w, first=1), now))
    p.wrong("symmetric", "Sᵀ = S", made(lambda n, w: abs(rotation(n, w)), now))
    p.wrong("b_ones", "cosines without √2", made(rotation, lambda n: now(n, 1, 1)))
    p.wrong("b_first", "√2 for the constant too", made(rotation, lambda n: now(n, 2**0.5)))
    p.wrong("b_doubled", "2 for √2", made(rotation, lambda n: now(n, 1, 2)))
    p.wrong("pi_of_seven_digits", "π = 3.141593", made(_coarse, now))
    p.wrong("sines_first", "each sine before its cosine", permuted(sines_first))
    p.wrong("cosines_then_sines", "all cosines first", permuted(cosines_then_sines))


def _coarse(n, w):
    return rotation(n, w, 2 * 3.141593)


def _sliding(ends):
    """A and B with that factor."""
    return lambda S, b, w: (S - ends * np.outer(b, b) / w, ends * b / w)


def _plant_window(p: Making, ends: float):
    windowed(p)
    other = 3 - ends

    def mixed(in_A, in_B):
        def made(*, n, window):
            b = now(n)
            return rotation(n, window) - in_A * np.outer(b, b) / window, in_B * b / window

        return made

    p.wrong("other_end", f"the factor {other} for {ends}", mixed(other, other))
    p.wrong("other_end_in_A", f"the factor {other} in A only", mixed(other, ends))
    p.wrong("other_end_in_B", f"the factor {other} in B only", mixed(ends, other))
    p.wrong("sign_of_ends", "S + b bᵀ", mixed(-ends, ends))
    p.wrong("no_ends", "S alone", mixed(0, ends))


FOURIER, NAIVE = Making(HIPPO_FOURIER), Making(HIPPO_FOURIER_NAIVE)
for _p in (FOURIER, NAIVE):
    _plant(_p, _sliding(ENDS[_p.op]))
    _plant_window(_p, ENDS[_p.op])

DIAGONAL = Making(HIPPO_FOURIER_DIAGONAL)
_plant(DIAGONAL, lambda S, b, w: (S - np.eye(len(b)) / 2, b))
DIAGONAL.changed("undamped", "S alone", lambda A, B: (A + np.eye(len(B)) / 2, B))
DIAGONAL.changed("damped_twice", "S − I", lambda A, B: (A - np.eye(len(B)) / 2, B))
DIAGONAL.changed(
    "window_of_two",
    "w = 2",
    lambda A, B: ((A + np.eye(len(B)) / 2) / 2 - np.eye(len(B)) / 2, B),
)
DIAGONAL.wrong("sliding", "the sliding window", lambda *, n: HIPPO_FOURIER.reference(n=n, window=1))

DEVIATIONS = [*FOURIER.bugs, *NAIVE.bugs, *DIAGONAL.bugs]
