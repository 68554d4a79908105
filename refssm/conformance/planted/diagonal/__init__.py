"""Planted bugs in the kernels of diagonal systems, file by file."""

from refssm.conformance.planted.diagonal import bilinear as diagonal_bilinear
from refssm.conformance.planted.diagonal import ema as diagonal_ema
from refssm.conformance.planted.diagonal import held as diagonal_held
from refssm.conformance.planted.diagonal import shift as diagonal_shift
from refssm.conformance.planted.diagonal import softmax as diagonal_softmax

DEVIATIONS = [
    *diagonal_held.DEVIATIONS,
    *diagonal_bilinear.DEVIATIONS,
    *diagonal_softmax.DEVIATIONS,
    *diagonal_ema.DEVIATIONS,
    *diagonal_shift.DEVIATIONS,
]
