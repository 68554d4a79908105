"""Planted bugs in the kernels of diagonal systems, file by file."""

from refssm.conformance.deviations import (
    diagonal_bilinear,
    diagonal_ema,
    diagonal_held,
    diagonal_shift,
    diagonal_softmax,
)

DEVIATIONS = [
    *diagonal_held.DEVIATIONS,
    *diagonal_bilinear.DEVIATIONS,
    *diagonal_softmax.DEVIATIONS,
    *diagonal_ema.DEVIATIONS,
    *diagonal_shift.DEVIATIONS,
]
