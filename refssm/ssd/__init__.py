"""State-space duality, Mamba-2's layer: one function in three forms [dao2024mamba2].

    S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ,    y_t = S_t C_t

Read `recurrent`, then `quadratic`, the same as masked attention, then `chunked`, which is both.
Neighbours agree: that is what the tests hold.
"""

from refssm.ssd.chunked import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    ssd_chunked,
    ssd_chunked_packed,
    ssd_chunked_packed_vjp,
    ssd_chunked_stateful,
    ssd_chunked_stateful_vjp,
    ssd_chunked_vjp,
)
from refssm.ssd.packed import (
    SSD_RECURRENT_PACKED,
    SSD_STEP,
    ssd_recurrent_packed,
    ssd_recurrent_packed_vjp,
    ssd_step,
    ssd_step_vjp,
)
from refssm.ssd.quadratic import SSD_QUADRATIC, ssd_quadratic, ssd_quadratic_vjp
from refssm.ssd.recurrent import (
    SSD_RECURRENT,
    SSD_RECURRENT_STATEFUL,
    ssd_recurrent,
    ssd_recurrent_stateful,
    ssd_recurrent_stateful_vjp,
    ssd_recurrent_vjp,
)

__all__ = [
    "SSD_CHUNKED",
    "SSD_CHUNKED_PACKED",
    "SSD_CHUNKED_STATEFUL",
    "SSD_QUADRATIC",
    "SSD_RECURRENT",
    "SSD_RECURRENT_PACKED",
    "SSD_RECURRENT_STATEFUL",
    "SSD_STEP",
    "ssd_chunked",
    "ssd_chunked_packed",
    "ssd_chunked_packed_vjp",
    "ssd_chunked_stateful",
    "ssd_chunked_stateful_vjp",
    "ssd_chunked_vjp",
    "ssd_quadratic",
    "ssd_quadratic_vjp",
    "ssd_recurrent",
    "ssd_recurrent_packed",
    "ssd_recurrent_packed_vjp",
    "ssd_recurrent_stateful",
    "ssd_recurrent_stateful_vjp",
    "ssd_recurrent_vjp",
    "ssd_step",
    "ssd_step_vjp",
]
