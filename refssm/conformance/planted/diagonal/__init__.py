"""Planted bugs in the kernels of diagonal systems, file by file."""

from refssm.conformance.planted.diagonal import bilinear, ema, held, shift, softmax

OF_ONE = [bilinear.BILINEAR, softmax.SOFTMAX, ema.EMA, shift.SHIFT]
BUGS = [*held.BUGS, *(bug for planting in OF_ONE for bug in planting.bugs)]
