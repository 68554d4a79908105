"""Every operator, in reading order: a line here is what makes an operator exist."""

from refssm.cauchy import CAUCHY_KERNEL
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM

OPERATORS = (
    CAUCHY_KERNEL,
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
)


def families() -> list[str]:
    """The files that hold operators, in reading order."""
    return list(dict.fromkeys(op.family for op in OPERATORS))
