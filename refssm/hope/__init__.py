"""HOPE: state-space layers parameterised by the Markov parameters of a Hankel operator."""

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

__all__ = [
    "HOPE_RECENCY_EXPONENTIAL",
    "HOPE_RECENCY_POWER",
    "HOPE_STEP",
    "HOPE_STREAM",
    "HOPE_STREAM_STATEFUL",
    "hope_delay",
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
    "hope_window",
    "inverse_bilinear",
]
