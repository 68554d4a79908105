"""Selective scans: diagonal systems whose step, input and output depend on time [gu2023mamba].

    x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k,    y_k = C_k · x_k

`selective` is the recurrence and its gradient, `mamba` puts a softplus before it, a skip beside and
a gate after it, `packed` and `mamba_packed` have resets and single steps.
"""

from refssm.selective_scan.mamba import (
    MAMBA_SCAN,
    MAMBA_SCAN_STATEFUL,
    mamba_scan,
    mamba_scan_stateful,
    mamba_scan_stateful_vjp,
    mamba_scan_vjp,
)
from refssm.selective_scan.mamba_packed import (
    MAMBA_SCAN_PACKED,
    MAMBA_STEP,
    mamba_scan_packed,
    mamba_scan_packed_vjp,
    mamba_step,
    mamba_step_vjp,
)
from refssm.selective_scan.packed import (
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_STEP,
    selective_scan_packed,
    selective_scan_packed_vjp,
    selective_step,
    selective_step_vjp,
)
from refssm.selective_scan.selective import (
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
    selective_scan,
    selective_scan_stateful,
    selective_scan_stateful_vjp,
    selective_scan_vjp,
)

__all__ = [
    "MAMBA_SCAN",
    "MAMBA_SCAN_PACKED",
    "MAMBA_SCAN_STATEFUL",
    "MAMBA_STEP",
    "SELECTIVE_SCAN",
    "SELECTIVE_SCAN_PACKED",
    "SELECTIVE_SCAN_STATEFUL",
    "SELECTIVE_STEP",
    "mamba_scan",
    "mamba_scan_packed",
    "mamba_scan_packed_vjp",
    "mamba_scan_stateful",
    "mamba_scan_stateful_vjp",
    "mamba_scan_vjp",
    "mamba_step",
    "mamba_step_vjp",
    "selective_scan",
    "selective_scan_packed",
    "selective_scan_packed_vjp",
    "selective_scan_stateful",
    "selective_scan_stateful_vjp",
    "selective_scan_vjp",
    "selective_step",
    "selective_step_vjp",
]
