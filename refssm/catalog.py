"""Every operator, in reading order: a line here is what makes an operator exist."""

from refssm._operator import Operator
from refssm.cauchy import CAUCHY_KERNEL
from refssm.convolution import (
    CAUSAL_CONVOLUTION,
    CAUSAL_CONVOLUTION_DIRECT,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm.discretize import (
    DISCRETIZE_BILINEAR,
    DISCRETIZE_DIAGONAL_BILINEAR,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_ZOH,
)
from refssm.scan import (
    DENSE_SCAN,
    DENSE_SCAN_FROM,
    DIAGONAL_SSM,
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
    LINEAR_SCAN_PACKED,
    LINEAR_STEP,
)
from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_STATEFUL,
    MAMBA_STEP,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)
from refssm.ssd import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
    SSD_STEP,
)
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL

OPERATORS = (
    DISCRETIZE_ZOH,
    DISCRETIZE_BILINEAR,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_DIAGONAL_BILINEAR,
    CAUCHY_KERNEL,
    VANDERMONDE_KERNEL,
    VANDERMONDE_KERNEL_REAL,
    CAUSAL_CONVOLUTION_DIRECT,
    CAUSAL_CONVOLUTION,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
    LINEAR_SCAN_PACKED,
    LINEAR_STEP,
    DENSE_SCAN,
    DENSE_SCAN_FROM,
    DIAGONAL_SSM,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_BIDIRECTIONAL,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_STEP,
    MAMBA_SCAN,
    MAMBA_SCAN_STATEFUL,
    MAMBA_SCAN_PACKED,
    MAMBA_STEP,
    SSD_RECURRENT,
    SSD_RECURRENT_STATEFUL,
    SSD_RECURRENT_PACKED,
    SSD_QUADRATIC,
    SSD_CHUNKED,
    SSD_CHUNKED_STATEFUL,
    SSD_CHUNKED_PACKED,
    SSD_STEP,
)


def families() -> list[str]:
    """The files that hold operators, in reading order."""
    return list(dict.fromkeys(op.family for op in OPERATORS))


RESUMED = ("_from", "_stateful")


def from_state(op: Operator) -> bool:
    """Whether a state from before is among its arguments."""
    return op.name.endswith((*RESUMED, "_step"))


def resumed(op: Operator) -> Operator | None:
    """The one that starts this one from a state: itself, its `_from` or its `_stateful` form."""
    plain = op.name.removesuffix("_from").removesuffix("_stateful")
    names = [f"{plain}{suffix}" for suffix in RESUMED]
    return next((other for other in OPERATORS if other.name in names), None)
