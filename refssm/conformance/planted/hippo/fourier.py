"""Planted bugs in HiPPO with a Fourier basis."""

from functools import partial

import numpy as np

from refssm.conformance.planted.hippo.making import WINDOW, making
from refssm.conformance.planted.planting import instead, of_result
from refssm.hippo import HIPPO_FOURIER, HIPPO_FOURIER_DIAGONAL, HIPPO_FOURIER_NAIVE


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


def _permuted(order):
    """The states in another order: `order` of the rows, and of the columns."""
    return of_result(lambda A, B: (order(order(A).T).T, order(B)))


def _of(assembled, S=rotation, b=now):
    """What `assembled` makes of S, b and the window."""
    return lambda right, *, n, window=1.0: assembled(S(n, window), b(n), window)


def _any(assembled):
    """Bugs of all three: another S, another b, another order."""
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
    """A and B with these factors of b bᵀ/w and of b/w."""
    return lambda S, b, w: (S - in_A * np.outer(b, b) / w, in_B * b / w)


def _of_ends(ends):
    """Bugs of a sliding window, where the right factor is `ends`."""
    other = 3 - ends
    return (
        ("other_end", f"the factor {other} for {ends}", _of(_sliding(other, other))),
        ("other_end_in_A", f"the factor {other} in A only", _of(_sliding(other, ends))),
        ("other_end_in_B", f"the factor {other} in B only", _of(_sliding(ends, other))),
        ("sign_of_ends", "S + b bᵀ", _of(_sliding(-ends, ends))),
        ("no_ends", "S alone", _of(_sliding(0, ends))),
    )


FOURIER, NAIVE, DIAGONAL = PLANTINGS = [
    making(op) for op in (HIPPO_FOURIER, HIPPO_FOURIER_NAIVE, HIPPO_FOURIER_DIAGONAL)
]
for _p, _ends in ((FOURIER, 2), (NAIVE, 1)):
    _p.plant(*_any(_sliding(_ends, _ends)), *WINDOW, *_of_ends(_ends))


def _damped(by, per=1):
    """S/per − by·I; right is S − I/2."""
    return lambda S, b, w: (S / per - by * np.eye(len(b)), b)


DIAGONAL.plant(
    *_any(_damped(0.5)),
    ("undamped", "S alone", _of(_damped(0))),
    ("damped_twice", "S − I", _of(_damped(1))),
    ("window_of_two", "w = 2", _of(_damped(0.5, per=2))),
    ("sliding", "the sliding window", instead(lambda *, n: HIPPO_FOURIER.reference(n=n, window=1))),
)
