"""Numba mirrors of refssm.selective_scan: one kernel each way; compiled when imported."""

from refssm.jit.selective_scan.mamba import (
    mamba_scan,
    mamba_scan_packed,
    mamba_scan_packed_vjp,
    mamba_scan_stateful,
    mamba_scan_stateful_vjp,
    mamba_scan_vjp,
    mamba_step,
    mamba_step_vjp,
)
from refssm.jit.selective_scan.selective import (
    selective_scan,
    selective_scan_packed,
    selective_scan_packed_vjp,
    selective_scan_stateful,
    selective_scan_stateful_vjp,
    selective_scan_vjp,
    selective_step,
    selective_step_vjp,
)

__all__ = [
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
