"""Fast forms of refssm.hope; compiled when imported."""

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

__all__ = [
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
]
