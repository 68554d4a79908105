"""Planted bugs in the kernels of diagonal systems, file by file."""

from refssm.conformance.planted.diagonal import discretized, other_kernels

BUGS = [
    *discretized.OF_MODES,
    *discretized.OF_PAIRS,
    *other_kernels.SOFTMAX.bugs,
    *other_kernels.EMA.bugs,
    *other_kernels.SHIFT.bugs,
    *other_kernels.LIQUID.bugs,
]
