"""How the judge measures an operator's errors, and in which arguments the operator is linear."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Linear(NamedTuple):
    """A group of arguments, and the outputs that are linear in the whole group."""

    arguments: tuple[str, ...]
    outputs: tuple[int, ...]


class Invariant(NamedTuple):
    """A quantity computed from an operator's outputs that no change of basis alters."""

    name: str
    value: np.ndarray
    scale: float  # size of its parts; accepted error: 16·n·u·scale in the Frobenius norm
    matched: bool = False  # True for a spectrum: compared in any order
    ordered: bool = False  # of a spectrum: the operator promises an order; another one is a note


class Equation(NamedTuple):
    """A linear matrix equation of one output Y: Σ left Y right = side; None is the identity."""

    terms: tuple[tuple[np.ndarray | None, np.ndarray | None], ...]
    side: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What an operator's rounding errors are measured against: facts, and words for the report.

    `refssm/conformance/gauges/contracts.py` computes the bounds themselves.
    """

    name: str
    words: str  # what the errors are measured against
    instead_of_entries: str = ""  # what the report shows if a failure has no wrong entries

    # limits on the product of all sizes of a case, so that judging it lasts a second or two
    case_entries: int
    double_case_entries: int  # in double precision, where the oracle judges
    gradient_case_entries: int
    oracle_entries: int  # entries of the largest array for which the oracle needs about a second
    stays_short: bool = False  # the work grows with the cube of a size, or faster

    follows_each_operation: bool = False  # the bound sums the reference's roundings
    measures_columns: bool = False  # measured bounds: one for each entry of an output's last axis
    judges_whole_matrices: bool = False  # by a norm: single entries have no error bound
    needs_no_value: bool = False  # a residual or an invariant needs no expected value
    basis_free: bool = False  # any basis of the outputs is right
    solved_by_lapack: bool = False  # LAPACK has no long double
    judges_gradients_in_double: bool = True
    scales_exactly: bool = True  # f(2^k x) = 2^k f(x) bit by bit, where f is linear
    nan_may_spread: bool = False  # over the whole batch member that contains it
    may_raise_if_singular: bool = False
    scaled_by_last: bool = False  # the last output is the logarithm of a scale of the states
    turns: str = ""  # the output that is an angle, of which whole turns do not count

    def __str__(self):
        return self.name


TRACED = Contract(
    name="TRACED",
    words="the tracked rounding error of the reference, entry by entry",
    case_entries=65536,
    double_case_entries=1024,
    gradient_case_entries=16384,
    oracle_entries=4096,
    follows_each_operation=True,
)
SCALED = Contract(
    name="SCALED",
    words="the tracked rounding error of the reference, entry by entry; of states as e^m S",
    case_entries=65536,
    double_case_entries=1024,
    gradient_case_entries=16384,
    oracle_entries=4096,
    follows_each_operation=True,
    scaled_by_last=True,
)
TURNED = Contract(
    name="TURNED",
    words="the tracked rounding error of the reference, entry by entry; of angles on the circle",
    case_entries=65536,
    double_case_entries=1024,
    gradient_case_entries=16384,
    oracle_entries=4096,
    follows_each_operation=True,
    turns="phase",
)
CHAIN = Contract(
    name="CHAIN",
    words="the tracked rounding error of the whole chain of operators, of transforms in norm",
    case_entries=8192,  # a rule may run for each channel
    double_case_entries=1024,
    gradient_case_entries=4096,
    oracle_entries=1024,
    follows_each_operation=True,
)
NORM = Contract(
    name="NORM",
    words="the tracked rounding error of the reference, in the 2-norm of each state",
    case_entries=4096,
    double_case_entries=512,
    gradient_case_entries=2048,
    oracle_entries=1024,
    stays_short=True,
)
GAUSSIAN = Contract(
    name="GAUSSIAN",
    words="the first-order error bound of each mean and covariance, in norm, step by step",
    case_entries=256,
    double_case_entries=64,
    gradient_case_entries=128,
    oracle_entries=128,
    stays_short=True,
)
COLUMNS = Contract(
    name="COLUMNS",
    words="the error bound in the 2-norm of each column of the state, step by step",
    case_entries=65536,
    double_case_entries=1024,
    gradient_case_entries=16384,
    oracle_entries=4096,
    measures_columns=True,
    may_raise_if_singular=True,  # the system of a chunk, with NaN in it
)
TRIANGULAR = Contract(
    name="TRIANGULAR",
    words="|X| |L| |X| entry by entry: the roundings of L and of a substitution",
    case_entries=16384,
    double_case_entries=1024,
    gradient_case_entries=16384,
    oracle_entries=1024,
    follows_each_operation=True,
    nan_may_spread=True,  # a block times zeros of another one
)
SINGULAR = Contract(
    name="SINGULAR",
    words="the first-order error bound of each singular value, small or large",
    case_entries=512,
    double_case_entries=256,
    gradient_case_entries=128,
    oracle_entries=16,  # the oracle's digits grow with the number of singular values
    stays_short=True,
)
GRAMIANS = Contract(
    name="GRAMIANS",
    words="the first-order bound of singular values whose gramians are known in norm",
    instead_of_entries="the residual of an equation",
    case_entries=2048,
    double_case_entries=1024,
    gradient_case_entries=512,
    oracle_entries=16,
    solved_by_lapack=True,
)
FFT = Contract(
    name="FFT",
    words="3 √log2(2l) times the 2-norms of the arguments: in norm, as for an FFT",
    case_entries=65536,
    double_case_entries=512,
    gradient_case_entries=16384,
    oracle_entries=1024,
)
SPECTRUM = Contract(
    name="SPECTRUM",
    words="the tracked error of a spectrum in norm, and log2(2l) roundings of its transform",
    case_entries=262144,
    double_case_entries=1024,
    gradient_case_entries=65536,
    oracle_entries=1024,
    scales_exactly=False,  # states may underflow after they decay far below the kernel's norm
)
SOLVE = Contract(
    name="SOLVE",
    words="the residual ‖M Y − N‖ compared with n (‖M‖ ‖Y‖ + ‖N‖) and the roundings of M and N",
    instead_of_entries="the residual of an equation",
    case_entries=16384,
    double_case_entries=128,
    gradient_case_entries=4096,
    oracle_entries=256,
    judges_whole_matrices=True,
    needs_no_value=True,
    solved_by_lapack=True,
    judges_gradients_in_double=False,
    nan_may_spread=True,
    may_raise_if_singular=True,
)
EXPM = Contract(
    name="EXPM",
    words="2.5 times what one rounding of dt A and dt B changes, in the norm of each block",
    case_entries=8192,
    double_case_entries=128,
    gradient_case_entries=512,
    oracle_entries=256,
    judges_whole_matrices=True,
    scales_exactly=False,  # the number of squarings may depend on the norm of all arguments
    nan_may_spread=True,
)
INVARIANTS = Contract(
    name="INVARIANTS",
    words="n times the size of each quantity that is the same in every basis, as its norm",
    instead_of_entries="quantities that are the same in every basis",
    case_entries=65536,
    double_case_entries=65536,  # no oracle: any basis is right
    gradient_case_entries=0,  # no gradient: any basis is right
    oracle_entries=50,  # only small ones: to check that it is a basis, and two filters
    stays_short=True,
    judges_whole_matrices=True,
    needs_no_value=True,
    basis_free=True,
)
