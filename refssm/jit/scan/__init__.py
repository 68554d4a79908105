"""Numba mirrors of refssm.scan: one kernel for all but the dense scans; compiled when imported."""

from refssm.jit.scan.dense import (
    dense_scan,
    dense_scan_from,
    dense_scan_from_vjp,
    dense_scan_vjp,
)
from refssm.jit.scan.diagonal import (
    diagonal_ssm,
    diagonal_ssm_stateful,
    diagonal_ssm_stateful_vjp,
    diagonal_ssm_varying,
    diagonal_ssm_varying_stateful,
    diagonal_ssm_varying_stateful_vjp,
    diagonal_ssm_varying_vjp,
    diagonal_ssm_vjp,
)
from refssm.jit.scan.diagonal_real import (
    diagonal_ssm_bidirectional,
    diagonal_ssm_bidirectional_vjp,
    diagonal_ssm_real,
    diagonal_ssm_real_stateful,
    diagonal_ssm_real_stateful_vjp,
    diagonal_ssm_real_vjp,
)
from refssm.jit.scan.linear import (
    linear_scan,
    linear_scan_from,
    linear_scan_from_vjp,
    linear_scan_packed,
    linear_scan_packed_vjp,
    linear_scan_vjp,
    linear_step,
    linear_step_vjp,
)

__all__ = [
    "dense_scan",
    "dense_scan_from",
    "dense_scan_from_vjp",
    "dense_scan_vjp",
    "diagonal_ssm",
    "diagonal_ssm_bidirectional",
    "diagonal_ssm_bidirectional_vjp",
    "diagonal_ssm_real",
    "diagonal_ssm_real_stateful",
    "diagonal_ssm_real_stateful_vjp",
    "diagonal_ssm_real_vjp",
    "diagonal_ssm_stateful",
    "diagonal_ssm_stateful_vjp",
    "diagonal_ssm_varying",
    "diagonal_ssm_varying_stateful",
    "diagonal_ssm_varying_stateful_vjp",
    "diagonal_ssm_varying_vjp",
    "diagonal_ssm_vjp",
    "linear_scan",
    "linear_scan_from",
    "linear_scan_from_vjp",
    "linear_scan_packed",
    "linear_scan_packed_vjp",
    "linear_scan_vjp",
    "linear_step",
    "linear_step_vjp",
]
