"""Recurrences of time-invariant and time-varying linear systems, the state update of every SSM.

    x_k = a_k x_{k-1} + b_k        elementwise in the state: `linear`, and with resets: `packed`
    x_k = A x_{k-1} + b_k          with a matrix: `dense`
    y_k = C x_k + D u_k            between several inputs and outputs, S5's form: `diagonal`

Read `linear` first. The others are made of it.
"""

from refssm.scan.bidirectional import (
    DIAGONAL_SSM_BIDIRECTIONAL,
    diagonal_ssm_bidirectional,
    diagonal_ssm_bidirectional_vjp,
)
from refssm.scan.dense import (
    DENSE_SCAN,
    DENSE_SCAN_FROM,
    dense_scan,
    dense_scan_from,
    dense_scan_from_vjp,
    dense_scan_vjp,
)
from refssm.scan.diagonal import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_VARYING,
    diagonal_ssm,
    diagonal_ssm_varying,
    diagonal_ssm_varying_vjp,
    diagonal_ssm_vjp,
)
from refssm.scan.diagonal_real import (
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    diagonal_ssm_real,
    diagonal_ssm_real_stateful,
    diagonal_ssm_real_stateful_vjp,
    diagonal_ssm_real_vjp,
)
from refssm.scan.diagonal_stateful import (
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING_STATEFUL,
    diagonal_ssm_stateful,
    diagonal_ssm_stateful_vjp,
    diagonal_ssm_varying_stateful,
    diagonal_ssm_varying_stateful_vjp,
)
from refssm.scan.linear import (
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
    LINEAR_STEP,
    linear_scan,
    linear_scan_from,
    linear_scan_from_vjp,
    linear_scan_vjp,
    linear_step,
    linear_step_vjp,
)
from refssm.scan.packed import LINEAR_SCAN_PACKED, linear_scan_packed, linear_scan_packed_vjp

__all__ = [
    "DENSE_SCAN",
    "DENSE_SCAN_FROM",
    "DIAGONAL_SSM",
    "DIAGONAL_SSM_BIDIRECTIONAL",
    "DIAGONAL_SSM_REAL",
    "DIAGONAL_SSM_REAL_STATEFUL",
    "DIAGONAL_SSM_STATEFUL",
    "DIAGONAL_SSM_VARYING",
    "DIAGONAL_SSM_VARYING_STATEFUL",
    "LINEAR_SCAN",
    "LINEAR_SCAN_FROM",
    "LINEAR_SCAN_PACKED",
    "LINEAR_STEP",
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
