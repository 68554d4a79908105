"""HiPPO matrices as normal plus low rank: A = V (diag w − P Pᴴ) Vᴴ, with unitary V.

S4 computes with it: (z − A)⁻¹ is a Cauchy kernel and a correction of the rank of P. A itself is
never to be diagonalized: the eigenvectors of LegS have a condition of 1e23 at n = 32.
"""

from refssm.nplr.legendre import (
    BLOCK_DIAGONAL,
    NORMAL_LEGS,
    NPLR_LEGS,
    NPLR_LEGT,
    block_diagonal,
    normal_legs,
    nplr_legs,
    nplr_legt,
)
from refssm.nplr.waves import (
    NPLR_FOURIER,
    NPLR_FOURIER_NAIVE,
    NPLR_LAGT,
    nplr_fourier,
    nplr_fourier_naive,
    nplr_lagt,
)

__all__ = [
    "BLOCK_DIAGONAL",
    "NORMAL_LEGS",
    "NPLR_FOURIER",
    "NPLR_FOURIER_NAIVE",
    "NPLR_LAGT",
    "NPLR_LEGS",
    "NPLR_LEGT",
    "block_diagonal",
    "normal_legs",
    "nplr_fourier",
    "nplr_fourier_naive",
    "nplr_lagt",
    "nplr_legs",
    "nplr_legt",
]
