"""HiPPO: what a linear system must be for its state to be a projection of its input's past.

Eight measures in closed form, (A, B) of any other by quadrature, and the initial poles of diagonal
models that were derived from them.
"""

from refssm.hippo.chebyshev import HIPPO_CHEBT, hippo_chebt
from refssm.hippo.diagonal import lru_ring, s4d_inv, s4d_legs, s4d_lin, s4d_quad, s4d_real
from refssm.hippo.fourier import (
    HIPPO_FOURIER,
    HIPPO_FOURIER_DIAGONAL,
    HIPPO_FOURIER_NAIVE,
    hippo_fourier,
    hippo_fourier_diagonal,
    hippo_fourier_naive,
)
from refssm.hippo.laguerre import HIPPO_LAGT, hippo_lagt
from refssm.hippo.legendre import (
    HIPPO_LEGS,
    HIPPO_LEGT,
    HIPPO_LMU,
    hippo_legs,
    hippo_legt,
    hippo_lmu,
)
from refssm.hippo.measure import hippo_from_measure, hippo_from_measure_scaled

__all__ = [
    "HIPPO_CHEBT",
    "HIPPO_FOURIER",
    "HIPPO_FOURIER_DIAGONAL",
    "HIPPO_FOURIER_NAIVE",
    "HIPPO_LAGT",
    "HIPPO_LEGS",
    "HIPPO_LEGT",
    "HIPPO_LMU",
    "hippo_chebt",
    "hippo_fourier",
    "hippo_fourier_diagonal",
    "hippo_fourier_naive",
    "hippo_from_measure",
    "hippo_from_measure_scaled",
    "hippo_lagt",
    "hippo_legs",
    "hippo_legt",
    "hippo_lmu",
    "lru_ring",
    "s4d_inv",
    "s4d_legs",
    "s4d_lin",
    "s4d_quad",
    "s4d_real",
]
