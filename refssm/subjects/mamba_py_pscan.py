"""mamba.py's `pscan`: Blelloch's scan with a hand-written gradient."""

from refssm.subjects.clones import module
from refssm.testing import implements

pscan = module("mamba.py", "mambapy.pscan").pscan


@implements("linear_scan", framework="torch", vjp=True, layout="b l n 1, b l n 1 -> b l n 1")
def linear_scan(a, b):
    """pscan(A, X) of (B, L, D, N)."""
    return pscan(a, b)
