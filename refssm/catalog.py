"""Every operator, in reading order: a line here is what makes an operator exist."""

from refssm.cauchy import CAUCHY_KERNEL
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT
from refssm.discretize import (
    DISCRETIZE_BILINEAR,
    DISCRETIZE_DIAGONAL_BILINEAR,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_ZOH,
)
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
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
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
)


def families() -> list[str]:
    """The files that hold operators, in reading order."""
    return list(dict.fromkeys(op.family for op in OPERATORS))
