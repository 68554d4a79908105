"""Fast forms of refssm.hope; compiled when imported."""

from refssm.jit.hope.stream import (
    hope_step,
    hope_step_vjp,
    hope_stream,
    hope_stream_stateful,
    hope_stream_stateful_vjp,
    hope_stream_vjp,
)

__all__ = [
    "hope_step",
    "hope_step_vjp",
    "hope_stream",
    "hope_stream_stateful",
    "hope_stream_stateful_vjp",
    "hope_stream_vjp",
]
