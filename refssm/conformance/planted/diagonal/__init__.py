"""Planted bugs in the kernels of diagonal systems, file by file."""

from refssm.conformance.planted.diagonal import discretized, liquid, pairs, softmax, without_step

BUGS = [
    *discretized.BUGS,
    *pairs.BUGS,
    *softmax.SOFTMAX.bugs,
    *without_step.EMA.bugs,
    *without_step.SHIFT.bugs,
    *liquid.LIQUID.bugs,
]
