"""What an operator's results are held to, and in what it is linear."""

from enum import Enum
from typing import NamedTuple

import numpy as np


class Linear(NamedTuple):
    """Arguments in which, taken together, some outputs are linear."""

    arguments: tuple[str, ...]
    outputs: tuple[int, ...]


class Invariant(NamedTuple):
    """Something made of an operator's outputs that no choice of basis changes."""

    name: str
    value: np.ndarray
    scale: float  # of what it is made of: held to 16·n·u times that in the Frobenius norm
    matched: bool = False  # a spectrum: in any order


class Equation(NamedTuple):
    """A linear matrix equation of one output Y: Σ left Y right = side; None is the identity."""

    terms: tuple[tuple[np.ndarray | None, np.ndarray | None], ...]
    side: np.ndarray


class Contract(Enum):
    """What an operator's rounding errors are measured against."""

    TRACED = "the tracked rounding error of the reference, entry by entry"
    NORM = "the tracked rounding error of the reference, in the 2-norm of each state"
    SINGULAR = "the first-order bound of each singular value, the small ones as the large"
    GRAMIANS = "the first-order bound of singular values whose gramians are known in norm"
    FFT = "3 √log2(2l) times the 2-norms of the arguments: normwise, as a transform attains"
    SPECTRUM = "the tracked error of a spectrum in norm, and log2(2l) roundings of its transform"
    SOLVE = "the residual ‖M Y − N‖ against n (‖M‖ ‖Y‖ + ‖N‖) and the roundings of M and N"
    EXPM = "2.5 times the condition number of the exponential and its Frobenius norm"
    INVARIANTS = "n times the norm of what no choice of basis changes: never entry by entry"
