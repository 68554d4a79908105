"""Mistakes in any constructor of A and B, with or without a window, and how to write them.

A constructor has no arrays to change: its right program is called as right(**given).
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.planting import (
    Planting,
    every_third_call,
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
