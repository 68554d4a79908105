"""Numba mirrors of refssm.ssd but the quadratic form; compiled when imported."""

from refssm.jit.ssd.chunked import (
    ssd_chunked,
    ssd_chunked_packed,
    ssd_chunked_packed_vjp,
    ssd_chunked_stateful,
    ssd_chunked_stateful_vjp,
    ssd_chunked_vjp,
)
from refssm.jit.ssd.recurrent import (
    ssd_recurrent,
    ssd_recurrent_packed,
    ssd_recurrent_packed_vjp,
    ssd_recurrent_stateful,
    ssd_recurrent_stateful_vjp,
    ssd_recurrent_vjp,
    ssd_step,
    ssd_step_vjp,
)

__all__ = [
    "ssd_chunked",
    "ssd_chunked_packed",
    "ssd_chunked_packed_vjp",
    "ssd_chunked_stateful",
    "ssd_chunked_stateful_vjp",
    "ssd_chunked_vjp",
    "ssd_recurrent",
    "ssd_recurrent_packed",
    "ssd_recurrent_packed_vjp",
    "ssd_recurrent_stateful",
    "ssd_recurrent_stateful_vjp",
    "ssd_recurrent_vjp",
    "ssd_step",
    "ssd_step_vjp",
]
