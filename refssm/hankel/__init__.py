"""Hankel operators: what a linear system remembers of the past, as one matrix.

    H_ij = h_(i+j),   h_k = C A^k B,   H = O R,   O the rows C A^i, R the columns A^j B

H maps past inputs to future outputs. The gramians RRᴴ and OᴴO measure what reaches the state and
what is seen of it, and the transfer function is the system's answer at one frequency.
"""

from refssm.hankel.diagonal import (
    HANKEL_SINGULAR_VALUES_DIAGONAL,
    hankel_singular_values_diagonal,
    hankel_singular_values_diagonal_vjp,
)
from refssm.hankel.gramians import (
    GRAMIANS,
    GRAMIANS_DISCRETE,
    gramians,
    gramians_discrete,
    gramians_discrete_vjp,
    gramians_vjp,
)
from refssm.hankel.matrix import (
    HANKEL_MATRIX,
    MARKOV_PARAMETERS,
    hankel_matrix,
    hankel_matrix_vjp,
    markov_parameters,
    markov_parameters_vjp,
)
from refssm.hankel.reduction import (
    balanced_truncation,
    balanced_truncation_bound,
    ho_kalman,
    numerical_rank,
)
from refssm.hankel.singular import (
    HANKEL_SINGULAR_VALUES,
    hankel_norm,
    hankel_singular_values,
    hankel_singular_values_vjp,
)
from refssm.hankel.supremum import h_infinity_norm
from refssm.hankel.transfer import (
    TRANSFER,
    TRANSFER_DISCRETE,
    transfer,
    transfer_discrete,
    transfer_discrete_vjp,
    transfer_vjp,
)

__all__ = [
    "GRAMIANS",
    "GRAMIANS_DISCRETE",
    "HANKEL_MATRIX",
    "HANKEL_SINGULAR_VALUES",
    "HANKEL_SINGULAR_VALUES_DIAGONAL",
    "MARKOV_PARAMETERS",
    "TRANSFER",
    "TRANSFER_DISCRETE",
    "balanced_truncation",
    "balanced_truncation_bound",
    "gramians",
    "gramians_discrete",
    "gramians_discrete_vjp",
    "gramians_vjp",
    "h_infinity_norm",
    "hankel_matrix",
    "hankel_matrix_vjp",
    "hankel_norm",
    "hankel_singular_values",
    "hankel_singular_values_diagonal",
    "hankel_singular_values_diagonal_vjp",
    "hankel_singular_values_vjp",
    "ho_kalman",
    "markov_parameters",
    "markov_parameters_vjp",
    "numerical_rank",
    "transfer",
    "transfer_discrete",
    "transfer_discrete_vjp",
    "transfer_vjp",
]
