"""The Hankel operator of a system: its singular values, and what is built on them."""

from refssm.hankel.diagonal import (
    HANKEL_SINGULAR_VALUES_DIAGONAL,
    hankel_singular_values_diagonal,
    hankel_singular_values_diagonal_vjp,
)

__all__ = [
    "HANKEL_SINGULAR_VALUES_DIAGONAL",
    "hankel_singular_values_diagonal",
    "hankel_singular_values_diagonal_vjp",
]
