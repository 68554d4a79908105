"""HOPE: state-space layers parameterised by the Markov parameters of a Hankel operator."""

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

__all__ = [
    "HOPE_STEP",
    "HOPE_STREAM",
    "HOPE_STREAM_STATEFUL",
    "hope_step",
    "hope_step_vjp",
    "hope_stream",
    "hope_stream_stateful",
    "hope_stream_stateful_vjp",
    "hope_stream_vjp",
]
