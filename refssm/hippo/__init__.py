"""HiPPO: memories of a signal in a basis of functions, what they hold and what comes back."""

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
    "HIPPO_PROJECT",
    "HIPPO_PROJECT_LEGS",
    "HIPPO_RECONSTRUCT_FOURIER",
    "HIPPO_RECONSTRUCT_LAGT",
    "HIPPO_RECONSTRUCT_LEGS",
    "HIPPO_RECONSTRUCT_LEGT",
    "HIPPO_RECONSTRUCT_LMU",
    "HIPPO_RESCALE",
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
]
