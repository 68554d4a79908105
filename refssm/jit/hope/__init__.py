"""Numba mirrors of refssm.hope: Horner's rule across nodes, waves of a cascade across stages."""

from refssm.jit.hope.aliased import hope_kernel_aliased, hope_kernel_aliased_vjp
from refssm.jit.hope.kernel import hope_kernel, hope_kernel_vjp
from refssm.jit.hope.recency import (
    hope_recency_exponential,
    hope_recency_exponential_vjp,
    hope_recency_power,
    hope_recency_power_vjp,
)
from refssm.jit.hope.stream import (
    hope_step,
    hope_step_vjp,
    hope_stream,
    hope_stream_stateful,
    hope_stream_stateful_vjp,
    hope_stream_vjp,
)
from refssm.jit.hope.transfer import hope_transfer, hope_transfer_vjp

__all__ = [
    "hope_kernel",
    "hope_kernel_aliased",
    "hope_kernel_aliased_vjp",
    "hope_kernel_vjp",
    "hope_recency_exponential",
    "hope_recency_exponential_vjp",
    "hope_recency_power",
    "hope_recency_power_vjp",
    "hope_step",
    "hope_step_vjp",
    "hope_stream",
    "hope_stream_stateful",
    "hope_stream_stateful_vjp",
    "hope_stream_vjp",
    "hope_transfer",
    "hope_transfer_vjp",
]
