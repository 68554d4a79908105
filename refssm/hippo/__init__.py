"""HiPPO: what a linear system must be for its state to be a projection of its input's past.

Eight measures in closed form, (A, B) of any other by quadrature, the initial poles of diagonal
models that were derived from them; what a memory holds, and what comes back from it.
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
from refssm.hippo.memory import (
    HIPPO_PROJECT,
    HIPPO_PROJECT_LEGS,
    hippo_project,
    hippo_project_legs,
    hippo_project_legs_vjp,
    hippo_project_vjp,
)
from refssm.hippo.reconstruct import (
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    hippo_reconstruct_fourier,
    hippo_reconstruct_fourier_vjp,
    hippo_reconstruct_lagt,
    hippo_reconstruct_lagt_vjp,
    hippo_reconstruct_legs,
    hippo_reconstruct_legs_vjp,
    hippo_reconstruct_legt,
    hippo_reconstruct_legt_vjp,
    hippo_reconstruct_lmu,
    hippo_reconstruct_lmu_vjp,
)
from refssm.hippo.rescale import (
    HIPPO_RESCALE,
    hippo_rescale,
    hippo_rescale_vjp,
)

__all__ = [
    "HIPPO_CHEBT",
    "HIPPO_FOURIER",
    "HIPPO_FOURIER_DIAGONAL",
    "HIPPO_FOURIER_NAIVE",
    "HIPPO_LAGT",
    "HIPPO_LEGS",
    "HIPPO_LEGT",
    "HIPPO_LMU",
    "HIPPO_PROJECT",
    "HIPPO_PROJECT_LEGS",
    "HIPPO_RECONSTRUCT_FOURIER",
    "HIPPO_RECONSTRUCT_LAGT",
    "HIPPO_RECONSTRUCT_LEGS",
    "HIPPO_RECONSTRUCT_LEGT",
    "HIPPO_RECONSTRUCT_LMU",
    "HIPPO_RESCALE",
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
    "hippo_project",
    "hippo_project_legs",
    "hippo_project_legs_vjp",
    "hippo_project_vjp",
    "hippo_reconstruct_fourier",
    "hippo_reconstruct_fourier_vjp",
    "hippo_reconstruct_lagt",
    "hippo_reconstruct_lagt_vjp",
    "hippo_reconstruct_legs",
    "hippo_reconstruct_legs_vjp",
    "hippo_reconstruct_legt",
    "hippo_reconstruct_legt_vjp",
    "hippo_reconstruct_lmu",
    "hippo_reconstruct_lmu_vjp",
    "hippo_rescale",
    "hippo_rescale_vjp",
    "lru_ring",
    "s4d_inv",
    "s4d_legs",
    "s4d_lin",
    "s4d_quad",
    "s4d_real",
]
