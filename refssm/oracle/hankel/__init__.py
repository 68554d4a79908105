"""Oracles for refssm.hankel."""

from refssm.oracle.hankel.singular import hankel_singular_values_diagonal

__all__ = ["hankel_singular_values_diagonal"]
