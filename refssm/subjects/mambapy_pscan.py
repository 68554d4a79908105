# pyright: reportMissingImports=false
"""mambapy.pscan: Blelloch's scan with a hand-written gradient."""

from mambapy.pscan import pscan

from refssm.testing import implements


@implements("linear_scan", framework="torch", vjp=True, layout="b l n 1, b l n 1 -> b l n 1")
def linear_scan(a, b):
    """pscan(A, X) of (B, L, D, N)."""
    return pscan(a, b)
