"""How bugs are planted in constructors, and those that any of them may have."""

import numpy as np

from refssm._operator import Operator
from refssm.conformance.planted import Deviation


class Making:
    """The planted bugs of one constructor of A and B."""

    def __init__(self, op: Operator):
        self.op, self.right, self.bugs = op, op.reference, []

    def wrong(self, name: str, what: str, made, check="value"):
        """Register a wrong constructor."""
        self.bugs.append(Deviation(self.op.name, name, f"{check}[float64]", what, made))

    def changed(self, name: str, what: str, change):
        """Register the right result, changed: (A, B) to (A, B)."""
        self.wrong(name, what, lambda **given: change(*self.right(**given)))

    def entries(self, name: str, what: str, A=None, B=None):
        """Register other entries: A by `i`, `k` and the keywords, B by `i`; None is right."""

        def made(*, n, **given):
            i = np.arange(n, dtype=float)
            right_A, right_B = self.right(n=n, **given)
            made_A = right_A if A is None else A(i[:, None], i, **given) + np.zeros((n, n))
            return made_A, right_B if B is None else B(i, **given) + np.zeros(n)

        self.wrong(name, what, made)

    def usual(self):
        """Signs, factors, transposes, blocks, fewer bits, memory."""
        self.changed("transposed", "Aᵀ for A", lambda A, B: (A.T.copy(), B))
        self.changed("sign_of_A", "−A for A", lambda A, B: (-A, B))
        self.changed("sign_of_B", "−B for B", lambda A, B: (A, -B))
        self.changed("A_doubled", "2A for A", lambda A, B: (2 * A, B))
        self.changed("B_halved", "B/2 for B", lambda A, B: (A, B / 2))
        self.changed("B_normalised", "B of length 1", lambda A, B: (A, B / np.linalg.norm(B)))
        self.changed("reversed", "the last first", lambda A, B: (A[::-1, ::-1].copy(), B[::-1]))
        self.changed("block_of_64", "rows beyond 64 unwritten", _first_rows)
        self.changed("last_entry", "the last entry of B unwritten", _but_the_last)
        self.changed("nan_on_top", "NaN in a corner of A", _nan_in_the_corner)
        self.changed("single_inside", "single precision inside", _in_single_precision)
        self.changed("one_in_1e12", "all entries off by 1e-12", _slightly_off)
        self.wrong("unrepeatable", "a result that depends on the call", self._third(), "repeat")
        self.wrong("cached", "the same memory at every call", self._cached(), "alias")

    def _third(self):
        calls = [0]

        def unrepeatable(**given):
            calls[0] += 1
            A, B = self.right(**given)
            return (A, B) if calls[0] % 3 else (A * 1.01, B)

        return unrepeatable

    def _cached(self):
        made = {}

        def cached(**given):
            key = tuple(given.items())
            if key not in made:
                made[key] = self.right(**given)
            return made[key]

        return cached


def _first_rows(A, B):
    A[64:] = 0
    return A, B


def _but_the_last(A, B):
    B[len(B) - 1 - (B[-1] == 0) :] = 0
    return A, B


def _nan_in_the_corner(A, B):
    A[0, -1] = np.nan
    return A, B


def _in_single_precision(A, B):
    return A.astype(np.float32).astype(float), B.astype(np.float32).astype(float)


def _slightly_off(A, B):
    return A * (1 + 1e-12), B * (1 - 1e-12)


def windowed(making: Making):
    """What goes wrong with the length of a window."""
    right = making.right
    for name, what, of in (
        ("window_ignored", "w = 1 always", lambda w: 1.0),
        ("window_inverted", "1/w for w", lambda w: 1 / w),
        ("window_of_two", "2w for w: halves, as S4 has them", lambda w: 2 * w),
        ("window_rounded", "w a whole number of at least 1", lambda w: max(1.0, np.round(w))),
    ):
        making.wrong(name, what, lambda *, n, window, of=of: right(n=n, window=of(window)))
    making.wrong(
        "window_in_A_only",
        "B without the window",
        lambda *, n, window: (right(n=n, window=window)[0], right(n=n, window=1.0)[1]),
    )
