# pyright: reportMissingImports=false
"""hippo-code: parallel_unroll_recursive, and variable_unroll_matrix with one matrix."""

from refssm.subjects.clones import module
from refssm.testing import implements

unroll = module("hippo-code", "model.unroll")


@implements("dense_scan", framework="torch", vjp=True, layout="n n, l b n -> l b n")
def dense_scan(A, b):
    """parallel_unroll_recursive."""
    return unroll.parallel_unroll_recursive(A, b)


@implements("dense_scan_from", framework="torch", vjp=True, layout="n n, l b n, b n -> l b n")
def dense_scan_from(A, b, x0):
    """variable_unroll_matrix(variable=False)."""
    return unroll.variable_unroll_matrix(A, b, x0, variable=False)
