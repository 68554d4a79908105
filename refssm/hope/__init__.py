"""HOPE: kernels of n Markov parameters on a circle that the step warps [yu2024hope]."""

from refssm.hope.aliased import (
    HOPE_KERNEL_ALIASED,
    hope_kernel_aliased,
    hope_kernel_aliased_vjp,
)
from refssm.hope.kernel import HOPE_KERNEL, hope_kernel, hope_kernel_vjp
from refssm.hope.recency import (
    HOPE_RECENCY_EXPONENTIAL,
    HOPE_RECENCY_POWER,
    hope_recency_exponential,
    hope_recency_exponential_vjp,
    hope_recency_power,
    hope_recency_power_vjp,
)
from refssm.hope.stream import (
    HOPE_STEP,
    HOPE_STREAM,
    HOPE_STREAM_STATEFUL,
    hope_step,
    hope_step_vjp,
    hope_stream,
    hope_stream_stateful,
    hope_stream_stateful_vjp,
    hope_stream_vjp,
)
from refssm.hope.system import (
    hope_delay,
    hope_step_bounds,
    hope_system,
    hope_system_discrete,
    hope_tail,
    hope_window,
    inverse_bilinear,
)
from refssm.hope.transfer import HOPE_TRANSFER, hope_transfer, hope_transfer_vjp

__all__ = [
    "HOPE_KERNEL",
    "HOPE_KERNEL_ALIASED",
    "HOPE_RECENCY_EXPONENTIAL",
    "HOPE_RECENCY_POWER",
    "HOPE_STEP",
    "HOPE_STREAM",
    "HOPE_STREAM_STATEFUL",
    "HOPE_TRANSFER",
    "hope_delay",
    "hope_kernel",
    "hope_kernel_aliased",
    "hope_kernel_aliased_vjp",
    "hope_kernel_vjp",
    "hope_recency_exponential",
    "hope_recency_exponential_vjp",
    "hope_recency_power",
    "hope_recency_power_vjp",
    "hope_step",
    "hope_step_bounds",
    "hope_step_vjp",
    "hope_stream",
    "hope_stream_stateful",
    "hope_stream_stateful_vjp",
    "hope_stream_vjp",
    "hope_system",
    "hope_system_discrete",
    "hope_tail",
    "hope_transfer",
    "hope_transfer_vjp",
    "hope_window",
    "inverse_bilinear",
]
